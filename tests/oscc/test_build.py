"""Build folders: whole or not there, never mixed, every file listed with its hash."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oscc.observables
from oscc.build import FORMAT, BuildFolder, new_build, outputs, require_free
from oscc.errors import RequestError, ToolError
from oscc.files import dump_json, sha256_file
from oscc.ir import Program
from oscc.ir.codec import save
from oscc.observables import Observables
from oscc.testing.tiny import tiny_program

NAME = "layer.0.coupling"


@contextlib.contextmanager
def building(out: Path, *, force: bool = False, seed: int = 3) -> Iterator[Path]:
    with new_build(
        out, force=force, version="1.2", seed=seed, inputs={"text": "ab" * 32}
    ) as folder:
        yield folder


def make(out: Path, program: Program | None = None, **options: Any) -> BuildFolder:
    with building(out, **options) as folder:
        save(program or tiny_program(), folder / "program.safetensors")
        (folder / "program.yaml").write_text("family: fsn\n")
    return BuildFolder.open(out)


def seen(program: Program, engine: str = "phase") -> Observables:
    arrays = {f"{NAME}.phase": program.stages[0].digital_rad}
    return Observables(engine, program.digest(), arrays, {})


def names(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*"))


def test_the_manifest_lists_inputs_and_every_output(tmp_path: Path) -> None:
    folder = make(tmp_path / "out").path
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest == {
        "format": FORMAT,
        "version": "1.2",
        "seed": 3,
        "inputs": {"text": "ab" * 32},
        "outputs": {
            name: sha256_file(folder / name)
            for name in ("program.safetensors", "program.yaml")
        },
    }


def test_what_holds_times_is_not_listed(tmp_path: Path) -> None:
    folder = make(tmp_path / "out").path
    kept = ["sim/ngspice/observables.safetensors", "netlist/ngspice/a.cir", "x.json"]
    left_out = [
        *("sim/ngspice/run.json", "sim/ngspice/decks/a.cir", "sim/gnucap/failed/b.log"),
        *("log.jsonl", ".oscc.lock", "netlist/.hidden"),
    ]
    for name in kept + left_out:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    assert set(outputs(folder)) == {"program.safetensors", "program.yaml", *kept}


class Broken(Exception):
    pass


def fail_in_the_middle(out: Path, error: BaseException, **options: Any) -> None:
    with (
        contextlib.suppress(type(error), ToolError),
        building(out, **options) as folder,
    ):
        (folder / "program.yaml").write_text("half")
        raise error


@pytest.mark.parametrize(
    "error",
    [Broken("a fault"), OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()],
)
def test_a_failure_in_the_middle_leaves_nothing(
    tmp_path: Path, error: BaseException
) -> None:
    fail_in_the_middle(tmp_path / "new" / "deep" / "out", error)
    assert names(tmp_path) == []


def test_a_failure_in_the_middle_leaves_the_earlier_build(tmp_path: Path) -> None:
    out = tmp_path / "out"
    make(out)
    before = {name: (out / name).read_bytes() for name in outputs(out)}
    fail_in_the_middle(out, Broken("a fault"), force=True)
    assert {name: (out / name).read_bytes() for name in outputs(out)} == before
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_full_disk_says_so(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as caught, building(tmp_path / "out"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert str(caught.value) == (
        f"`{tmp_path / 'out'}` could not be written: No space left on device."
    )


def test_a_killed_build_never_has_the_final_name(tmp_path: Path) -> None:
    """SIGKILL in the middle: nothing cleans up, and still nothing looks whole."""
    out = tmp_path / "out"
    script = (
        "import os, signal\n"
        "from pathlib import Path\n"
        "from oscc.build import new_build\n"
        f"with new_build(Path({str(out)!r}), force=False, version='1', seed=0,"
        " inputs={}) as folder:\n"
        "    (folder / 'program.yaml').write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], check=False)
    assert ended.returncode == -9
    assert not out.exists()
    with pytest.raises(RequestError, match="does not exist"):
        BuildFolder.open(out)
    make(out)  # what was left beside it is in nobody's way


def test_an_existing_build_is_replaced_by_force_alone(tmp_path: Path) -> None:
    out = tmp_path / "out"
    make(out)
    (out / "extra.txt").write_text("of the old build")
    with pytest.raises(RequestError) as caught:
        make(out)
    assert str(caught.value) == (
        f"`{out}` already holds a build. Give --force to replace it, or another -o."
    )
    other = tiny_program(seed=9)
    assert make(out, other, force=True).program() == other
    assert not (out / "extra.txt").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("force", [True, False])
def test_a_foreign_folder_is_never_replaced(tmp_path: Path, force: bool) -> None:
    (tmp_path / "thesis.txt").write_text("years")
    with pytest.raises(RequestError) as caught:
        make(tmp_path, force=force)
    assert str(caught.value) == (
        f"`{tmp_path}` holds files that are not a build of oscc; it is left as it is. "
        "Choose another -o."
    )
    assert names(tmp_path) == ["thesis.txt"]


def test_a_folder_with_another_manifest_is_foreign(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"format": "web-extension/3"}')
    with pytest.raises(RequestError, match="has format 'web-extension/3'"):
        make(tmp_path, force=True)
    assert names(tmp_path) == ["manifest.json"]


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert make(tmp_path / "out").program() == tiny_program()


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("x")
    with pytest.raises(RequestError) as caught:
        make(path, force=True)
    assert str(caught.value) == f"`{path}` is a file, not a folder. Choose another -o."
    below = path / "deep" / "out"
    with pytest.raises(RequestError) as caught:
        make(below)
    assert str(caught.value) == f"`{path}` is a file, not a folder. Choose another -o."
    assert names(tmp_path) == ["file"]


def test_two_builds_are_the_same_bytes(tmp_path: Path) -> None:
    folders = [make(tmp_path / name).path for name in ("one", "Run 1 Ü")]
    contents = [
        {name: (folder / name).read_bytes() for name in names(folder)}
        for folder in folders
    ]
    assert contents[0] == contents[1]


def test_a_build_made_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(RequestError, match="already holds a build"), building(out):
        make(out, tiny_program(seed=5))
    assert BuildFolder.open(out).program() == tiny_program(seed=5)
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_two_runs_never_hold_one_folder(tmp_path: Path) -> None:
    folder = make(tmp_path / "out")
    with folder.locked():
        with pytest.raises(RequestError) as caught, folder.locked():
            pytest.fail("two runs held the folder at once")
        assert str(caught.value) == (
            f"Another oscc run is writing to `{folder.path}`. Wait for it, or choose "
            "another folder."
        )
        with pytest.raises(RequestError, match="Another oscc run is writing"):
            make(folder.path, tiny_program(seed=5), force=True)
    assert folder.program() == tiny_program()
    with folder.locked():
        pass


def test_another_process_holds_the_folder_until_it_ends(tmp_path: Path) -> None:
    folder = make(tmp_path / "out")
    with (folder.path / ".oscc.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        script = (
            "from pathlib import Path\n"
            "from oscc.build import BuildFolder\n"
            f"with BuildFolder(Path({str(folder.path)!r})).locked(): pass\n"
        )
        ended = subprocess.run(
            [sys.executable, "-c", script], check=False, capture_output=True, text=True
        )
    assert ended.returncode == 1
    assert "Another oscc run is writing" in ended.stderr


def test_holding_a_folder_adds_nothing_to_it(tmp_path: Path) -> None:
    folder = make(tmp_path / "out")
    before = names(folder.path)
    with folder.locked():
        pass
    assert names(folder.path) == before


def test_a_folder_that_cannot_be_held_is_refused(tmp_path: Path) -> None:
    folder = make(tmp_path / "out")
    (folder.path / ".oscc.lock").unlink()
    (folder.path / ".oscc.lock").mkdir()
    with pytest.raises(RequestError, match="is not writable by you"), folder.locked():
        pytest.fail("not held")


def test_what_is_no_build_folder(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="Make it with oscc compile"):
        BuildFolder.open(tmp_path / "none")
    with pytest.raises(
        RequestError, match=r"is not a build folder: it has no manifest"
    ):
        BuildFolder.open(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(RequestError, match="is not readable JSON"):
        BuildFolder.open(tmp_path)


def test_a_program_of_another_compile_is_refused(tmp_path: Path) -> None:
    folder = make(tmp_path / "out")
    path = folder.path / "program.safetensors"
    was = sha256_file(path)
    save(tiny_program(seed=8), path)
    with pytest.raises(RequestError) as caught:
        folder.program()
    assert str(caught.value) == (
        f"`{path}` has hash {sha256_file(path)[:8]}, but manifest.json lists "
        f"{was[:8]}: it is from another compile than the rest of the folder. "
        "Compile again."
    )


def test_writing_other_files_does_not_hide_a_changed_program(tmp_path: Path) -> None:
    folder = make(tmp_path / "out")
    save(tiny_program(seed=8), folder.path / "program.safetensors")
    (folder.path / "program.yaml").unlink()
    folder.write_json("verify.json", {"format": "oscc.verify/1"})
    listed = json.loads((folder.path / "manifest.json").read_text())["outputs"]
    assert set(listed) == {"program.safetensors", "program.yaml", "verify.json"}
    with pytest.raises(RequestError, match="from another compile"):
        folder.program()


def test_json_that_is_written_is_listed(tmp_path: Path) -> None:
    folder = make(tmp_path / "out")
    path = folder.write_json("energy.json", {"b": 1.5, "a": None})
    assert path.read_text() == dump_json({"a": None, "b": 1.5})
    listed = json.loads((folder.path / "manifest.json").read_text())["outputs"]
    assert listed["energy.json"] == sha256_file(path)


def test_observables_are_found_by_engine(tmp_path: Path) -> None:
    folder, program = make(tmp_path / "out"), tiny_program()
    assert folder.observables("phase", program) is None
    assert folder.engines() == ()
    oscc.observables.save(seen(program), folder.observables_path("phase"))
    found = folder.observables("phase", program)
    assert found is not None
    assert np.array_equal(found.phase(NAME), program.stages[0].digital_rad)
    assert folder.engines() == ("phase",)


def test_stale_observables_say_what_to_run(tmp_path: Path) -> None:
    folder, program = make(tmp_path / "out"), tiny_program()
    old = tiny_program(seed=4)
    oscc.observables.save(seen(old, "circuit"), folder.observables_path("circuit"))
    with pytest.raises(RequestError) as caught:
        folder.observables("circuit", program)
    assert str(caught.value) == (
        f"sim/circuit was made from program {old.digest()[:8]}, the folder now holds "
        f"{program.digest()[:8]}. Run: oscc simulate {folder.path} --engine circuit"
    )


def test_observables_of_another_engine_are_refused(tmp_path: Path) -> None:
    folder, program = make(tmp_path / "out"), tiny_program()
    oscc.observables.save(seen(program, "phase"), folder.observables_path("circuit"))
    with pytest.raises(RequestError, match="holds what phase saw"):
        folder.observables("circuit", program)


def test_require_free_says_nothing_of_a_free_place(tmp_path: Path) -> None:
    require_free(tmp_path / "new" / "deep", force=False)
    assert names(tmp_path) == []
