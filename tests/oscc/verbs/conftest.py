"""Tiny checkpoints, and a build of one, made once a session."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from oscc.checkpoint import LoadedCheckpoint, load_checkpoint
from oscc.testing.tiny import TEXT, write_checkpoint
from oscc.verbs.compile import CompileRequest, compile_folder

KINDS = {
    "fsn-flow": ("fsn", "flow"),
    "fsn-euler": ("fsn", "euler"),
    "kuramoto-flow": ("kuramoto", "flow"),
    "fsn-mf-flow": ("fsn-mf", "flow"),
}


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Path of a tiny checkpoint of each kind; two layers, gains of up to 3 rad."""
    folder = tmp_path_factory.mktemp("checkpoints")
    return {
        name: write_checkpoint(
            folder / f"{name}.safetensors",
            *kind,
            layers=2,
            gain_rad=3.0,
            bound="B0",
            seed=1,
        )
        for name, kind in KINDS.items()
    }


@pytest.fixture(scope="session")
def models(checkpoints: dict[str, Path]) -> dict[str, LoadedCheckpoint]:
    return {name: load_checkpoint(path) for name, path in checkpoints.items()}


@pytest.fixture(scope="session")
def compiled(
    checkpoints: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Build folder of the tiny FSN; not to be written to."""
    out = tmp_path_factory.mktemp("builds") / "fsn-flow"
    compile_folder(checkpoints["fsn-flow"], out, TEXT, CompileRequest(), decks=False)
    return out


@pytest.fixture
def build(compiled: Path, tmp_path: Path) -> Path:
    """A copy of the build that a test may change."""
    return Path(shutil.copytree(compiled, tmp_path / "build"))


@pytest.fixture(scope="session")
def content() -> Callable[[Path], dict[str, bytes]]:
    """Bytes of every file of a folder that repeats exactly."""

    def read(folder: Path) -> dict[str, bytes]:
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name not in ("run.json", ".oscc.lock")
        }

    return read
