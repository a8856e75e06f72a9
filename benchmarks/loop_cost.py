"""What does hardware in the loop cost, beside the digital forward on the same windows?

CPU time of one thread for 10 000 held-out tokens, columns in turns within a round and
the median over rounds; the digital forward is the exact one in float64 that evaluate
compares with. Schemes are chosen before, as evaluate does.

    python benchmarks/loop_cost.py [--out FILE] [--rounds N] [--only NAME,…]
"""

from __future__ import annotations

import argparse
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from oscc.checkpoint import load_checkpoint
from oscc.files import dump_json, write_atomic
from oscc.verbs.compile import CompileRequest
from oscc.verbs.evaluate import EvaluateOptions, in_loop

ROOT = Path(__file__).parent.parent
OUT = ROOT / "benchmarks" / "results" / "loop_cost.json"
NAMES = (
    *("kuramoto-flow", "fsn-flow", "fsn-no-phase-flow", "fsn-mf-flow"),
    *("ssa-trainable", "ssa-published"),
)
TOKENS, ACCURACY_MRAD = 10_000, 10.0
WINDOWS_AT_ONCE = 16


def cost(name: str, rounds: int) -> dict[str, Any]:
    """CPU seconds by column, and their ratios to the digital forward."""
    model = load_checkpoint(ROOT / "checkpoints" / f"{name}.safetensors")
    request = CompileRequest(accuracy_mrad=ACCURACY_MRAD)
    loop, held_out = in_loop(
        model, "circuit", EvaluateOptions(tokens=TOKENS, request=request)
    )
    windows = np.concatenate(held_out)[:, :-1].astype(np.int64)
    batches = [
        windows[i : i + WINDOWS_AT_ONCE]
        for i in range(0, len(windows), WINDOWS_AT_ONCE)
    ]
    seconds: dict[str, list[float]] = {column: [] for column in loop.columns}
    for column in loop.columns:  # compiles the kernels
        loop.forward(batches[0][:1], column)
    for _ in range(rounds):
        for column in loop.columns:
            start = time.process_time()
            for batch in batches:
                loop.forward(batch, column)
            seconds[column].append(time.process_time() - start)
    median = {column: float(np.median(times)) for column, times in seconds.items()}
    ratios = {column: median[column] / median["digital"] for column in loop.columns}
    return {"tokens": windows.size, "seconds": median, "over_digital": ratios}


def row(name: str, found: dict[str, Any]) -> str:
    """Line of the page on evaluation: what each engine costs over the digital."""
    ratios = found["over_digital"]
    return f"| `{name}` | {ratios['phase']:.1f} | {ratios['circuit']:.1f} |"


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(NAMES))
    given = parser.parse_args()
    torch.set_num_threads(1)
    found = {}
    for name in given.only.split(","):
        found[name] = cost(name, given.rounds)
        print(row(name, found[name]), flush=True)
    content = {
        "format": "oscc.bench/1",
        "machine": platform.machine(),
        "accuracy_mrad": ACCURACY_MRAD,
        "models": found,
    }
    write_atomic(given.out, dump_json(content))


if __name__ == "__main__":
    main()
