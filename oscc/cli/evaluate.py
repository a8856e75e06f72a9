"""`oscc evaluate`: bits per character with the hardware in the loop."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from oscc.cli import shared
from oscc.cli.evaluate_text import show
from oscc.cli.options import Option, Run, setting, verb_command
from oscc.cli.output import Progress, wrote
from oscc.cli.results import emit, model_section
from oscc.errors import RequestError

if TYPE_CHECKING:
    from oscc.verbs.compile import CompileRequest
    from oscc.verbs.evaluate_spice import SpiceRequest


@verb_command(
    "evaluate",
    text="Bits per character of CHECKPOINT on held-out text, with an engine in the "
    "loop layer by layer.",
    example="oscc evaluate checkpoints/fsn-flow.safetensors --engine circuit "
    "--tokens 2000",
)
@click.argument("checkpoint", type=click.Path(path_type=Path))
@setting("--engine", "evaluate.engine", group="Input", text="phase or circuit.")
@click.option(
    "--text",
    cls=Option,
    group="Input",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Text file or folder, used whole; else the held-out standard library.",
)
@setting("--tokens", "evaluate.tokens", group="Input", text="Fewest tokens.")
@shared.UNKNOWN
@shared.KEY
@shared.DEVICE
@shared.UPDATE
@shared.MEAN_FIELD
@shared.SCORE
@setting(
    "--accuracy-mrad",
    "evaluate.accuracy_mrad",
    group="Accuracy",
    text="Wanted rms phase error of a stage.",
)
@setting(
    "--spice",
    "evaluate.spice",
    group="Accuracy",
    text="Run this many targets of each coupling step, drawn over the text, in SPICE.",
)
@setting(
    "--simulator",
    "evaluate.simulator",
    group="Accuracy",
    text="Simulator of --spice: ngspice, gnucap or pyspice; else ngspice and gnucap.",
)
def command(run: Run, checkpoint: Path, text: Path | None) -> int:
    """Evaluate and print the table."""
    from oscc.checkpoint import load_checkpoint
    from oscc.verbs.evaluate import EvaluateOptions, evaluate

    model = load_checkpoint(
        checkpoint, key=run.config.compile.key, model_config=model_section(run)
    )
    out = run.out or Path("build") / f"{checkpoint.stem}-evaluate"
    _require_place(out, model.digest)
    section = run.config.evaluate
    bar, kept = run.progress(), list[Path]()
    options = EvaluateOptions(
        tokens=section.tokens,
        request=_request(run),
        lock_step=section.lock_step,
        progress=lambda column, done, total: bar(f"{column} {done}/{total} windows"),
        spice=_spice(run, out),
        keep=lambda content: kept.append(_write(run, out, content)),
    )
    with _interruptible(bar, kept):
        content = evaluate(model, section.engine, text=text, options=options)
    path = _write(run, out, content)
    if not emit(run, content):
        show(content, path)
    return int(content["spice"]["exit_status"]) if "spice" in content else 0


def _request(run: Run) -> CompileRequest:
    """How stages are made: as compile makes them, to evaluate's own accuracy."""
    from oscc.verbs.compile import CompileRequest

    section = run.config.compile
    return CompileRequest(
        device=section.device,
        update=section.update,
        unknown=section.unknown,
        scheme=section.scheme,
        substeps=section.substeps,
        periods=section.periods,
        mean_field=section.mean_field,
        score=section.score,
        accuracy_mrad=run.config.evaluate.accuracy_mrad,
        seed=run.config.seed,
        threads=run.jobs,
        lock_coupling=section.lock_coupling,
        lock_margin=section.lock_margin,
        lock_mode=section.lock_mode,
    )


def _spice(run: Run, out: Path) -> SpiceRequest | None:
    """SPICE on a sample, where it is asked for; its decks go beside the result."""
    from oscc.cli.simulate import simulate_options
    from oscc.verbs.evaluate_spice import SpiceRequest

    section = run.config.evaluate
    if section.spice is None:
        if section.simulator is not None:
            raise RequestError(
                "--simulator says what runs the targets of --spice; give --spice N too."
            )
        return None
    decks = out / "spice"
    options = replace(simulate_options(run), stages=None, targets=None, decks=decks)
    return SpiceRequest(section.spice, section.simulator or "", options)


@contextlib.contextmanager
def _interruptible(bar: Progress, kept: list[Path]) -> Iterator[None]:
    """End the bar; say of an interruption which figures are lost.

    Those of the loop are kept before SPICE begins.
    """
    try:
        yield
        bar.close()
    except KeyboardInterrupt as error:
        lost = (
            "no figure was written: they are put together when every window has run. "
            "Run it again, with fewer --tokens or a shorter --text for less time."
        )
        done = [
            f"SPICE was not finished; the figures of the loop are in {wrote(path)}."
            for path in kept
        ]
        raise KeyboardInterrupt(*(done or [lost])) from error


def _require_place(out: Path, checkpoint: str) -> None:
    """A build of the same checkpoint, or a folder of its own."""
    from oscc.build import BuildFolder
    from oscc.cli.results import require_place
    from oscc.verbs.evaluate import FORMAT

    if not (out / "manifest.json").is_file():
        require_place(out, "evaluate.json", FORMAT)
        return
    made_from = BuildFolder.open(out).program().provenance.get("checkpoint_sha256")
    if made_from != checkpoint:
        raise RequestError(
            f"`{out}` was compiled from checkpoint {str(made_from)[:8]}, this one is "
            f"{checkpoint[:8]}. Choose another -o."
        )


def _write(run: Run, out: Path, content: dict[str, Any]) -> Path:
    from oscc.build import BuildFolder
    from oscc.cli.results import write_into

    run.log.folder = out
    if not (out / "manifest.json").is_file():
        write_into(out, "evaluate.json", content)
        return out / "evaluate.json"
    folder = BuildFolder.open(out)
    with folder.locked():
        return folder.write_json("evaluate.json", content)
