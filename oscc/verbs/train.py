"""Train a model family on a text corpus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oscc.checks import nearest, require_choice
from oscc.errors import RequestError, ToolError
from oscc.files import dump_json, write_atomic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from oscc.corpus import Corpus
    from oscc.models.config import ModelConfig
    from oscc.models.training import Progress, Trainer, TrainingConfig

METRICS_FORMAT = "oscc.metrics/1"
_STANDARD_K = 48
_PHASE_RATE = 1e-2
_LEARNING_RATES = {"ssa": 4e-3, "transformer": 5e-3}  # of models without phases


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
            (one line for every saved state and for the end).
        name: Base name; FAMILY-UPDATE, with -kNN where k is not 48, by default.
        seed: Seed of the start values and of the batches.
        steps: Optimiser steps; the family's default without it.
        overrides: Fields of ModelConfig and TrainingConfig by name.
        resume: Go on from the state of an earlier, unfinished run in `out`.
        device: `cpu`, `cuda`, or `auto`: a GPU that torch can use, else the CPU. The
            same bits for the same seed are promised on the CPU alone.
        force: Replace an existing checkpoint.
        command: What to note as the command in the metrics.
        progress: Called after every saved state.

    Returns:
        Paths and metrics.

    Raises:
        RequestError: an unknown family or setting, a bad corpus, or a checkpoint of
            that name is there and `force` is not given.
        ToolError: `cuda` is asked for, but torch finds no GPU.
        UndecidedError: training diverged; the last good state is kept.

    Example:
        >>> train("fns")
        Traceback (most recent call last):
        oscc.errors.RequestError: Argument `family` must be one of fsn, fsn-mf, \
fsn-no-phase, kuramoto, ssa, transformer, but is 'fns'. Did you mean `fsn`?
    """
    import torch

    from oscc.models.training import Trainer

    config, training = settings(family, update, steps, overrides or {})
    stem = name or default_name(config)
    checkpoint, state = out / f"{stem}.safetensors", out / f"{stem}.state.safetensors"
    _require_free(checkpoint, force)
    threads, placed = torch.get_num_threads(), training_device(device)
    command = command or _command(config, training, text, seed, overrides or {})
    torch.set_num_threads(1)  # sums in one order: the same seed gives the same bits
    try:
        corpus = _corpus(text)
        if "symbols" not in (overrides or {}):  # the corpus says it
            config = config.with_changes(symbols=corpus.vocabulary.size)
        trainer = Trainer(config, training, corpus, seed, placed)
        if resume and state.exists():
            trainer.load_state(state)
        trainer.run(state, _reporting(trainer, checkpoint, progress))
        metrics = _metrics(trainer, command)
    finally:
        torch.set_num_threads(threads)
    return _write(trainer, checkpoint, state, metrics)


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


def _require_free(checkpoint: Path, force: bool) -> None:
    if checkpoint.exists() and not force:
        raise RequestError(
            f"`{checkpoint}` is there already. Choose another -o, or give --force."
        )


def settings(
    family: str, update: str, steps: int | None, overrides: Mapping[str, Any]
) -> tuple[ModelConfig, TrainingConfig]:
    """Model and training settings, overrides sorted to where they belong.

    Raises:
        RequestError: a name belongs to neither.

    Example:
        >>> settings("fsn", "flow", 10, {"k": 16})[1].steps
        10
    """
    from oscc.models.config import ModelConfig
    from oscc.models.training import TrainingConfig

    model_keys = {f.name for f in fields(ModelConfig)}
    training_keys = {f.name for f in fields(TrainingConfig)}
    unknown = [key for key in overrides if key not in model_keys | training_keys]
    if unknown:
        raise RequestError(
            f"Unknown key `{unknown[0]}` for training."
            f"{nearest(unknown[0], model_keys | training_keys)}"
        )
    model = {key: value for key, value in overrides.items() if key in model_keys}
    other = {key: value for key, value in overrides.items() if key in training_keys}
    other.setdefault("learning_rate", _LEARNING_RATES.get(family, _PHASE_RATE))
    if steps is not None:
        other["steps"] = steps
    if update:
        model["update"] = update
    config = ModelConfig.from_mapping({"family": family, **model})
    return config, TrainingConfig(**other)


def default_name(config: ModelConfig) -> str:
    """Base name of the checkpoint files: FAMILY-UPDATE, with -kNN for other sizes.

    SSA is named by its arm, and a transformer by its family alone: they have no update.

    Example:
        >>> from oscc.models.config import ModelConfig
        >>> default_name(ModelConfig("fsn", "flow", k=8))
        'fsn-flow-k08'
    """
    size = "" if config.k == _STANDARD_K else f"-k{config.k:02d}"
    kind = config.arm if config.family == "ssa" else config.update
    kind = "" if kind == "none" else f"-{kind}"
    return f"{config.family}{kind}{size}"


def _corpus(text: Path | None) -> Any:
    from oscc.corpus import standard_library, text_corpus

    return standard_library() if text is None else text_corpus(text)


