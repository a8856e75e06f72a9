"""SSA from the shipped checkpoint to the report, by the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oscc.cli.main import main

ROOT = Path(__file__).parents[2]
CHECKPOINT = ROOT / "checkpoints" / "ssa-trainable.safetensors"
TEXT = ["--text", "import os\nx = 1", "--max-tokens", "10", "--deck-targets", "1"]
LEVELS = "ir,phase,circuit,spice:gnucap,spice:ngspice"


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Logs of the tests stay out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OSCC_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def run(*words: object) -> int:
    return main([str(word) for word in words])


def whole(out: Path, jobs: int) -> Path:
    """Every verb on a build of its own."""
    settings = ("--jobs", jobs, "-q")
    assert run("compile", CHECKPOINT, *TEXT, "-o", out, *settings) == 0
    assert run("verify", out, "--levels", LEVELS, *settings) == 0
    assert run("energy", out, *settings) == 0
    assert run("report", out, *settings) == 0
    return out


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return whole(tmp_path_factory.mktemp("cells") / "one", 1)


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.gnucap
@pytest.mark.ngspice
def test_every_level_passes_and_every_verb_takes_the_build(build: Path) -> None:
    verdict = read(build / "verify.json")
    assert verdict["passed"]
    found = {level["engine"]: level for level in verdict["levels"]}
    cells = found["ir"]["targets"]
    # 10 tokens, 4 heads, 2 layers: 360 pairs of different tokens
    assert 100 < cells < 360
    assert found["phase"]["targets"] == found["circuit"]["targets"] == cells
    for engine in ("gnucap", "ngspice"):
        assert found[engine]["targets"] == 2
        assert found[engine]["rms_coherence"] < 1e-3
    assert all(entry["passed"] for entry in verdict["convergence"])
    assert set(verdict["causes"]) == {"averaging", "discretisation", "settling"}
    decks = read(build / "netlist" / "index.json")["decks"]
    assert sum(d.get("engine") is None for d in decks) == 2 * 2  # dialects x stages
    assert sum(d.get("engine") == "gnucap" for d in decks) == 2 * 2  # two steps
    energy = read(build / "energy.json")
    assert energy["pairs"] == cells
    (circuit,) = (e for e in energy["measured"] if e["engine"] == "circuit")
    assert circuit["balanced"]
    # two periods more or less at the ends of the dwell
    assert circuit["over_closed_form"] == pytest.approx(1, abs=0.02)
    page = (build / "report.html").read_text(encoding="utf-8")
    for name in ("phase", "circuit", "gnucap", "ngspice"):
        assert name in page
    assert "Which pairs have a cell" in page


@pytest.mark.gnucap
@pytest.mark.ngspice
def test_the_number_of_jobs_changes_no_byte(build: Path, tmp_path: Path) -> None:
    def content(folder: Path) -> dict[str, bytes]:
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name not in ("run.json", "log.jsonl")
        }

    one, two = content(build), content(whole(tmp_path / "two", 2))
    assert set(one) == set(two)
    assert [name for name in one if one[name] != two[name]] == []


@pytest.mark.gnucap
def test_exit_statuses(
    build: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tolerance = "verify.tolerance_coherence.circuit=1e-9"
    levels = ("verify", build, "--levels")
    assert run(*levels, "circuit", "--set", tolerance, "-q") == 1
    assert run(*levels, "circuit", "-q") == 0
    # a dwell this short decides too few cells: no number is offered
    short = tmp_path / "short"
    assert run("compile", CHECKPOINT, *TEXT, "--periods", 30, "-o", short, "-q") == 0
    assert run("verify", short, "--levels", "phase", "-q") == 4
    assert read(short / "verify.json")["levels"][0]["passed"] is None
    capsys.readouterr()
    words = ("simulate", build, "--engine", "gnucap", "--targets")
    assert run(*words, "0,3,9") == 2
    assert "the pair 0,3,9 has no cell" in capsys.readouterr().err
    assert run("inspect", build, "--pair", "0,3") == 2
    assert "HEAD,TOKEN,PARTNER" in capsys.readouterr().err
    for flag in (["--update", "flow"], ["--substeps", "2"], ["--fidelity", "summed"]):
        out = tmp_path / "refused"
        assert run("compile", CHECKPOINT, *TEXT, *flag, "-o", out) == 2
        assert capsys.readouterr().err.count("\n") == 1
        assert not out.exists()


@pytest.mark.gnucap
def test_one_cell_by_name_in_a_simulator(
    build: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from oscc.build import BuildFolder

    program = BuildFolder.open(build).program()
    stage = program.stages[0]
    assert stage.index is not None
    row = int(abs(stage.detuning_rad - 0.5 * stage.detuning_rad.max()).argmin())
    pair = ",".join(str(n) for n in stage.index[row])
    words = ("simulate", build, "--engine", "gnucap", "--stages", stage.name)
    assert run(*words, "--targets", pair, "-q") == 0
    decks = read(build / "netlist" / "index.json")["decks"]
    mine = [d for d in decks if d.get("engine") == "gnucap"]
    assert {d["cell"] for d in mine} == {row}
    assert {d["stage"] for d in mine} == {stage.name}
    capsys.readouterr()
    assert run("inspect", build, "--pair", pair) == 0
    shown = capsys.readouterr().out
    assert "gnucap" in shown
    assert "K r J" in shown


def test_the_settings_of_cells_by_the_command_line(tmp_path: Path) -> None:
    out = tmp_path / "wide"
    sets = ("--set", "compile.lock_coupling=0.025", "--set", "compile.lock_margin=0.3")
    words = ("--periods", 80, "-o", out, "-q")
    assert run("compile", CHECKPOINT, *TEXT, *sets, *words) == 0
    from oscc.verbs.inspect import inspect

    for entry in inspect(out)["cells"]:
        assert entry["coupling"] == pytest.approx(0.025)
        assert 1.05 < entry["largest_ratio"] <= 1.3


def test_native_oscillators_by_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from oscc.testing.locks import write_lock_checkpoint

    native = ("--set", "compile.lock_mode=native")
    words = ("compile", CHECKPOINT, *TEXT, *native, "-o", tmp_path / "no")
    assert run(*words) == 2
    assert "one natural frequency a token and head" in capsys.readouterr().err
    checkpoint = tmp_path / "ssa.safetensors"
    write_lock_checkpoint(checkpoint, heads=8, arm="published", layers=1)
    build = tmp_path / "build"
    assert run("compile", checkpoint, *TEXT, *native, "-o", build) == 0
    assert "visit each other in 9 rounds of 100 periods" in capsys.readouterr().out
    assert run("verify", build, "-q") == 0
    assert run("energy", build, "-q") == 0
    assert run("report", build, "-q") == 0
    page = (build / "report.html").read_text(encoding="utf-8")
    assert "one a token and head, 9 rounds of the dwell" in page
    assert run("inspect", build, "--pair", "0,5,2") == 0
    entry = read(build / "energy.json")["stages"][0]
    assert (entry["pairs"], entry["targets"], entry["dwells"]) == (8 * 45, 80, 9)
    checkpoint_words = ("--checkpoint", checkpoint)
    assert run("verify", build, "--closed-loop", *checkpoint_words, "-q") == 0
