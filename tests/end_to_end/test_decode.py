"""One new token end to end: folder, every engine, account, report, command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oscc
from oscc.cli.main import main
from oscc.observables import load as load_observables

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "checkpoints" / "fsn-flow-k16.safetensors"
KURAMOTO = ROOT / "checkpoints" / "kuramoto-flow-k08.safetensors"
TEXT = "from pathlib import "
LAST = len(TEXT) - 1
STAGE = "layer.0.coupling"
PERIOD_S = 1 / 3.27e6  # card vo2-two-state-6k, docs/reference/cards.md
E0_J = 0.903e-9


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OSCC_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def run(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build of the last token, judged at the levels that need no simulator."""
    out = tmp_path_factory.mktemp("decode") / "build"
    arguments = ["--text", TEXT, "--mode", "decode", "--deck-targets", 3]
    assert run("compile", SHIPPED, *arguments, "-q", "-o", out) == 0
    assert run("simulate", out, "--engine", "phase", "-q") == 0
    assert run("simulate", out, "--engine", "circuit", "-q") == 0
    assert run("verify", out, "-q") == 0
    assert run("energy", out, "-q") == 0
    assert run("report", out, "-q") == 0
    return out


def content(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


@pytest.fixture(scope="module")
def both() -> tuple[oscc.Program, oscc.Program]:
    model = oscc.load(SHIPPED)
    return oscc.compile(model, TEXT), oscc.compile(model, TEXT, mode="decode")


@pytest.mark.parametrize(("engine", "largest"), [("ir", 1e-9), ("phase", 1e-9)])
def test_decode_agrees_with_the_last_token_of_prefill(
    both: tuple[oscc.Program, oscc.Program], engine: str, largest: float
) -> None:
    whole, one = (oscc.simulate(program, engine).phase(STAGE) for program in both)
    assert one.shape == (1, 16)
    assert np.abs(one - whole[-1:]).max() < largest
    stages = [program.stages[0] for program in both]
    assert (stages[1].digital_rad == stages[0].digital_rad[-1:]).all()


def test_every_level_passes_and_names_the_real_token(build: Path) -> None:
    verdict = content(build / "verify.json")
    assert verdict["passed"] is True
    assert [level["targets"] for level in verdict["levels"]] == [16, 16, 16]
    assert {level["worst"]["token"] for level in verdict["levels"]} == {LAST}


def test_decks_are_named_by_the_real_token(build: Path) -> None:
    index = content(build / "netlist" / "index.json")
    decks = [row for row in index["decks"] if "token" in row]
    assert decks
    assert {row["token"] for row in decks} == {LAST}
    assert all(f"_t{LAST}_k" in row["file"] for row in decks)
    origin = content(build / "netlist" / "origin.json")["decks"]
    assert {entry["token"] for entry in origin.values()} == {LAST}
    senders = {
        source
        for entry in origin.values()
        for element in entry["elements"].values()
        for source in element.get("sources", ())
    }
    assert senders == set(range(LAST + 1))


@pytest.mark.ngspice
@pytest.mark.gnucap
def test_simulators_run_the_real_token(build: Path) -> None:
    levels = "ir,phase,circuit,spice"
    assert run("verify", build, "--levels", levels, "-q") == 0
    for engine in ("ngspice", "gnucap"):
        seen = load_observables(build / f"sim/{engine}/observables.safetensors")
        assert seen.arrays[f"{STAGE}.index"][:, 0].tolist() == [LAST] * 3
    energy = oscc.energy(oscc_program(build), seen)
    assert energy.tokens == 1


def oscc_program(build: Path) -> oscc.Program:
    from oscc.ir.codec import load

    return load(build / "program.safetensors")


def test_the_account_is_for_one_generated_token(build: Path) -> None:
    energy = content(build / "energy.json")
    program = oscc_program(build)
    stage = program.stages[0]
    periods = 3 * stage.substeps * stage.dwell_periods
    reads = 2 * stage.substeps
    assert (energy["tokens"], energy["mode"]) == (1, "decode")
    assert energy["per_token_J"] == energy["total_J"]
    assert energy["seconds_per_token"] == pytest.approx(periods * PERIOD_S, rel=2e-3)
    bank = 16 * len(TEXT)
    assert energy["causes_J"]["source_oscillators"] == pytest.approx(
        bank * (periods + reads) * E0_J, rel=2e-3
    )
    assert energy["causes_J"]["target_oscillators"] == pytest.approx(
        16 * periods * E0_J, rel=2e-3
    )
    assert energy["pairs"] == bank
    named = {entry["name"]: entry for entry in energy["assumptions"]}
    assert named["source_refresh"]["value"] == 1.0
    assert "source_refresh" in energy["notes"][0]


def test_a_prefill_says_its_time_too_and_no_bank(
    both: tuple[oscc.Program, oscc.Program],
) -> None:
    energy = oscc.energy(both[0]).to_json()
    assert (energy["mode"], energy["tokens"]) == ("prefill", len(TEXT))
    assert energy["seconds_per_token"] == pytest.approx(
        energy["periods"] * PERIOD_S, rel=2e-3
    )
    assert "source_refresh" not in {e["name"] for e in energy["assumptions"]}
    with pytest.raises(oscc.RequestError, match="no assumption `source_refresh`"):
        oscc.energy(both[0], overrides={"source_refresh": 0.5})


def test_a_held_bank_saves_writes_and_runs_through_them(
    both: tuple[oscc.Program, oscc.Program],
) -> None:
    """From q = 1 to q = 0: D bank - new writes less, D bank h periods more."""
    program = both[1]
    fresh, held = (
        oscc.energy(program, overrides={"source_refresh": q}).causes_J for q in (1, 0)
    )
    dwells, bank, new = 2 * program.stages[0].substeps, 16 * len(TEXT), 16
    word = 12 * 10e-12 / 64
    hold = 5.0 * (5.0 - 1.0) / 6e3 * PERIOD_S  # Vdd (Vdd - V_MIT) / R_s T0
    saved = fresh["programming"] - held["programming"]
    assert saved == pytest.approx((dwells * bank - new) * (word + hold), rel=2e-3)
    more = held["source_oscillators"] - fresh["source_oscillators"]
    assert more == pytest.approx(dwells * bank * E0_J, rel=2e-3)
    same = ("target_oscillators", "couplers", "read_out", "host")
    assert all(held[name] == pytest.approx(fresh[name], rel=1e-12) for name in same)


def test_report_and_inspect_say_what_is_computed(
    build: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (build / "report.html").read_text("utf-8")
    assert f"token {LAST} alone (decode)" in page
    assert f"token {LAST}, coordinate" in page
    capsys.readouterr()
    assert run("inspect", build, "--pair", f"2,{LAST},3") == 0
    assert "source at" in capsys.readouterr().out
    assert run("inspect", build, "--pair", "2,3,3") == 2
    assert f"target token {LAST}" in capsys.readouterr().err
    assert run("simulate", build, "--engine", "ngspice", "--targets", "3,2") == 2
    assert f"among its tokens from {LAST}" in capsys.readouterr().err


def test_two_builds_are_the_same_bytes(build: Path, tmp_path: Path) -> None:
    arguments = ["--text", TEXT, "--mode", "decode", "--deck-targets", 3]
    folders = [tmp_path / "one", tmp_path / "Two Ü"]
    for jobs, folder in enumerate(folders, 1):
        job = ["--jobs", jobs, "-q", "-o", folder]
        assert run("compile", SHIPPED, *arguments, *job) == 0
    seen = [
        {p.relative_to(f): p.read_bytes() for p in f.rglob("*") if p.is_file()}
        for f in folders
    ]
    for files in seen:
        files.pop(Path("log.jsonl"), None)
    assert seen[0] == seen[1]
    name = "program.safetensors"
    assert (build / name).read_bytes() == (folders[0] / name).read_bytes()


def test_a_closed_loop_puts_the_engine_under_the_last_token_alone() -> None:
    model = oscc.load(SHIPPED)
    program = oscc.compile(model, TEXT, mode="decode")
    verdict = oscc.verify(program, options=oscc.VerifyOptions(model=model))
    assert verdict.passed
    assert verdict.model is not None
    assert verdict.model["bpc_hardware"] is None  # nothing follows the last token
    assert 0 <= verdict.model["kl_nats"] < 1e-2
    exact = oscc.VerifyOptions(levels=("phase",), model=model)
    assert oscc.verify(program, options=exact).model["kl_nats"] < 1e-12  # type: ignore[index]


@pytest.mark.gnucap
def test_a_tile_of_real_cells_holds_the_bank_and_one_target(tmp_path: Path) -> None:
    out = tmp_path / "tile"
    arguments = ["--text", TEXT, "--mode", "decode", "--fidelity", "oscillators"]
    some = ["--deck-targets", 1, "-q", "-o", out]
    assert run("compile", KURAMOTO, *arguments, *some) == 0
    assert run("verify", out, "--levels", "circuit,spice:gnucap", "-q") == 0
    gap = content(out / "verify.json")["fidelity_gap"]
    assert (gap["sources"], gap["targets"]) == (len(TEXT), 1)
    assert gap["max_rad"] < 0.02


def test_a_probe_has_its_epsilon_at_one_token_too() -> None:
    model = oscc.load(SHIPPED)
    program = oscc.compile(
        model, TEXT, mode="decode", update="probe", scheme="plain", periods=40
    )
    assert program.stages[0].grid == (1, 16)
    assert oscc.simulate(program, "circuit").phase(STAGE).shape == (1, 16)


def test_an_unknown_mode_is_refused(tmp_path: Path) -> None:
    model = oscc.load(SHIPPED)
    with pytest.raises(oscc.RequestError, match="`mode` must be one of decode"):
        oscc.compile(model, "abc", mode="generate")
    out = tmp_path / "build"
    assert run("compile", SHIPPED, "--text", "a", "--mode", "x", "-o", out) == 2
    assert not out.exists()


def test_a_new_token_of_pair_cells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ssa, out = ROOT / "checkpoints" / "ssa-trainable.safetensors", tmp_path / "locks"
    arguments = ["--text", "import o", "--mode", "decode", "--deck-targets", 2]
    assert run("compile", ssa, *arguments, "-q", "-o", out) == 0
    program = oscc_program(out)
    assert program.computed_tokens == 1
    for stage in program.stages:
        assert stage.index is not None
        assert set(stage.index[:, 1].tolist()) == {7}
    assert run("verify", out, "--levels", "ir", "-q") == 0
    capsys.readouterr()
    assert run("inspect", out) == 0
    assert "computes token 7 alone" in capsys.readouterr().out
    assert run("compile", ssa, *arguments[:2], "-q", "-o", tmp_path / "whole") == 0
    assert oscc_program(tmp_path / "whole").computed_tokens == 8
