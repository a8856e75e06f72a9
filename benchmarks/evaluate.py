"""What does the circuit in the loop cost in bits per character?

Runs `oscc evaluate` on the shipped flow checkpoints over at least 20,000 held-out
tokens of the standard library at 10 mrad and writes benchmarks/results/evaluate.json.

    python benchmarks/evaluate.py [--tokens N] [--jobs N]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from oscc.checkpoint import load_checkpoint
from oscc.files import dump_json, write_atomic
from oscc.verbs.compile import CompileRequest
from oscc.verbs.evaluate import EvaluateOptions, evaluate

ROOT = Path(__file__).parents[1]
CHECKPOINTS = ("fsn-flow", "kuramoto-flow")


def main() -> None:
    """Evaluate every checkpoint, print a line each, write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    options = EvaluateOptions(
        tokens=given.tokens, request=CompileRequest(threads=given.jobs)
    )
    results = {}
    for name in CHECKPOINTS:
        model = load_checkpoint(ROOT / "checkpoints" / f"{name}.safetensors")
        results[name] = seen = evaluate(model, "circuit", options=options)
        print(
            f"{name}: digital {seen['bpc_digital']:.4f}, circuit "
            f"{seen['bpc_hardware']:.4f} ({seen['delta_bpc']:+.4f} +- "
            f"{seen['delta_se']:.4f}), {seen['periods_per_stage']:.1f} periods a stage",
            flush=True,
        )
    content = {"format": "oscc.benchmark/1", "accuracy_mrad": 10, "results": results}
    target = ROOT / "benchmarks" / "results" / "evaluate.json"
    write_atomic(target, dump_json(content))


if __name__ == "__main__":
    main()
