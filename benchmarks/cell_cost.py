"""What does a pair cell of SSA cost, by cause, against the square root it replaces?

One cell of the default coupling and dwell on the default card, and on the same card
with smaller capacitors and lower voltages; and a shipped checkpoint on a text.

    python benchmarks/cell_cost.py
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from oscc import compile, energy, load
from oscc.account.assumptions import assumptions
from oscc.account.locks import lock_stage_energy
from oscc.account.noise import noise_periods, thermal_variance_per_period
from oscc.device import Card, load_card
from oscc.device.lock_cell import LOCK_CARD, PERIODS, RATE
from oscc.files import dump_json, write_atomic
from oscc.ir.views import CELL_MACS
from oscc.testing.flat import cells_stage
from oscc.units import grouped, si_text

ROOT = Path(__file__).parents[1]
OUT = ROOT / "benchmarks" / "results" / "cell_cost.json"
SIZES = ((1e-10, 5.0), (1e-12, 1.0), (1e-13, 1.0))
X = 0.9
TEXT = "def insort(a, x, lo=0):\n    for k in range(lo, len(a)):\n        pass\n"
TOKENS = 64


def scaled(card: Card, farad: float, volt: float) -> Card:
    """The card with another capacitor, its voltages in the old proportions."""
    share = volt / card.vdd_V
    return replace(
        card,
        c_F=farad,
        vdd_V=volt,
        v_imt_V=card.v_imt_V * share,
        v_mit_V=card.v_mit_V * share,
    )


def of_a_cell(farad: float, volt: float) -> dict[str, Any]:
    """One cell by cause, its noise, and the root in digital arithmetic."""
    card = scaled(load_card(LOCK_CARD), farad, volt)
    known = assumptions(card, ("cells",))
    pull = 2 * np.pi * RATE * PERIODS
    stage = cells_stage((X,), gain_rad=pull, dwell_periods=PERIODS)
    found = lock_stage_energy(stage, card, known)
    variance = noise_periods(stage) * thermal_variance_per_period(card)
    whole = sum(found.causes_J.values())
    roots = {
        name: CELL_MACS * known[f"digital_{name}_mac_J"].value
        for name in ("int8", "fp32")
    }
    return {
        "c_F": farad,
        "vdd_V": volt,
        "causes_J": dict(found.causes_J),
        "total_J": whole,
        "thermal_jitter_rad": float(np.sqrt(variance)),
        "root_J": roots,
        "over_root": {name: whole / value for name, value in roots.items()},
    }


def break_even(cells: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """Capacitor at 1 V at which a cell costs as much as the root; None if none does.

    All but words and the conversion is in proportion to the capacitor, and the
    variance of the jitter goes as one over it.
    """
    one, two = (entry for entry in cells if entry["vdd_V"] == 1.0)
    slope = (one["total_J"] - two["total_J"]) / (one["c_F"] - two["c_F"])
    fixed = one["total_J"] - slope * one["c_F"]
    farad = (one["root_J"][name] - fixed) / slope
    if farad <= 0:
        return {"fixed_J": fixed, "c_F": None, "thermal_jitter_rad": None}
    jitter = one["thermal_jitter_rad"] * (one["c_F"] / farad) ** 0.5
    return {"fixed_J": fixed, "c_F": farad, "thermal_jitter_rad": jitter}


def of_a_text() -> dict[str, Any]:
    """The shipped checkpoint on a text: cells, host, the roots they replace."""
    model = load(ROOT / "checkpoints" / "ssa-trainable.safetensors")
    program = compile(model, TEXT, max_tokens=TOKENS)
    found = energy(program)
    return {
        "tokens": TOKENS,
        "cells": found.pairs,
        "periods": [stage.dwell_periods for stage in program.stages],
        "total_J": found.total_J,
        "host_J": found.causes_J["host"],
        "digital_J": dict(found.digital_J),
        "over_int8": found.hardware_over_digital["int8"],
    }


def _times(ratio: float) -> str:
    return grouped(round(float(f"{ratio:.2g}"))) if ratio >= 100 else f"{ratio:.2g}"


def row(entry: dict[str, Any]) -> str:
    """Line of the table of docs/reference/energy.md."""
    cells = (
        f"{si_text(entry['c_F'], 'F')}, {entry['vdd_V']:g} V",
        si_text(entry["causes_J"]["target_oscillators"], "J"),
        si_text(entry["total_J"], "J"),
        *(_times(entry["over_root"][name]) for name in ("fp32", "int8")),
        si_text(entry["thermal_jitter_rad"], "rad"),
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Account for every size, print the rows, write the results."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    cells = [of_a_cell(*size) for size in SIZES]
    for entry in cells:
        print(row(entry))
    even = {name: break_even(cells, name) for name in ("fp32", "int8")}
    content = {
        "format": "oscc.benchmark/1",
        "x": X,
        "cells": cells,
        "break_even": even,
        "text": of_a_text(),
    }
    print(even, content["text"])
    write_atomic(OUT, dump_json(content))


if __name__ == "__main__":
    main()
