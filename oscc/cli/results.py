"""Results of a verb: into its file, onto standard output, next to a build."""

from __future__ import annotations

import os
import shutil
import tempfile
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
        RequestError: the folder cannot or must not be written.
    """
    require_place(folder, name, str(content["format"]))
    write_atomic(folder / name, dump_json(content))


def require_place(folder: Path, name: str, expected_format: str) -> None:
    """Refuse a place for a result before the work that leads to it is done.

    Raises:
        RequestError: a file in the way, of another program, or no leave to write.
    """
    present = folder
    while not present.exists() and present != present.parent:
        present = present.parent
    if not present.is_dir():
        raise RequestError(f"`{present}` is a file, not a folder. Choose another -o.")
    if not os.access(present, os.W_OK | os.X_OK):
        raise RequestError(
            f"`{folder}` is not writable by you (uid {os.getuid()}). Choose another -o."
        )
    target = folder / name
    head = expected_format.partition("/")[0]
    if target.exists() and f'"format": "{head}/' not in target.read_text(
        encoding="utf-8", errors="replace"
    ):
        raise RequestError(
            f"`{target}` is there and is none of ours. Choose another -o."
        )


def build_folder(run: Run, build: Path) -> Path:
    """Folder that a verb works on: the build, or a copy of it in -o.

    Raises:
        RequestError: no build folder, or -o must not be written.
    """
    from oscc.build import BuildFolder, give_name, require_free

    if run.out is None or run.out.resolve() == build.resolve():
        run.log.folder = build
        return build
    BuildFolder.open(build)
    require_free(run.out, force=run.force)
    hidden = shutil.ignore_patterns(".*", "log.jsonl")
    run.out.parent.mkdir(parents=True, exist_ok=True)
    # copied beside and renamed: a full disk leaves what stood there
    with tempfile.TemporaryDirectory(dir=run.out.parent, prefix=".copy.") as place:
        copy = Path(place) / "build"
        shutil.copytree(build, copy, ignore=hidden)
        give_name(copy, run.out, force=run.force)
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
