"""`oscc doctor`: what is wrong, and how to mend it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from oscc.cli import shared
from oscc.cli.options import Run, verb_command
from oscc.cli.output import say
from oscc.cli.results import emit, model_section

if TYPE_CHECKING:
    from oscc.verbs.doctor import Check


@verb_command(
    "doctor",
    text="Say what is wrong with the installation, or with a CHECKPOINT, CARD or "
    "BUILD, and how to mend it.",
    example="oscc doctor",
)
@click.argument("path", type=click.Path(path_type=Path), required=False)
@shared.KEY
def command(run: Run, path: Path | None) -> int:
    """Print one line a finding."""
    from oscc.verbs.doctor import doctor

    found = doctor(
        path,
        key=run.config.compile.key,
        model_config=model_section(run),
        timeout_s=run.config.timeout_s or 60.0,
    )
    if not emit(run, found.to_json(), file="doctor.json"):
        for check in found.checks:
            say(_line(check))
        bad = sum(not check.ok for check in found.checks)
        say(f"{bad} thing{'' if bad == 1 else 's'} to mend" if bad else "all is sound")
    return found.exit_status


def _line(check: Check) -> str:
    state = "ok  " if check.ok else "MISS" if check.tool else "BAD "
    if check.note:
        state = "note"
    mend = f"   {check.mend}" if check.mend else ""
    return f"{state}  {check.detail}{mend}"
