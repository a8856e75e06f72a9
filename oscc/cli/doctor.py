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
    from oscc.verbs.doctor import Check, Diagnosis


@verb_command(
    "doctor",
    text="Say what is wrong with the installation, or with a CHECKPOINT, CARD or "
    "BUILD, and how to mend it. Exit status 0 says that the file is sound; that "
    "nothing of it can be compiled is a note.",
    example="oscc doctor",
)
@click.argument("path", type=click.Path(path_type=Path), required=False)
@shared.KEY
def command(run: Run, path: Path | None) -> int:
    """Print one line a finding."""
    from oscc.units import counted
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
        say(f"{counted(bad, 'thing')} to mend" if bad else _sound(found))
    return found.exit_status


def _sound(found: Diagnosis) -> str:
    """Last line of a finding without faults; what cannot be compiled is still said."""
    from oscc.diagnosis import UNCOMPILED

    if any(check.name == UNCOMPILED for check in found.checks):
        return "the file is sound, but nothing of it can be compiled"
    return "all is sound"


def _line(check: Check) -> str:
    state = "ok  " if check.ok else "MISS" if check.tool else "BAD "
    if check.note:
        state = "note"
    mend = f"   {check.mend}" if check.mend else ""
    return f"{state}  {check.detail}{mend}"
