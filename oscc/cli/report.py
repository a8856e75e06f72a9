"""`oscc report`: one self-contained page of a build."""

from __future__ import annotations

from pathlib import Path

import click

from oscc.cli.options import Run, verb_command
from oscc.cli.output import say, wrote
from oscc.cli.results import build_folder, emit


@verb_command(
    "report",
    text="Write report.html of BUILD; the key figures of a second one stand beside.",
    example="oscc report build/first",
)
@click.argument("build", type=click.Path(path_type=Path))
@click.argument("beside", type=click.Path(path_type=Path), required=False)
def command(run: Run, build: Path, beside: Path | None) -> None:
    """Write the page."""
    from oscc.files import sha256_file
    from oscc.verbs.report import report_folder

    path = report_folder(build_folder(run, build), beside=beside)
    size = path.stat().st_size
    content = {
        "format": "oscc.report/1",
        "bytes": size,
        "file": path.name,
        "sha256": sha256_file(path),
    }
    if not emit(run, content):
        say(f"wrote {wrote(path)}: {size // 1000} kB, opens without a network")
