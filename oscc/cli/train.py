"""`oscc train`: train a model family on a text corpus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from oscc.cli.options import Option, Run, setting, verb_command
from oscc.cli.output import Progress, say, table, wrote
from oscc.cli.results import emit
from oscc.errors import RequestError
from oscc.units import counted

if TYPE_CHECKING:
    from oscc.models.training import Progress as Standing

_NOT_OVERRIDES = (
    *("family", "update", "vocabulary", "steps", "resume", "device", "plot"),
)

_WORTH_SAYING = 0.01  # share of the symbols
_LEFT_OUT = {
    "files_not_text": "not UTF-8 text",
    "files_too_short": "shorter than 256 bytes",
}


@verb_command(
    "train",
    text="Train a model family on a text corpus (the standard library's sources "
    "without --text); write checkpoint and metrics.",
    example="oscc train --family fsn --update flow --steps 4000 -o build/trained",
)
@setting("--family", "model.family", group="Input", text="Family of the model.")
@setting("--update", "model.update", group="Input", text="Update of the coupling.")
@setting("--arm", "model.arm", group="Input", text="Arm of SSA.")
@click.option(
    "--text",
    cls=Option,
    group="Input",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Text file or folder to train on.",
)
@click.option(
    "--name", cls=Option, group="Run", help="Name of the files; FAMILY-UPDATE[-kNN]."
)
@setting("--steps", "train.steps", group="Run", text="Optimiser steps.")
@setting(
    "--resume",
    "train.resume",
    group="Run",
    text="Go on from an unfinished run of the same name.",
)
@setting("--plot", "train.plot", group="Run", text="Draw the loss, NAME.curve.svg.")
def command(run: Run, text: Path | None, name: str | None) -> None:
    """Train and print how it went."""
    from oscc.verbs.train import plot_curve, train

    section = run.config.model
    if section.family is None:
        raise RequestError("Give --family, such as --family fsn.")
    out = run.out or Path("checkpoints")
    bar = run.progress()
    result = train(
        section.family,
        section.update or "",
        text=text,
        out=out,
        name=name or "",
        seed=run.config.seed,
        steps=run.config.train.steps,
        overrides=_overrides(run),
        vocabulary=_vocabulary(run),
        resume=run.config.train.resume,
        device=run.config.train.device,
        force=run.force,
        progress=lambda standing: _tell(bar, standing),
    )
    bar.close()
    if run.config.train.plot:
        plot_curve(result)
    if not emit(run, result.metrics):
        _show(result.checkpoint, result.metrics)


def _vocabulary(run: Run) -> str | dict[str, Any]:
    """What a symbol is: the model's own vocabulary, else what the training is told."""
    given, word = run.config.model.vocabulary, run.config.train.vocabulary
    if given is None:
        return word
    if word != "auto":
        raise RequestError(
            f"`model.vocabulary` and `train.vocabulary` ({word}) are both given. "
            "Leave one out."
        )
    return {"characters": given} if isinstance(given, str) else given


def _overrides(run: Run) -> dict[str, Any]:
    every = {
        **msgspec.structs.asdict(run.config.model),
        **msgspec.structs.asdict(run.config.train),
    }
    return {
        name: value
        for name, value in every.items()
        if value is not None and name not in _NOT_OVERRIDES
    }


def _symbols(corpus: Any, count: int) -> str:
    """What the symbols are, and what of the text they do not hold."""
    name, beyond = corpus["vocabulary"], corpus["not_ascii_share"]
    words = [f"vocabulary {name}, {count} symbols"]
    if name == "bytes" and beyond > _WORTH_SAYING:
        words.append(f"{100 * beyond:.3g} % of the characters are not ASCII")
    if corpus["other_share"] > _WORTH_SAYING:
        mend = " (--set train.vocabulary=bytes keeps them)" * (name == "ascii")
        share = f"{100 * corpus['other_share']:.3g} %"
        words.append(f"{share} of the symbols stand for others{mend}")
    for key, what in _LEFT_OUT.items():
        if corpus[key]:
            words.append(f"{counted(corpus[key], 'file')} left out, {what}")
    return " · ".join(words)


def _tell(bar: Progress, standing: Standing) -> None:
    loss = standing.running_nats
    shown = "" if loss is None else f" · loss {loss:.3f} nats"
    skipped = f" · {len(standing.skipped)} skipped" if standing.skipped else ""
    bar(f"step {standing.step}{shown}{skipped}")


def _show(checkpoint: Path, metrics: Any) -> None:
    from oscc.verbs.train_metrics import unit_of

    bits, corpus = metrics["bits_per_character"], metrics["corpus"]
    rows = [(part, f"{value:.4f}") for part, value in bits.items()]
    table(("text", f"bits per {unit_of(metrics)}"), rows, right=(1,))
    say(_symbols(corpus, metrics["model"]["symbols"]))
    say(
        f"{counted(metrics['steps'], 'step')}, "
        f"{len(metrics['steps_skipped'])} skipped · "
        f"{metrics['parameters']} parameters · corpus {metrics['corpus']['name']}, "
        f"sha256 {metrics['corpus']['sha256'][:8]}"
    )
    say(
        f"wrote {wrote(checkpoint)}, {checkpoint.stem}.metrics.json and "
        f"{checkpoint.stem}.curve.jsonl"
    )
