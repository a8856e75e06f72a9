"""Figures of a trained model, and its curve as lines and as a picture."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oscc.files import write_atomic
from oscc.verbs.train_files import METRICS_FORMAT, PICTURE_MARK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from oscc.corpus import Corpus
    from oscc.models.training import Trainer


def metrics_of(trainer: Trainer, command: str) -> dict[str, Any]:
    """Content of the metrics file, but for the digest of the checkpoint.

    Args:
        trainer: A run that is done, its model on the CPU.
        command: What repeats the run.
    """
    import platform

    import torch

    from oscc.models.training import drive_quantiles

    model, config, corpus = trainer.model, trainer.config, trainer.corpus
    done = trainer.progress
    bits, gap = _bits(trainer)
    return {
        "format": METRICS_FORMAT,
        "command": command,
        "seed": trainer.seed,
        "steps": done.step,
        "steps_skipped": done.skipped,
        "largest_gradient_norm": done.largest_norm,
        "symbols_seen": done.step * trainer.training.batch * config.context,
        "corpus": _corpus_facts(corpus),
        "bits_per_character": bits,
        "integrator_gap": {"bits_per_character": gap},
        "drive": drive_quantiles(model, config, corpus.held_out),
        "parameters": sum(p.numel() for p in model.parameters()),
        "curve": done.curve,
        "validation_curve": [
            [step, value]
            for (step, _), value in zip(done.curve, done.validation, strict=True)
        ],
        "model": asdict(config),
        "training": asdict(trainer.training),
        "device": _device_name(trainer.device),
        "versions": {"torch": torch.__version__, "python": platform.python_version()},
    }


def _bits(trainer: Trainer) -> tuple[dict[str, float], float]:
    """Bits a symbol by part of the corpus, and what the training integrator adds."""
    from oscc.models.training import bits_per_character

    model, config, corpus = trainer.model, trainer.config, trainer.corpus
    parts = {"train": corpus.train, "validation": corpus.held_out}
    if len(corpus.test):  # read once, here
        parts["test"] = corpus.test
    bits = {
        name: bits_per_character(model, config, part, f"{name} batch")
        for name, part in parts.items()
    }
    coarse = bits_per_character(
        model, config, corpus.held_out, "validation batch", exact=False
    )
    return bits, coarse - bits["validation"]


def _device_name(device: str) -> str:
    import torch

    return device if device == "cpu" else str(torch.cuda.get_device_name(device))


def _corpus_facts(corpus: Corpus) -> dict[str, Any]:
    facts = {
        "name": corpus.name,
        "sha256": corpus.digest,
        "files": corpus.files,
        "files_not_text": corpus.not_text,
        "files_too_short": corpus.too_short,
        "train_symbols": len(corpus.train),
        "held_out_symbols": len(corpus.held_out),
        "vocabulary": corpus.vocabulary.name,
        "other_share": corpus.other_share,
        "not_ascii_share": corpus.not_ascii,
    }
    return facts | ({"test_symbols": len(corpus.test)} if len(corpus.test) else {})


def curve_lines(trainer: Trainer) -> str:
    """The curve so far, one JSON line for every saved state.

    Whole every time: a resumed run writes no line twice.
    """
    from oscc.models.training import CURVE_BATCHES

    symbols = trainer.training.batch * trainer.config.context
    p = trainer.progress
    rows = [
        {
            "step": int(step),
            "symbols_seen": int(step) * symbols,
            "train_bits_per_character": bits,
            "validation_bits_per_character": held_out,
            "validation_batches": CURVE_BATCHES,
            "learning_rate": trainer.learning_rate(int(step)),
            "largest_gradient_norm": norm if math.isfinite(norm) else None,
            "steps_skipped": sum(s <= step for s in p.skipped),
        }
        for (step, bits), held_out, norm in zip(
            p.curve, p.validation, p.norms, strict=True
        )
    ]
    return "".join(json.dumps(row, sort_keys=True) + "\n" for row in rows)


def unit_of(metrics: Mapping[str, Any]) -> str:
    """What a symbol is: `byte` or `character`.

    Example:
        >>> unit_of({"corpus": {"vocabulary": "bytes"}})
        'byte'
    """
    return "byte" if metrics["corpus"]["vocabulary"] == "bytes" else "character"


def draw_curve(
    metrics: Mapping[str, Any], norms: Sequence[Sequence[float | None]], path: Path
) -> None:
    """Draw training and validation loss, and gradient norms, against steps.

    Args:
        metrics: Content of the metrics file.
        norms: Rows [step, largest gradient norm since the row before].
        path: The picture.
    """
    from oscc.pages.svg import svg_file

    held_out = metrics["bits_per_character"]["validation"]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.set_gid(PICTURE_MARK)
        curves = {
            "training, running mean": (metrics["curve"], "-"),
            "validation, a few batches": (metrics["validation_curve"], ".-"),
        }
        for label, (points, style) in curves.items():
            axes.plot(*_columns(points), style, label=label)
        label = f"validation, at the end: {held_out:.3f}"
        axes.axhline(held_out, ls="--", color="0.4", label=label)
        name = path.name.removesuffix(".curve.svg")
        axes.set(xlabel="step", ylabel=f"bits per {unit_of(metrics)}", title=name)
        axes.plot([], [], ":", color="0.6", label="gradient norm, on the right")
        beside = axes.twinx()
        beside.plot(*_columns(norms), ":", color="0.6")
        beside.set(ylabel="largest gradient norm before clipping")
        axes.legend()

    write_atomic(path, svg_file(draw, (5.0, 3.2), "curve"))


def _columns(points: Sequence[Sequence[float | None]]) -> tuple[list[Any], list[Any]]:
    return [step for step, _ in points], [value for _, value in points]
