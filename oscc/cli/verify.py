"""`oscc verify`: judge a build level by level; the exit status follows the verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from oscc.cli import shared
from oscc.cli.options import Option, Run, setting, verb_command
from oscc.cli.output import say, wrote
from oscc.cli.results import build_folder, emit, model_section
from oscc.cli.simulate import simulate_options
from oscc.errors import RequestError

if TYPE_CHECKING:
    from oscc.checkpoint import LoadedCheckpoint


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
@shared.TARGETS
@setting(
    "--closed-loop",
    "verify.closed_loop",
    group="Input",
    text="Run each layer on what the engine gave the one before.",
)
@click.option(
    "--checkpoint",
    cls=Option,
    group="Input",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Checkpoint of the build, for --closed-loop; else looked for in checkpoints/.",
)
@shared.KEY
@setting(
    "--tile",
    "verify.tile",
    group="Accuracy",
    text="Run a tile of real cells too, and report its gap.",
)
def command(run: Run, build: Path, checkpoint: Path | None) -> int:
    """Judge and print the verdict."""
    from oscc.verbs.verify import VerifyOptions, verify_folder

    section = run.config.verify
    tolerances = msgspec.structs.asdict(section.tolerance_rad)
    of_cells = msgspec.structs.asdict(section.tolerance_coherence)
    folder = build_folder(run, build)
    verdict = verify_folder(
        folder,
        VerifyOptions(
            levels=section.levels,
            tolerance_rad={k: v for k, v in tolerances.items() if v is not None},
            tolerance_coherence={k: v for k, v in of_cells.items() if v is not None},
            simulate=simulate_options(run),
            tile=section.tile,
            model=_model(run, folder, checkpoint) if section.closed_loop else None,
        ),
    )
    if not emit(run, verdict.to_json()):
        say(str(verdict))
        say(f"wrote {wrote(folder / 'verify.json')}   (exit {verdict.exit_status})")
        if any(
            one.level == "circuit" and one.passed is False for one in verdict.levels
        ):
            say("next: oscc compile with a smaller --accuracy-mrad, or more --periods")
    return verdict.exit_status


def _model(run: Run, build: Path, checkpoint: Path | None) -> LoadedCheckpoint:
    """The checkpoint that the build was compiled from.

    Raises:
        RequestError: none was named, and none in `checkpoints/` is the build's own.
    """
    from oscc.checkpoint import load_checkpoint

    return load_checkpoint(
        checkpoint or _own_checkpoint(build),
        key=run.config.compile.key,
        model_config=model_section(run),
    )


def _own_checkpoint(build: Path) -> Path:
    from oscc.build import FORMAT
    from oscc.files import read_json, sha256_file

    wanted = read_json(build / "manifest.json", FORMAT)["inputs"].get("checkpoint")
    for path in sorted(Path("checkpoints").glob("*.safetensors")):
        if sha256_file(path) == wanted:
            return path
    raise RequestError(
        f"--closed-loop needs the checkpoint of `{build}` (sha256 {str(wanted)[:8]}), "
        "which is not in checkpoints/. Give it with --checkpoint FILE."
    )