def _command(
    config: ModelConfig,
    training: TrainingConfig,
    text: Path | None,
    seed: int,
    overrides: Mapping[str, Any],
) -> str:
    """Command line that repeats this training."""
    parts = [f"oscc train --family {config.family}"]
    if config.update != "none":
        parts.append(f"--update {config.update}")
    if text is not None:
        parts.append(f"--text {text.name}")
    parts.append(f"--seed {seed} --set train.steps={training.steps}")
    for key, value in sorted((k, v) for k, v in overrides.items() if k != "steps"):
        section = "model" if hasattr(config, key) else "train"
        parts.append(f"--set {section}.{key}={value}")
    return " ".join(parts)


def _metrics(trainer: Trainer, command: str) -> dict[str, Any]:
    import platform

    import torch

    from oscc.models.training import bits_per_character, drive_quantiles

    model, config, corpus = trainer.model, trainer.config, trainer.corpus
    done = trainer.progress
    held_out = corpus.held_out
    exact = bits_per_character(model, config, held_out, "validation batch")
    coarse = bits_per_character(
        model, config, held_out, "validation batch", exact=False
    )
    return {
        "format": METRICS_FORMAT,
        "command": command,
        "seed": trainer.seed,
        "steps": done.step,
        "steps_skipped": done.skipped,
        "largest_gradient_norm": done.largest_norm,
        "symbols_seen": done.step * trainer.training.batch * config.context,
        "corpus": _corpus_facts(corpus),
        "bits_per_character": {
            "train": bits_per_character(model, config, corpus.train, "train batch"),
            "validation": exact,
        },
        "integrator_gap": {"bits_per_character": coarse - exact},
        "drive": drive_quantiles(model, config, held_out),
        "parameters": sum(p.numel() for p in model.parameters()),
        "curve": done.curve,
        "model": asdict(config),
        "training": asdict(trainer.training),
        "device": _device_name(trainer.device),
        "versions": {"torch": torch.__version__, "python": platform.python_version()},
    }


def _device_name(device: str) -> str:
    import torch

    return device if device == "cpu" else str(torch.cuda.get_device_name(device))


def _corpus_facts(corpus: Corpus) -> dict[str, Any]:
    return {
        "name": corpus.name,
        "sha256": corpus.digest,
        "files": corpus.files,
        "train_symbols": len(corpus.train),
        "held_out_symbols": len(corpus.held_out),
    }


def _reporting(
    trainer: Trainer, checkpoint: Path, progress: Callable[[Progress], None] | None
) -> Callable[[Progress], None]:
    """Write the curve so far as JSON lines, then call what the caller gave.

    The file is written whole every time: a resumed run writes no line twice.
    """

    def report(standing: Progress) -> None:
        write_atomic(checkpoint.with_suffix(".curve.jsonl"), _lines(trainer))
        if progress is not None:
            progress(standing)

    return report


def _lines(trainer: Trainer) -> str:
    import json

    symbols = trainer.training.batch * trainer.config.context
    rows = [
        {
            "step": int(step),
            "symbols_seen": int(step) * symbols,
            "train_bits_per_character": bits,
            "learning_rate": trainer.learning_rate(int(step)),
            "steps_skipped": sum(s <= step for s in trainer.progress.skipped),
        }
        for step, bits in trainer.progress.curve
    ]
    return "".join(json.dumps(row, sort_keys=True) + "\n" for row in rows)


def plot_curve(result: TrainResult) -> Path:
    """Draw training loss against steps beside the checkpoint, as NAME.curve.svg.

    Returns:
        The path of the picture.
    """
    from oscc.pages.svg import svg_file

    metrics, name = result.metrics, result.checkpoint.stem
    held_out = metrics["bits_per_character"]["validation"]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        points = metrics["curve"]
        axes.plot(
            [step for step, _ in points],
            [bits for _, bits in points],
            label="training, running mean",
        )
        label = f"validation, at the end: {held_out:.3f}"
        axes.axhline(held_out, ls="--", color="0.4", label=label)
        axes.set(xlabel="step", ylabel="bits per character", title=name)
        axes.legend()

    path = result.checkpoint.with_suffix(".curve.svg")
    write_atomic(path, svg_file(draw, (5.0, 3.2), "curve"))
    return path


def _write(
    trainer: Trainer, checkpoint: Path, state: Path, metrics: dict[str, Any]
) -> TrainResult:
    from oscc.checkpoint import save_checkpoint

    save_checkpoint(
        checkpoint, trainer.model, trainer.config, trainer.corpus.vocabulary
    )
    metrics_path = checkpoint.with_suffix(".metrics.json")
    write_atomic(metrics_path, dump_json(metrics))
    write_atomic(checkpoint.with_suffix(".curve.jsonl"), _lines(trainer))
    state.unlink(missing_ok=True)
    return TrainResult(checkpoint, metrics_path, metrics)
