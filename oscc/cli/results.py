"""Results of a verb: into its file, onto standard output, next to a build."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec

from oscc.cli.options import Run
from oscc.cli.output import emit_json
from oscc.errors import RequestError
from oscc.files import dump_json, write_atomic


def emit(run: Run, content: Any, *, file: str = "") -> bool:
    """Print JSON if it was asked for, and write it to -o if a file is named.

    Returns:
        Whether the JSON was printed, so that no table is.
    """
    if file and run.out is not None:
        write_into(run.out, file, content)
    if run.json:
        emit_json(content)
    return run.json


def write_into(folder: Path, name: str, content: Any) -> None:
    """Write one of our JSON files into a folder that is no build.

    Raises:
        RequestError: a file of another program stands there.
    """
    _require_ours(folder / name, content)
    write_atomic(folder / name, dump_json(content))


def _require_ours(target: Path, content: Any) -> None:
    """A file of another program is never written over."""
    if target.parent.exists() and not target.parent.is_dir():
        raise RequestError(
            f"`{target.parent}` is a file, not a folder. Choose another -o."
        )
    if target.exists() and isinstance(content, dict) and "format" in content:
        head = str(content["format"]).partition("/")[0]
        if f'"format": "{head}/' not in target.read_text(errors="replace"):
            raise RequestError(
                f"`{target}` is there and is none of ours. Choose another -o."
            )


def build_folder(run: Run, build: Path) -> Path:
    """Folder that a verb works on: the build, or a copy of it in -o.

    Raises:
        RequestError: no build folder, or -o must not be written.
    """
    from oscc.build import BuildFolder, require_free

    if run.out is None or run.out.resolve() == build.resolve():
        run.log.folder = build
        return build
    BuildFolder.open(build)
    require_free(run.out, force=run.force)
    if run.out.is_dir():
        shutil.rmtree(run.out)
    hidden = shutil.ignore_patterns(".*", "log.jsonl")
    shutil.copytree(build, run.out, ignore=hidden)
    run.log.folder = run.out
    return run.out


def model_section(run: Run) -> dict[str, Any] | None:
    """Fields that the section `model:` gives, None where it gives none."""
    given = {
        name: value
        for name, value in msgspec.structs.asdict(run.config.model).items()
        if value is not None
    }
    return given or None
