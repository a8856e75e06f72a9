"""What scores and logits by correlation give and cost, beside the host forming them.

Compiles the first tokens of a library file at 10 mrad with both `--score` words, runs
the circuit engine and gnucap, evaluates held-out text with the circuit in the loop, and
accounts. Writes benchmarks/results/score_cost.json and prints the table of
docs/howto/score.md.

    python benchmarks/score_cost.py
"""

from __future__ import annotations

import argparse
import inspect
import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from oscc.arrays import FloatArray
from oscc.checkpoint import load_checkpoint
from oscc.device import card_from_mapping
from oscc.files import dump_json, write_atomic
from oscc.ir.program import Program
from oscc.units import si_text
from oscc.verbs.compile import CompileRequest, compile
from oscc.verbs.energy import energy
from oscc.verbs.evaluate import EvaluateOptions, evaluate
from oscc.verbs.inspect import coverage
from oscc_sims import correlate_circuit, correlate_spice
from oscc_sims.simulator import open_simulator

ROOT = Path(__file__).parents[1]
CHECKPOINTS = ("fsn-flow", "kuramoto-flow", "fsn-mf-flow")
LENGTH, HELD_OUT = 64, 1024


def errors(program: Program) -> dict[str, float]:
    """Rms error over all outputs: circuit to digital, gnucap to circuit, [nat]."""
    card = card_from_mapping(program.device)
    seen = correlate_spice.run(
        card, program.correlations, open_simulator("gnucap"), "gnucap", gate=False
    )
    squares: dict[str, list[FloatArray]] = {"circuit": [], "gnucap": []}
    for one in program.correlations:
        exact = correlate_circuit.solve(card, one)
        spice = seen[f"{one.name}.correlation"]
        squares["circuit"].append(((exact - one.digital)[:, one.visible] ** 2).ravel())
        squares["gnucap"].append(((spice - exact)[:, one.visible] ** 2).ravel())
    return {
        name: float(np.sqrt(np.mean(np.concatenate(parts))))
        for name, parts in squares.items()
    }


def figures(name: str, length: int, held_out: int) -> dict[str, Any]:
    """Errors, bits, coverage and account of one checkpoint.

    Args:
        name: Shipped checkpoint.
        length: Tokens that are compiled.
        held_out: Tokens that are evaluated with the circuit in the loop.
    """
    model = load_checkpoint(ROOT / "checkpoints" / f"{name}.safetensors")
    text = inspect.getsource(textwrap)[:length]
    programs = {word: compile(model, text, score=word) for word in ("host", "hardware")}
    accounts = {word: energy(one).to_json() for word, one in programs.items()}
    out: dict[str, Any] = {"checkpoint": name, "tokens": length}
    for word, program in programs.items():
        found = accounts[word]
        out[word] = {
            "share_on_oscillators": coverage(program)["share_on_oscillators"],
            "per_token_J": found["per_token_J"],
            "hardware_over_int8": found["hardware_over_digital"]["int8"],
        }
    formed = accounts["hardware"]["correlations"]
    out["error_nat"] = errors(programs["hardware"])
    out |= {name: formed[name] for name in ("outputs", "per_output_J", "per_mac_J")}
    if held_out:
        out["evaluate"] = _bits(model, held_out)
    return out


def _bits(model: Any, tokens: int) -> dict[str, Any]:
    options = EvaluateOptions(tokens=tokens, request=CompileRequest(score="hardware"))
    found = evaluate(model, "circuit", options=options)
    names = ("tokens", "bpc_digital", "bpc_hardware", "delta_bpc", "delta_se")
    return {name: found[name] for name in (*names, "top1_agreement")}


def row(entry: dict[str, Any]) -> str:
    """Line of the table."""
    error, shares = entry["error_nat"], (entry["host"], entry["hardware"])
    cells = [
        f"`{entry['checkpoint']}`",
        f"{1e3 * error['circuit']:.1f}",
        f"{1e3 * error['gnucap']:.2f}",
        " / ".join(f"{100 * one['share_on_oscillators']:.0f} %" for one in shares),
        si_text(entry["per_output_J"], "J"),
        si_text(entry["per_mac_J"], "J"),
        " / ".join(si_text(one["per_token_J"], "J") for one in shares),
        f"{entry['evaluate']['bpc_digital']:.4f} / "
        f"{entry['evaluate']['bpc_hardware']:.4f}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Run every checkpoint, print the rows, write the results."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    rows = []
    for name in CHECKPOINTS:
        rows.append(figures(name, LENGTH, HELD_OUT))
        print(row(rows[-1]), flush=True)
    content = {"format": "oscc.benchmark/1", "accuracy_mrad": 10, "results": rows}
    target = ROOT / "benchmarks" / "results" / "score_cost.json"
    write_atomic(target, dump_json(content))


if __name__ == "__main__":
    main()
