"""What one generated token costs, beside a token of a whole window.

Compiles the first tokens of a library file at 10 mrad in both modes and accounts for
each: coupled pairs, energy and time a token, share of the held bank of sources. Writes
benchmarks/results/decode_cost.json and prints the table of docs/howto/decode.md.

    python benchmarks/decode_cost.py
"""

from __future__ import annotations

import argparse
import inspect
import textwrap
from pathlib import Path
from typing import Any

from oscc.checkpoint import load_checkpoint
from oscc.files import dump_json, write_atomic
from oscc.units import grouped, si_text
from oscc.verbs.compile import compile
from oscc.verbs.energy import energy

ROOT = Path(__file__).parents[1]
CHECKPOINTS = (
    *("fsn-flow", "fsn-no-phase-flow", "kuramoto-flow"),
    *("fsn-mf-flow", "ssa-trainable", "ssa-published"),
)
LENGTHS = (16, 64, 128)


def figures(name: str, length: int) -> dict[str, Any]:
    """Account of both modes on the first tokens of this text."""
    model = load_checkpoint(ROOT / "checkpoints" / f"{name}.safetensors")
    text = inspect.getsource(textwrap)[:length]
    out: dict[str, Any] = {"checkpoint": name, "tokens": length}
    for mode in ("prefill", "decode"):
        found = energy(compile(model, text, mode=mode)).to_json()
        causes = found["causes_J"]
        out[mode] = {
            "pairs_per_token": found["pairs"] / found["tokens"],
            "per_token_J": found["per_token_J"],
            "seconds_per_token": found["seconds_per_token"],
            "periods": found["periods"],
            "source_share": causes["source_oscillators"] / found["total_J"],
            "hardware_over_int8": found["hardware_over_digital"]["int8"],
        }
    return out


def row(entry: dict[str, Any]) -> str:
    """Line of the table."""
    cells = [f"`{entry['checkpoint']}`", str(entry["tokens"])]
    for mode in ("prefill", "decode"):
        one = entry[mode]
        cells += [
            grouped(round(one["pairs_per_token"])),
            si_text(one["per_token_J"], "J"),
            si_text(one["seconds_per_token"], "s"),
            f"{100 * one['source_share']:.0f} %",
        ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Account for every length, print the rows, write the results."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    rows = [figures(name, n) for name in CHECKPOINTS for n in LENGTHS]
    for entry in rows:
        print(row(entry), flush=True)
    content = {"format": "oscc.benchmark/1", "accuracy_mrad": 10, "results": rows}
    target = ROOT / "benchmarks" / "results" / "decode_cost.json"
    write_atomic(target, dump_json(content))


if __name__ == "__main__":
    main()
