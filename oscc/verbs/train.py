"""Train a model family on a text corpus."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oscc.checks import require_choice
from oscc.errors import ToolError, UndecidedError
from oscc.files import dump_json, sha256_file, write_atomic
from oscc.interrupts import stop_noted
from oscc.verbs.train_files import METRICS_FORMAT, RunFiles
from oscc.verbs.train_metrics import curve_lines, draw_curve, metrics_of
from oscc.verbs.train_settings import (
    Request,
    command_line,
    default_name,
    plain_name,
    settings,
    wanted_vocabulary,
)

if TYPE_CHECKING:
    from oscc.corpus import Corpus
    from oscc.models.training import Progress, Trainer

__all__ = [
    "METRICS_FORMAT",
    "TrainResult",
    "default_name",
    "plot_curve",
    "settings",
    "train",
    "training_device",
]


@dataclass(frozen=True, slots=True, eq=False)
class TrainResult:
    """Files a training wrote, with the content of the metrics file."""

    checkpoint: Path
    metrics_path: Path
    metrics: Mapping[str, Any]


def train(
    family: str,
    update: str = "",
    *,
    text: Path | None = None,
    out: Path = Path("checkpoints"),
    name: str = "",
    seed: int = 0,
    steps: int | None = None,
    overrides: Mapping[str, Any] | None = None,
    vocabulary: str | Mapping[str, Any] = "auto",
    resume: bool = True,
    device: str = "auto",
    force: bool = False,
    command: str = "",
    progress: Callable[[Progress], None] | None = None,
) -> TrainResult:
    """Train a model, write its checkpoint and its metrics.

    Args:
        family: A name in FAMILIES.
        update: `flow` or `euler`; the family's default if empty.
        text: Text file or folder; the interpreter's standard library without it.
        out: Folder of `NAME.safetensors`, `NAME.metrics.json` and `NAME.curve.jsonl`
            (one line for every saved state, the last at the end).
        name: Base name; FAMILY-UPDATE, with -kNN where k is not 48, by default.
        seed: Seed of the start values and of the batches.
        steps: Optimiser steps; the family's default without it.
        overrides: Fields of ModelConfig and TrainingConfig by name.
        vocabulary: `ascii`, `bytes`, `auto` (ASCII where at most 5 % of the characters
            would be its symbol for others, and for the standard library), or a mapping
            of `characters` and `other`.
        resume: Go on from the state of an earlier, unfinished run in `out`.
        device: `cpu`, `cuda`, or `auto`: a GPU that torch can use, else the CPU. The
            same bits for the same seed are promised on the CPU alone.
        force: Replace an existing checkpoint and its metrics.
        command: What to note as the command in the metrics.
        progress: Called after every saved state.

    Returns:
        Paths and metrics.

    Raises:
        RequestError: an unknown family or setting, a bad corpus, a folder that cannot
            be written or whose files are none of ours, a checkpoint of that name
            without `force`, or another run of that name.
        ToolError: `cuda` is asked for, but torch finds no GPU.
        UndecidedError: training diverged; the state saved before is kept, and beside
            it the weights of the lowest held-out loss until then, as the checkpoint
            `NAME.last-good.safetensors`.
        KeyboardInterrupt: asked to stop; the state is saved after the step.

    Example:
        >>> train("fns")
        Traceback (most recent call last):
        oscc.errors.RequestError: Argument `family` must be one of fsn, fsn-mf, \
