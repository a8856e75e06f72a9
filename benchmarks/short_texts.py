"""Does a scheme that `auto` chose meet the accuracy on short texts?

Compiles seeded pieces of held-out library text, 1 to 64 characters long, at 10 mrad and
judges level circuit on every target. Short texts are the hard case: few targets, so
that one start next to a repeller decides. Writes benchmarks/results/short_texts.json,
or, with `--mode decode`, which has targets of the last token alone, the file
short_texts_decode.json.

    python benchmarks/short_texts.py [--pieces N] [--mode decode]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from oscc.checkpoint import LoadedCheckpoint, load_checkpoint
from oscc.corpus import Symbols, standard_library
from oscc.files import dump_json, write_atomic
from oscc.ir.plan import total_periods
from oscc.seeds import stream
from oscc.verbs.compile import compile
from oscc.verbs.verify import VerifyOptions, verify

ROOT = Path(__file__).parents[1]
CHECKPOINTS = ("fsn-flow", "kuramoto-flow")
LONGEST = 64
CIRCUIT = VerifyOptions(levels=("circuit",))


def pieces(model: LoadedCheckpoint, symbols: Symbols, count: int) -> list[str]:
    """Pieces of text at seeded places, of seeded lengths."""
    random = stream(0, "short texts")
    lengths = random.integers(1, LONGEST + 1, count)
    starts = random.integers(0, len(symbols) - LONGEST, count)
    known = (symbols[s : s + n] for s, n in zip(starts, lengths, strict=True))
    return [model.vocabulary.decode(piece) for piece in known]


def judged(
    model: LoadedCheckpoint, text: str, mode: str = "prefill"
) -> tuple[bool, float, int, float]:
    """Whether level circuit passed, its rms, slips, and mean periods of a stage."""
    program = compile(model, text, unknown="other", mode=mode)
    level = verify(program, options=CIRCUIT).levels[0]
    periods = float(np.mean([total_periods(stage) for stage in program.stages]))
    return bool(level.passed), float(level.rms_rad or 0.0), level.slips, periods


def main() -> None:
    """Judge every piece, print a line a checkpoint, write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pieces", type=int, default=100)
    parser.add_argument("--mode", choices=("prefill", "decode"), default="prefill")
    given = parser.parse_args()
    held_out = standard_library().held_out
    results: dict[str, Any] = {}
    for name in CHECKPOINTS:
        model = load_checkpoint(ROOT / "checkpoints" / f"{name}.safetensors")
        texts = pieces(model, held_out, given.pieces)
        rows = [judged(model, text, given.mode) for text in texts]
        passed, rms, slips, periods = zip(*rows, strict=True)
        results[name] = seen = {
            "pieces": len(rows),
            "failed": len(rows) - sum(passed),
            "largest_rms_rad": max(rms),
            "median_rms_rad": float(np.median(rms)),
            "slips": sum(slips),
            "periods_per_stage": float(np.mean(periods)),
        }
        print(
            f"{name}: {seen['failed']} of {seen['pieces']} failed, largest "
            f"{1e3 * seen['largest_rms_rad']:.2f} mrad rms, {seen['slips']} slips, "
            f"{seen['periods_per_stage']:.1f} periods a stage",
            flush=True,
        )
    content = {"format": "oscc.benchmark/1", "accuracy_mrad": 10, "results": results}
    suffix = "" if given.mode == "prefill" else f"_{given.mode}"
    target = ROOT / "benchmarks" / "results" / f"short_texts{suffix}.json"
    write_atomic(target, dump_json(content))


if __name__ == "__main__":
    main()
