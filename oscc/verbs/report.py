"""Report of a build folder as one HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import oscc.account.energy_account
import oscc.ladder.verdict
from oscc.build import BuildFolder
from oscc.errors import RequestError
from oscc.files import read_json, write_atomic
from oscc.ir.program import Program
from oscc.pages.html import ReportParts, report_html

_EVALUATE_FORMAT = "oscc.evaluate/1"


def report_folder(build: Path, *, beside: Path | None = None) -> Path:
    """Write report.html of a build folder from the files that are in it.

    Parts that no verb has made yet are named on the page with the command that makes
    them.

    Args:
        build: Build folder; the page is written into it.
        beside: Second build folder, whose key figures stand beside the first's.

    Returns:
        Path of the page.

    Raises:
        RequestError: not a build folder, or files in it that belong to another
            program or checkpoint.
        ToolError: the disk is full.
    """
    folder = BuildFolder.open(build)
    other = None
    if beside is not None:
        other = replace(_parts(BuildFolder.open(beside)), name="the other build")
    with folder.locked():
        page = report_html(_parts(folder), beside=other)
        path = folder.path / "report.html"
        write_atomic(path, page)
        folder.refresh_manifest()
    return path


def _parts(folder: BuildFolder) -> ReportParts:
    program = folder.program()
    seen = {name: folder.observables(name, program) for name in folder.engines()}
    return ReportParts(
        program=program,
        verdict=_own(folder, program, "verify", oscc.ladder.verdict.FORMAT),
        energy=_own(folder, program, "energy", oscc.account.energy_account.FORMAT),
        evaluate=_evaluation(folder, program),
        seen={name: one for name, one in seen.items() if one is not None},
    )


def _own(
    folder: BuildFolder, program: Program, verb: str, expected: str
) -> Mapping[str, Any] | None:
    """Content of one of the folder's JSON files, None where it is not there."""
    path = folder.path / f"{verb}.json"
    if not path.is_file():
        return None
    content = read_json(path, expected)
    if content.get("program") != program.digest():
        raise RequestError(
            f"{verb}.json was made from program {str(content.get('program'))[:8]}, the "
            f"folder now holds {program.digest()[:8]}. Run: oscc {verb} {folder.path}"
        )
    return content


def _evaluation(folder: BuildFolder, program: Program) -> Mapping[str, Any] | None:
    path = folder.path / "evaluate.json"
    if not path.is_file():
        return None
    content = read_json(path, _EVALUATE_FORMAT)
    wanted = program.provenance.get("checkpoint_sha256")
    if wanted is not None and content.get("checkpoint") != wanted:
        raise RequestError(
            f"evaluate.json is of checkpoint {str(content.get('checkpoint'))[:8]}, the "
            f"folder was compiled from {str(wanted)[:8]}. Run oscc evaluate again."
        )
    return content
