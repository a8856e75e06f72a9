"""`oscc energy`: the energy account of a build."""

from __future__ import annotations

from pathlib import Path

import click

from oscc.cli.options import Run, verb_command
from oscc.cli.output import say, wrote
from oscc.cli.results import build_folder, emit


@verb_command(
    "energy",
    text="Account for the energy of BUILD by cause, per coupled pair and per token. "
    "An assumption is set by --set energy.assumptions.NAME=VALUE.",
    example="oscc energy build/first",
)
@click.argument("build", type=click.Path(path_type=Path))
def command(run: Run, build: Path) -> None:
    """Account and print the table."""
    from oscc.account.energy_account import energy_table
    from oscc.verbs.energy import energy_folder

    folder = build_folder(run, build)
    account = energy_folder(folder, overrides=run.config.energy.assumptions)
    if not emit(run, account.to_json()):
        prefix = "energy.assumptions."
        origins = {
            key.removeprefix(prefix): origin
            for key, origin in run.origins.items()
            if key.startswith(prefix)
        }
        say(energy_table(account.to_json(), origins))
        say(f"wrote {wrote(folder / 'energy.json')}")
