"""What does the circuit in the loop cost in bits per character, and does SPICE agree?

Runs `oscc evaluate` on the shipped flow and lock checkpoints over at least 20,000
held-out tokens of the standard library at 10 mrad, with both simulators on targets
drawn over the text, and writes benchmarks/results/evaluate.json. A checkpoint that the
file holds already is not run again without `--again`.

    python benchmarks/evaluate.py [--tokens N] [--spice N] [--jobs N] [--only NAME,...]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from oscc.checkpoint import load_checkpoint
from oscc.files import dump_json, write_atomic
from oscc.verbs.compile import CompileRequest
from oscc.verbs.evaluate import EvaluateOptions, evaluate
from oscc.verbs.evaluate_spice import SpiceRequest
from oscc.verbs.simulate import SimulateOptions

ROOT = Path(__file__).parents[1]
OUT = ROOT / "benchmarks" / "results" / "evaluate.json"
CHECKPOINTS = (
    *("fsn-flow", "kuramoto-flow", "fsn-no-phase-flow", "fsn-mf-flow"),
    *("ssa-trainable", "ssa-published"),
)
SPICE = 6


def row(name: str, seen: dict[str, Any]) -> str:
    """Line of the page on evaluation: bits, errors in the loop, SPICE."""
    columns = ("digital", "phase", "hardware")
    bits = " / ".join(f"{seen[f'bpc_{column}']:.4f}" for column in columns)
    change = f"{seen['delta_bpc']:+.4f} ± {seen['delta_se']:.4f}"
    top1 = f"{100 * seen['top1_agreement']:.2f} %"
    layers = ", ".join(_thousandths(layer) for layer in seen["layers"])
    grown = ", ".join(_grown(layer) for layer in seen["layers"])
    spice = ", ".join(_thousandths(level) for level in seen["spice"]["levels"])
    return f"| `{name}` | {bits} | {change} | {top1} | {layers} | {grown} | {spice} |"


def _thousandths(found: dict[str, Any]) -> str:
    """Error in mrad, or of a coherence in thousandths; a dash where there is none."""
    error = found["rms_rad"]
    if error is None:
        error = found.get("rms_coherence")
    return "–" if error is None else f"{1e3 * error:.2g}"


def _grown(layer: dict[str, Any]) -> str:
    """Distance from the digital model, as `_thousandths`."""
    kinds = ("rms_rad_to_model", "rms_coherence_to_model")
    found = [layer[kind] for kind in kinds if layer.get(kind) is not None]
    return f"{1e3 * found[0]:.2g}" if found else "–"


def main() -> None:
    """Evaluate every checkpoint, print a line each, write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=20_000)
    parser.add_argument("--spice", type=int, default=SPICE)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default=",".join(CHECKPOINTS))
    parser.add_argument("--again", action="store_true")
    given = parser.parse_args()
    options = EvaluateOptions(
        tokens=given.tokens,
        request=CompileRequest(threads=given.jobs),
        spice=SpiceRequest(given.spice, "", SimulateOptions(jobs=given.jobs)),
    )
    results = json.loads(OUT.read_text("utf-8"))["results"] if OUT.exists() else {}
    for name in given.only.split(","):
        if given.again or "spice" not in results.get(name, {}):
            model = load_checkpoint(ROOT / "checkpoints" / f"{name}.safetensors")
            results[name] = evaluate(model, "circuit", options=options)
            kept = {key: results[key] for key in CHECKPOINTS if key in results}
            head = {"format": "oscc.benchmark/1", "accuracy_mrad": 10}
            write_atomic(OUT, dump_json(head | {"results": kept}))
        print(row(name, results[name]), flush=True)


if __name__ == "__main__":
    main()
