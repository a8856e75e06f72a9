"""`oscc verify`: judge a build level by level; the exit status follows the verdict."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from oscc.cli.options import Run, setting, verb_command
from oscc.cli.output import say, wrote
from oscc.cli.results import build_folder, emit
from oscc.cli.simulate import simulate_options


@verb_command(
    "verify",
    text="Judge BUILD level by level, split the gap by cause, and write verify.json.",
    example="oscc verify build/first --levels ir,phase,circuit",
)
@click.argument("build", type=click.Path(path_type=Path))
@setting(
    "--levels",
    "verify.levels",
    group="Input",
    text="Levels: ir, phase, circuit, spice or spice:ENGINE.",
)
@setting(
    "--targets",
    "simulate.targets",
    group="Input",
    text="Targets of a simulator: a number, all, or TOKEN,COORDINATE;...",
)
@setting(
    "--tile",
    "verify.tile",
    group="Accuracy",
    text="Run a tile of real cells too, and report its gap.",
)
def command(run: Run, build: Path) -> int:
    """Judge and print the verdict."""
    from oscc.verbs.verify import VerifyOptions, verify_folder

    section = run.config.verify
    tolerances = msgspec.structs.asdict(section.tolerance_rad)
    folder = build_folder(run, build)
    verdict = verify_folder(
        folder,
        VerifyOptions(
            levels=section.levels,
            tolerance_rad={k: v for k, v in tolerances.items() if v is not None},
            simulate=simulate_options(run),
            tile=section.tile,
        ),
    )
    if not emit(run, verdict.to_json()):
        say(str(verdict))
        say(f"wrote {wrote(folder / 'verify.json')}   (exit {verdict.exit_status})")
    return verdict.exit_status
