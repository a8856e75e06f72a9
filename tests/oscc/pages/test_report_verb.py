"""The verb: a build folder in, report.html out, nothing mixed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oscc.build import new_build, outputs
from oscc.errors import RequestError
from oscc.ir.codec import save
from oscc.testing.tiny import tiny_program, tiny_stage
from oscc.verbs.energy import energy_folder
from oscc.verbs.report import report_folder


def _build(out: Path, seed: int = 0) -> Path:
    program = tiny_program(tiny_stage(seed), provenance={"checkpoint_sha256": "c" * 64})
    with new_build(out, force=False, version="0", seed=0, inputs={}) as folder:
        save(program, folder / "program.safetensors")
    return out


def test_page_is_written_and_listed(tmp_path: Path) -> None:
    build = _build(tmp_path / "one")
    energy_folder(build)
    path = report_folder(build)
    assert path == build / "report.html"
    assert "per coupled pair" in path.read_text(encoding="utf-8")
    manifest = json.loads((build / "manifest.json").read_text())
    assert manifest["outputs"] == outputs(build)


def test_equal_builds_in_two_folders_have_equal_pages(tmp_path: Path) -> None:
    pages = [
        report_folder(_build(tmp_path / name)).read_bytes() for name in ("one", "two")
    ]
    assert pages[0] == pages[1]
    assert str(tmp_path).encode() not in pages[0]


def test_two_builds_side_by_side(tmp_path: Path) -> None:
    build, other = _build(tmp_path / "one"), _build(tmp_path / "two", seed=1)
    shown = report_folder(build, beside=other).read_text(encoding="utf-8")
    assert "the other build" in shown
    assert not (other / "report.html").exists()


@pytest.mark.parametrize("verb", ["verify", "energy"])
def test_files_of_another_program_are_refused(tmp_path: Path, verb: str) -> None:
    build = _build(tmp_path / "one")
    stale = {"format": f"oscc.{verb}/1", "program": "0" * 64}
    (build / f"{verb}.json").write_text(json.dumps(stale))
    with pytest.raises(RequestError, match=f"Run: oscc {verb}"):
        report_folder(build)
    assert not (build / "report.html").exists()


def test_an_evaluation_of_another_checkpoint_is_refused(tmp_path: Path) -> None:
    build = _build(tmp_path / "one")
    stale = {"format": "oscc.evaluate/1", "checkpoint": "d" * 64}
    (build / "evaluate.json").write_text(json.dumps(stale))
    with pytest.raises(RequestError, match="compiled from cccccccc"):
        report_folder(build)
