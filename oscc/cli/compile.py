"""`oscc compile`: a checkpoint and a text to a build folder."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from oscc.checks import near_file
from oscc.cli import shared
from oscc.cli.options import Option, Run, setting, verb_command
from oscc.cli.output import say, table, wrote
from oscc.cli.results import emit, model_section
from oscc.errors import RequestError

if TYPE_CHECKING:
    from oscc.ir.program import Program
    from oscc.ir.stage import Stage

_DEVICE, _ACCURACY = {"group": "Device"}, {"group": "Accuracy"}


@verb_command(
    "compile",
    text="Compile CHECKPOINT and a text to a build folder: program, decks of a sample, "
    "manifest.",
    example='oscc compile checkpoints/fsn-flow.safetensors --text "import os" '
    "-o build/first",
)
@click.argument("checkpoint", type=click.Path(path_type=Path))
@click.option("--text", cls=Option, group="Input", help="The input itself.")
@click.option(
    "--text-file",
    cls=Option,
    group="Input",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="File that holds the input.",
)
@setting(
    "--max-tokens",
    "compile.max_tokens",
    group="Input",
    text="Keep the first tokens of a longer text.",
)
@shared.UNKNOWN
@shared.KEY
@setting(
    "--layers", "compile.layers", group="Input", text="Layers to lower, such as 0,1."
)
@setting(
    "--mode",
    "compile.mode",
    group="Input",
    text="What is computed: every token of the text, or the last one alone.",
)
@shared.DEVICE
@setting("--coupler", "compile.coupler", **_DEVICE, text="Kind of coupler.")
@setting(
    "--fidelity",
    "compile.fidelity",
    **_DEVICE,
    text="What a deck holds; one of pair cells always holds real oscillators.",
)
@shared.UPDATE
@shared.MEAN_FIELD
@shared.SCORE
@setting("--scheme", "compile.scheme", **_ACCURACY, text="How dwells are combined.")
@setting("--substeps", "compile.substeps", **_ACCURACY, text="Substeps S of a stage.")
@setting(
    "--periods",
    "compile.periods",
    **_ACCURACY,
    text="Oscillator periods P of the short dwell, instead of an accuracy; of pair "
    "cells of the one dwell.",
)
@setting(
    "--accuracy-mrad",
    "compile.accuracy_mrad",
    **_ACCURACY,
    text="Wanted rms phase error of a stage; pair cells are judged in their coherence.",
)
@setting(
    "--deck-targets",
    "compile.deck_targets",
    group="Run",
    text="Targets, or pair cells, of a layer whose decks are written.",
)
def command(
    run: Run, checkpoint: Path, text: str | None, text_file: Path | None
) -> None:
    """Compile and print what was made."""
    from oscc.verbs.compile import compile_folder

    began = time.perf_counter()
    out = run.out or Path("build") / checkpoint.stem
    program = compile_folder(
        checkpoint,
        out,
        _input(text, text_file),
        _request(run),
        key=run.config.compile.key,
        model_config=model_section(run),
        force=run.force,
    )
    run.log.folder = out
    from oscc.build import FORMAT
    from oscc.files import read_json

    if not emit(run, read_json(out / "manifest.json", FORMAT)):
        _show(program, out, time.perf_counter() - began)


def _input(text: str | None, file: Path | None) -> str:
    if text is None and file is None:
        raise RequestError("Give the input as --text STRING or as --text-file PATH.")
    if text is not None and file is not None:
        raise RequestError("Give the input as --text or as --text-file, not as both.")
    if text is not None or file is None:
        return text or ""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise RequestError(
            f"`{file}` is not UTF-8 text: byte {error.start} is {byte:#04x}."
        ) from error
    except FileNotFoundError as error:
        raise RequestError(f"`{file}` does not exist.{near_file(file)}") from error
    except OSError as error:
        raise RequestError(
            f"`{file}` cannot be read: {error.strerror}. Name a text file."
        ) from error


def _request(run: Run) -> Any:
    from oscc.verbs.compile import CompileRequest

    section = run.config.compile
    if "compile.periods" in run.given and "compile.accuracy_mrad" in run.given:
        raise RequestError(
            "--periods and --accuracy-mrad exclude each other: the accuracy chooses "
            "the periods."
        )
    fields = {
        name: getattr(section, name)
        for name in section.__struct_fields__
        if name != "key"
    }
    return CompileRequest(**fields, seed=run.config.seed, threads=run.jobs)


_COLUMNS = (
    "stage",
    "targets",
    "coupled pairs",
    "harmonics",
    "update",
    "scheme",
    "dwell",
)


def _show(program: Program, out: Path, seconds: float) -> None:
    from oscc.units import counted

    count = counted(int(program.tokens.size), "token")
    if program.computed_tokens < program.tokens.size:
        count = f"token {int(program.tokens.size) - 1} of {count}"
    say(f"{program.family} · {count} · device {program.device.get('name')}")
    table(_COLUMNS, [_row(stage) for stage in program.stages], right=(1, 2, 3, 6))
    for record in program.provenance.get("passes", ()):
        for one in record.get("correlations", ()):
            say(f"{one['correlation']}: {_tanks(one)}")
        for stage in record.get("stages", ()):
            for line in _lines(stage, program.accuracy_rad):
                say(f"{stage['stage']}: {line}")
    for note in program.notes:
        say(f"note: {note}")
    say(f"wrote {wrote(out)}: {_files(out)}   [{seconds:.1f} s]")
    say(f"next: oscc verify {wrote(out)}")


def _row(stage: Stage) -> tuple[str, ...]:
    from oscc.ir.plan import total_periods
    from oscc.ir.views import coupled_pairs
    from oscc.units import grouped

    return (
        stage.name,
        grouped(stage.targets),
        grouped(coupled_pairs(stage)),
        str(stage.harmonics[-1]),
        stage.update,
        f"{stage.scheme} {stage.substeps} x {stage.dwell_periods}",
        f"{total_periods(stage)} T",
    )


def _lines(stage: Mapping[str, Any], asked_rad: float) -> Iterator[str]:
    """What the passes found out about a stage."""
    from oscc.units import si_text

    if stage.get("predicted_rms_rad") is not None:
        found = si_text(stage["predicted_rms_rad"], "rad")
        wanted = si_text(stage.get("asked_rad", asked_rad), "rad")
        yield f"predicted {found} rms (asked {wanted})"
    if stage.get("undecided_share") is not None:
        open_share = 100 * stage["undecided_share"]
        yield f"{open_share:.1f} % of the cells are too near their edge to be decided"
    if stage.get("share_of_limit") is not None:
        yield f"largest injection {stage['share_of_limit']:.2f} of the card's limit"


def _tanks(one: Mapping[str, Any]) -> str:
    """What the pass chose for a correlation, and what it leaves."""
    return (
        f"correlation, tanks of quality {one['quality']:g}, {one['settle_periods']} + "
        f"{one['periods']} T; harmonics leave {one['leakage_rms_nat']:.2g} nat rms"
    )


def _files(out: Path) -> str:
    from oscc.units import counted

    decks = counted(sum(1 for _ in out.glob("netlist/*/*.cir")), "deck")
    return f"program.safetensors, netlist/ ({decks}), manifest.json"
