"""Verbs on a build folder: what is written, what is left alone, what is refused."""

import errno
import fcntl
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oscc.build import FORMAT, outputs
from oscc.files import read_json
from oscc.testing.privileges import unprivileged

Call = Callable[..., Any]


def strict(text: str) -> Any:
    def refuse(word: str) -> None:
        raise AssertionError(word)

    return json.loads(text, parse_constant=refuse)


def content(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_build_holds_what_the_manifest_says(build: Path) -> None:
    manifest = read_json(build / "manifest.json", FORMAT)
    assert set(manifest["inputs"]) == {"checkpoint", "text"}
    assert manifest["outputs"] == outputs(build)
    assert {"program.safetensors", "program.yaml"} <= set(manifest["outputs"])
    assert (build / "log.jsonl").is_file()


def test_two_compiles_are_the_same_bytes(
    call: Call, build: Path, tiny: Path, tmp_path: Path
) -> None:
    other = tmp_path / "Run 1 Ü"
    arguments = ["--text", "abc", "--scheme", "plain", "--periods", 20, "--jobs", 1]
    assert call("compile", tiny, *arguments, "-o", other).status == 0
    left, right = content(build), content(other)
    for name in ("log.jsonl", "netlist/.lock"):
        left.pop(name, None)
        right.pop(name, None)
    assert left == right


def test_json_is_all_that_stands_on_standard_output(call: Call, build: Path) -> None:
    verbs: list[list[object]] = [
        ["simulate", build, "--engine", "phase"],
        ["verify", build, "--levels", "ir,phase"],
        ["energy", build],
        ["report", build],
        ["inspect", build],
        ["doctor", build],
    ]
    for words in verbs:
        found = call(*words, "--json", "-v")
        assert found.status == 0, found.err
        assert isinstance(strict(found.out), dict), words
    for path in build.rglob("*.json"):
        strict(path.read_text(encoding="utf-8"))
    # each verb lists what it wrote
    manifest = read_json(build / "manifest.json", FORMAT)
    assert manifest["outputs"] == outputs(build)
    assert {"verify.json", "energy.json", "report.html"} <= set(manifest["outputs"])


def test_what_is_printed_as_json_is_the_file(call: Call, build: Path) -> None:
    for verb in ("verify", "energy"):
        found = call(verb, build, "--json")
        assert found.out == (build / f"{verb}.json").read_text(encoding="utf-8")


def test_a_verdict_outside_its_tolerance_is_status_1(call: Call, build: Path) -> None:
    tight = ("--set", "verify.tolerance_rad.circuit=1e-9")
    found = call("verify", build, *tight)
    assert found.status == 1
    assert "FAIL   circuit against phase" in found.out
    assert found.out.splitlines()[-1].startswith("next: oscc compile with a smaller")
    told = call("verify", build, *tight, "--json")
    assert told.status == 1
    assert strict(told.out)["passed"] is False


def test_verify_twice_is_the_same(call: Call, build: Path) -> None:
    first = call("verify", build, "--json").out
    assert call("verify", build, "--json").out == first


def test_copy_into_another_folder_leaves_the_build(
    call: Call, build: Path, tmp_path: Path
) -> None:
    before = content(build)
    out = tmp_path / "copy"
    found = call("verify", build, "--levels", "ir", "-o", out)
    assert found.status == 0, found.err
    assert content(build) == before
    assert (out / "verify.json").is_file()
    again = call("verify", build, "--levels", "ir", "-o", out)
    assert (again.status, "--force" in again.err) == (2, True)
    assert call("verify", build, "--levels", "ir", "-o", out, "--force").status == 0


def test_a_full_disk_keeps_the_build_that_stood_there(
    call: Call, build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    assert call("verify", build, "--levels", "ir", "-o", other).status == 0
    before = content(other)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copytree", full)
    found = call("verify", build, "--levels", "ir", "-o", other, "--force")
    assert found.status == 3
    assert content(other) == before
    assert not list(tmp_path.glob(".copy.*"))


def test_log_lines_are_json_and_not_in_the_manifest(call: Call, build: Path) -> None:
    call("energy", build)
    lines = (build / "log.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) >= 2
    for line in lines:
        assert set(strict(line)) == {"time_s", "level", "logger", "message"}
    assert "log.jsonl" not in read_json(build / "manifest.json", FORMAT)["outputs"]


def test_force_replaces_a_build_and_nothing_else(
    call: Call, build: Path, tiny: Path, tmp_path: Path
) -> None:
    arguments = ["--text", "ab", "--scheme", "plain", "--periods", 20, "-o"]
    held = call("compile", tiny, *arguments, build)
    assert held.status == 2
    assert "--force" in held.err
    assert call("compile", tiny, *arguments, build, "--force").status == 0
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    found = call("compile", tiny, *arguments, mine, "--force")
    assert found.status == 2
    assert "not a build of oscc" in found.err
    assert content(mine) == {"thesis.txt": b"years of work"}


def test_two_runs_into_one_folder_do_not_mix(call: Call, build: Path) -> None:
    before = content(build)
    with (build / ".oscc.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for verb in (["energy"], ["verify"], ["simulate", "--engine", "phase"]):
            found = call(verb[0], build, *verb[1:])
            assert found.status == 2
            assert "Another oscc run is writing" in found.err
    assert content(build) == before


def test_a_folder_that_cannot_be_written_is_refused_first(
    call: Call, tiny: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    text = ["--text", "ab", "-o"]
    found = call("compile", tiny, *text, tmp_path / "file")
    assert (found.status, "is a file, not a folder" in found.err) == (2, True)
    found = call("compile", tiny, *text, tmp_path / "file" / "below")
    assert (found.status, "/file` is a file, not a folder" in found.err) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("mode", [0o555, 0o000], ids=["read-only", "closed"])
def test_a_folder_of_somebody_else_is_refused(
    call: Call, tiny: Path, mode: int
) -> None:
    # not below tmp_path, whose parents are closed to others
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        closed = place / "closed"
        closed.mkdir()
        closed.chmod(mode)
        weights = shutil.copy(tiny, place / "tiny.safetensors")
        call("compile", weights, "--text", "", "-o", closed / "out")  # imports
        with unprivileged():
            found = call("compile", weights, "--text", "ab", "-o", closed / "out")
        closed.chmod(0o755)
        assert found.status == 2
        assert f"`{closed}/out` is not writable by you (uid " in found.err
        assert list(closed.iterdir()) == []


def test_doctor_sees_what_was_changed_behind_our_back(call: Call, build: Path) -> None:
    assert call("doctor", build).status == 0
    deck = next(build.glob("netlist/ngspice/*.cir"))
    deck.write_text(deck.read_text() + "* more\n")
    (build / "program.yaml").unlink()
    found = call("doctor", build, "--json")
    assert found.status == 2
    bad = {c["name"]: c["detail"] for c in strict(found.out)["checks"] if not c["ok"]}
    assert set(bad) == {deck.relative_to(build).as_posix(), "program.yaml"}
    assert "missing" in bad["program.yaml"]


@pytest.mark.parametrize("verb", ["simulate", "verify", "energy", "report"])
def test_what_is_no_build_is_refused(call: Call, tmp_path: Path, verb: str) -> None:
    for path, words in (
        (tmp_path / "none", "does not exist"),
        (tmp_path, "is not a build folder"),
    ):
        found = call(verb, path)
        assert found.status == 2
        assert words in found.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Give the input as --text STRING or as --text-file PATH"),
        (["--text", ""], "The text is empty"),
        (["--text", "a", "--text-file", "x"], "not as both"),
        (["--text-file", "none.txt"], "`none.txt` does not exist"),
        (["--text-file", "/"], "`/` cannot be read: Is a directory. Name a text file"),
        (["--text", "aé"], "'é' (U+00E9)"),
        (["--text", "a" * 40], "--max-tokens"),
        (["--text", "a", "--device", "vo2-two-state-7k"], "vo2-two-state-6k"),
        (["--text", "a", "--layers", "5"], "layer"),
    ],
)
def test_bad_input_is_named_and_leaves_no_folder(
    call: Call, tiny: Path, tmp_path: Path, arguments: list[str], words: str
) -> None:
    out = tmp_path / "out"
    found = call("compile", tiny, *arguments, "-o", out)
    assert found.status == 2
    assert words in found.err
    assert found.err.startswith("oscc compile: ")
    assert len(found.err.splitlines()) <= 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "data", [b"", b"\x89PNG\r\n\x1a\n", None], ids=["empty", "picture", "half"]
)
def test_a_checkpoint_that_is_none(
    call: Call, tiny: Path, tmp_path: Path, data: bytes | None
) -> None:
    path = tmp_path / "bad.safetensors"
    path.write_bytes(tiny.read_bytes()[:4000] if data is None else data)
    for words in (
        ["compile", path, "--text", "a", "-o", tmp_path / "o"],
        ["doctor", path],
    ):
        found = call(*words)
        assert found.status == 2
        assert "bad.safetensors" in found.err + found.out
        assert "Traceback" not in found.err
    assert [p.name for p in tmp_path.iterdir()] == ["bad.safetensors"]


def test_a_mistyped_checkpoint_is_named(call: Call, tiny: Path) -> None:
    wrong = tiny.with_name("kuramoto-flw-k08.safetensors")
    for words in (["compile", wrong, "--text", "a"], ["doctor", wrong]):
        found = call(*words)
        assert found.status == 2
        assert "does not exist. Did you mean" in found.err
        assert "kuramoto-flow-k08.safetensors`?" in found.err