fsn-no-phase, kuramoto, ssa, transformer, but is 'fns'. Did you mean `fsn`?
    """
    from oscc.models.training import Trainer

    overrides = overrides or {}
    config, training = settings(family, update, steps, overrides)
    files = RunFiles(out, plain_name(name or default_name(config)))
    files.require_free(force=force)
    placed = training_device(device)
    asked = Request(seed, text.name if text else "", name, vocabulary, device)
    with _one_thread():
        corpus = _corpus(text, vocabulary)
        if "symbols" not in overrides:  # the corpus says it
            config = config.with_changes(symbols=corpus.vocabulary.size)
        trainer = Trainer(config, training, corpus, seed, placed)
        with files.locked():
            files.require_free(force=force)  # another run may have ended meanwhile
            if resume and files.state.exists():
                trainer.load_state(files.state)
            _run(trainer, files, progress)
            with _kept(trainer, files):
                command = command or command_line(config, training, asked, overrides)
                return _write(trainer, files, metrics_of(trainer, command))


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Sums in one order: the same seed gives the same bits."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _corpus(text: Path | None, vocabulary: str | Mapping[str, Any]) -> Corpus:
    from oscc.corpus import standard_library, text_corpus

    wanted = wanted_vocabulary(vocabulary)
    if text is not None:
        return text_corpus(text, wanted)
    return standard_library(vocabulary="ascii" if wanted == "auto" else wanted)


def _run(
    trainer: Trainer, files: RunFiles, progress: Callable[[Progress], None] | None
) -> None:
    """Do the steps; what a run that ends early leaves is told by the exception."""

    def report(standing: Progress) -> None:
        write_atomic(files.curve, curve_lines(trainer))
        if progress is not None:
            progress(standing)

    try:
        with _kept(trainer, files), stop_noted() as stopped:
            trainer.run(files.state, report, stopped)
    except UndecidedError as error:
        raise UndecidedError(f"{error}{_last_good(trainer, files)}") from error


@contextlib.contextmanager
def _kept(trainer: Trainer, files: RunFiles) -> Iterator[None]:
    """Say of an interruption what is kept, and how to go on."""
    try:
        yield
    except KeyboardInterrupt as error:
        if trainer.saved_step is None:
            raise
        raise KeyboardInterrupt(
            f"step {trainer.saved_step} of {trainer.training.steps} is saved in "
            f"`{files.state}`. The same command goes on from there (without "
            "--no-resume)."
        ) from error


def _last_good(trainer: Trainer, files: RunFiles) -> str:
    """Write the best weights of a run that diverged as a checkpoint; say so."""
    from oscc.checkpoint import save_checkpoint

    if not trainer.good:
        return ""
    trainer.model.load_state_dict(trainer.good)
    vocabulary = trainer.corpus.vocabulary
    save_checkpoint(files.last_good, trainer.model, trainer.config, vocabulary)
    return (
        " The weights of the lowest held-out loss before, those of step "
        f"{trainer.progress.good_step}, are the checkpoint `{files.last_good}`."
    )


def training_device(wanted: str) -> str:
    """Where to train: `cpu` or `cuda`.

    Raises:
        RequestError: no such choice.
        ToolError: `cuda` is asked for, but torch finds no GPU.

    Example:
        >>> training_device("cpu")
        'cpu'
    """
    import torch

    require_choice("device", wanted, ("auto", "cpu", "cuda"))
    found = torch.cuda.is_available()
    if wanted == "cuda" and not found:
        raise ToolError(
            f"torch {torch.__version__} finds no GPU to train on. Install a build of "
            "torch for yours, or give --set train.device=cpu."
        )
    return "cuda" if found and wanted != "cpu" else "cpu"


def plot_curve(result: TrainResult) -> Path:
    """Draw loss and gradient norms against steps, as NAME.curve.svg beside the rest.

    Returns:
        The path of the picture.
    """
    lines = result.checkpoint.with_suffix(".curve.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in lines.splitlines()]
    path = result.checkpoint.with_suffix(".curve.svg")
    draw_curve(
        result.metrics,
        [[row["step"], row["largest_gradient_norm"]] for row in rows],
        path,
    )
    return path


def _write(trainer: Trainer, files: RunFiles, metrics: dict[str, Any]) -> TrainResult:
    from oscc.checkpoint import save_checkpoint

    save_checkpoint(
        files.checkpoint, trainer.model, trainer.config, trainer.corpus.vocabulary
    )
    metrics["checkpoint_sha256"] = sha256_file(files.checkpoint)
    write_atomic(files.metrics, dump_json(metrics))
    write_atomic(files.curve, curve_lines(trainer))
    for path in (files.state, files.last_good):
        path.unlink(missing_ok=True)
    return TrainResult(files.checkpoint, files.metrics, metrics)
