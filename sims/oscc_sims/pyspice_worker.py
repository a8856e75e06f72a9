"""Worker process that runs one deck through PySpice; imports nothing of ours.

PySpice (GPL-3, optional) holds one global simulator a process and warns at its first
import, so it never comes near the main process: this file is run as a script,

    python pyspice_worker.py DECK TABLE VECTOR [VECTOR ...]

and leaves the vectors, the time first, as columns of a numpy file.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def keys_of(vector: str) -> tuple[str, ...]:
    """Names under which libngspice keeps a vector.

    Example:
        >>> keys_of("i(v_supply)")
        ('i(v_supply)', 'v_supply#branch')
    """
    if vector == "time":
        return ("time",)
    kind, name = vector[0], vector[2:-1]
    return (vector, name if kind == "v" else f"{name}#branch")


def column(plot: Mapping[str, Any], vector: str) -> Any:
    """Values of a vector of a plot; leaves the process where it is missing."""
    lower = {name.lower(): values for name, values in plot.items()}
    for key in keys_of(vector):
        if key in lower:
            return np.asarray(lower[key]._data, dtype=np.float64)
    sys.exit(f"Error: no vector {vector} among {', '.join(sorted(lower))}")


def main(arguments: list[str]) -> None:
    """Run the deck of the first argument."""
    from PySpice.Spice.NgSpice.Shared import NgSpiceShared

    deck, table, *vectors = arguments
    simulator = NgSpiceShared.new_instance()
    simulator.load_circuit(Path(deck).read_text(encoding="utf-8"))
    simulator.run()
    plot = simulator.plot(None, simulator.last_plot)
    columns = [column(plot, vector) for vector in ("time", *vectors)]
    np.save(table, np.column_stack(columns))


if __name__ == "__main__":
    main(sys.argv[1:])
