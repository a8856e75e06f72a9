"""simulate: engines by name, stages and targets that were asked for, files kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oscc.observables
from oscc.build import FORMAT, NETLIST_FORMAT, BuildFolder
from oscc.errors import RequestError, ToolError
from oscc.files import read_json, sha256_file
from oscc.ir.plan import dwells, total_periods
from oscc.testing.tiny import tiny_program, tiny_stage
from oscc.verbs.simulate import (
    SimulateOptions,
    chosen_targets,
    simulate,
    simulate_folder,
)
from oscc_backends.deck_files import write_sample
from oscc_netlists.circuit import ideal_elements
from oscc_netlists.reader import read as read_deck

NAMES = ("layer.0.coupling", "layer.1.coupling")


def two_stages() -> Any:
    return tiny_program(
        tiny_stage(tokens=3), tiny_stage(1, tokens=3, name="layer.1.coupling")
    )


@pytest.mark.parametrize("engine", ["ir", "phase", "circuit"])
def test_engines_see_every_stage(engine: str) -> None:
    program = two_stages()
    seen = simulate(program, engine)
    assert (seen.engine, seen.program, seen.stages) == (engine, program.digest(), NAMES)


def test_some_stages_when_asked() -> None:
    options = SimulateOptions(stages=["layer.1.coupling"])
    for engine in ("phase", "circuit"):
        assert simulate(two_stages(), engine, options=options).stages == NAMES[1:]


def test_an_unknown_engine_is_named_with_the_nearest() -> None:
    with pytest.raises(RequestError) as caught:
        simulate(two_stages(), "circiut")
    assert "There is no engine `circiut`" in str(caught.value)
    assert str(caught.value).endswith("Did you mean `circuit`?")


def test_an_unknown_stage_is_named() -> None:
    options = SimulateOptions(stages=["layer.9.coupling"])
    with pytest.raises(RequestError, match=r"has no stage `layer\.9\.coupling`"):
        simulate(two_stages(), "phase", options=options)


def test_a_missing_simulator_is_a_tool_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OSCC_NGSPICE", "/nowhere/ngspice")
    with pytest.raises(ToolError, match="ngspice cannot run: "):
        simulate(two_stages(), "ngspice")


@pytest.mark.parametrize("engine", ["ir", "phase", "circuit"])
@pytest.mark.parametrize("targets", [4, "0,1", ["1,1"]])
def test_a_choice_of_targets_is_not_ignored_in_silence(
    engine: str, targets: Any
) -> None:
    with pytest.raises(RequestError) as caught:
        simulate(two_stages(), engine, options=SimulateOptions(targets=targets))
    assert str(caught.value) == (
        f"Engine {engine} always runs every target; a choice of targets is for the "
        "simulators."
    )


@pytest.mark.parametrize(
    ("targets", "wanted"),
    [
        ("1,2", [[1, 2]]),
        ("2,0; 1,3;2,0", [[1, 3], [2, 0]]),
        (["0,0", "2,3"], [[0, 0], [2, 3]]),
        ("all", [[t, j] for t in range(3) for j in range(4)]),
    ],
)
def test_listed_targets(targets: Any, wanted: list[list[int]]) -> None:
    found = chosen_targets(two_stages(), SimulateOptions(targets=targets))
    assert {name: index.tolist() for name, index in found.items()} == dict.fromkeys(
        NAMES, wanted
    )


@pytest.mark.parametrize("targets", [5, "5"])
def test_a_number_of_targets_a_stage(targets: Any) -> None:
    found = chosen_targets(two_stages(), SimulateOptions(targets=targets))
    assert {name: len(index) for name, index in found.items()} == dict.fromkeys(
        NAMES, 5
    )
    default = chosen_targets(two_stages(), SimulateOptions())
    assert len(default[NAMES[0]]) == 8


def test_targets_of_the_stages_that_were_asked_for() -> None:
    options = SimulateOptions(stages=NAMES[1:], targets="all")
    assert list(chosen_targets(two_stages(), options)) == list(NAMES[1:])


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ("1-2", "Target '1-2' must be TOKEN,COORDINATE, such as 17,3; several are"),
        ("-1,2", "Target '-1,2' must be TOKEN,COORDINATE"),
        ("3,0", "target 3,0 is not among its 3 tokens and 4 coordinates."),
        ("0,4", "target 0,4 is not among its 3 tokens and 4 coordinates."),
        ("", "Target '' must be TOKEN,COORDINATE"),
    ],
)
def test_targets_that_are_none(targets: str, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        chosen_targets(two_stages(), SimulateOptions(targets=targets))
    assert message in str(caught.value)


def test_a_run_is_kept_and_listed(build: Path) -> None:
    seen = simulate_folder(build, "circuit", SimulateOptions(jobs=2))
    path = build / "sim" / "circuit" / "observables.safetensors"
    kept = oscc.observables.load(path)
    for name, array in seen.arrays.items():
        assert kept.arrays[name].tobytes() == array.tobytes()
    listed = read_json(build / "manifest.json", FORMAT)["outputs"]
    assert listed["sim/circuit/observables.safetensors"] == sha256_file(path)
    assert not any("run.json" in name for name in listed)
    facts = json.loads((build / "sim" / "circuit" / "run.json").read_text())
    program = BuildFolder.open(build).program()
    assert facts["program"] == program.digest()
    assert facts["wall_s"] > 0
    assert facts["oscillator_periods"] == sum(
        s.targets * total_periods(s) for s in program.stages
    )


def test_observables_do_not_depend_on_jobs_or_folder(build: Path) -> None:
    path = build / "sim" / "circuit" / "observables.safetensors"
    simulate_folder(build, "circuit", SimulateOptions(jobs=1))
    first = path.read_bytes()
    simulate_folder(build, "circuit", SimulateOptions(jobs=3))
    assert path.read_bytes() == first


def test_a_bad_request_leaves_the_folder_as_it_was(build: Path) -> None:
    before = sorted(build.rglob("*"))
    for engine, options in (
        ("circiut", SimulateOptions()),
        ("phase", SimulateOptions(stages=["none"])),
        ("circuit", SimulateOptions(targets=3)),
    ):
        with pytest.raises(RequestError):
            simulate_folder(build, engine, options)
    assert sorted(build.rglob("*")) == before


def test_phases_of_the_levels_are_near_each_other(compiled: Path) -> None:
    program = BuildFolder.open(compiled).program()
    ir, phase, circuit = (simulate(program, e) for e in ("ir", "phase", "circuit"))
    for name in NAMES:
        assert np.abs(ir.phase(name) - phase.phase(name)).max() < 1e-6
        error = circuit.phase(name) - phase.phase(name)
        assert 0 < np.sqrt(np.mean(error**2)) < 0.01


@pytest.mark.parametrize("targets", [0, "0"])
def test_no_target_at_all_is_refused(targets: Any) -> None:
    with pytest.raises(RequestError, match="runs 1 target a stage or more, but 0"):
        chosen_targets(two_stages(), SimulateOptions(targets=targets))


@pytest.mark.parametrize("engine", ["ir", "phase", "circuit", "gnucap"])
def test_no_stage_at_all_is_refused(engine: str) -> None:
    with pytest.raises(RequestError) as caught:
        simulate(two_stages(), engine, options=SimulateOptions(stages=[]))
    assert str(caught.value) == (
        "No stage was asked for; the program has layer.0.coupling, layer.1.coupling."
    )


def run_gnucap(build: Path, targets: str, **settings: Any) -> list[dict[str, Any]]:
    """Run one stage in gnucap; the decks that the index lists of it."""
    options = SimulateOptions(targets=targets, stages=NAMES[:1], **settings)
    simulate_folder(build, "gnucap", options)
    index = read_json(build / "netlist" / "index.json", NETLIST_FORMAT)
    return [row for row in index["decks"] if row.get("engine") == "gnucap"]


def with_netlist(build: Path) -> Path:
    program = BuildFolder.open(build).program()
    write_sample(program, {NAMES[0]: np.array([[0, 0]])}, build)
    return build


@pytest.mark.gnucap
def test_simulators_start_from_a_whole_circuit_run(build: Path) -> None:
    simulate_folder(build, "circuit", SimulateOptions(stages=NAMES[1:]))
    seen = simulate_folder(
        build, "gnucap", SimulateOptions(targets="1,1", stages=NAMES[:1], gate=False)
    )
    assert seen.stages == NAMES[:1]


@pytest.mark.gnucap
def test_every_deck_of_a_run_is_listed_and_older_ones_are_gone(build: Path) -> None:
    with_netlist(build)
    folder = build / "netlist"
    sample = read_json(folder / "index.json", NETLIST_FORMAT)["decks"]
    assert run_gnucap(build, "1,1;2,0")
    rows = run_gnucap(build, "2,0;0,3", gate=False)
    stage = BuildFolder.open(build).program().stage(NAMES[0])
    assert {(r["token"], r["coordinate"]) for r in rows} == {(2, 0), (0, 3)}
    assert len(rows) == 2 * len(dwells(stage))
    assert {r["finer"] for r in rows} == {False}
    there = {p.name for p in (build / "sim" / "gnucap" / "decks").iterdir()}
    assert {(folder / r["file"]).resolve().name for r in rows} == there
    assert all((folder / r["file"]).is_file() for r in rows)
    index = read_json(folder / "index.json", NETLIST_FORMAT)["decks"]
    assert index[: len(sample)] == sample
    hashes = read_json(build / "manifest.json", FORMAT)["outputs"]
    assert hashes["netlist/index.json"] == sha256_file(folder / "index.json")


@pytest.mark.gnucap
def test_a_listed_run_has_the_facts_of_its_deck(build: Path) -> None:
    with_netlist(build)
    (row, *_) = run_gnucap(build, "0,0", gate=False)
    text = (build / "netlist" / row["file"]).read_text(encoding="utf-8")
    circuit, dialect = read_deck(text)
    assert row["ideal_elements"] == ideal_elements(circuit)
    assert row["elements"] == sum(1 for _ in circuit.elements())
    assert (row["dialect"], row["calibrated"]) == (dialect, True)
    sample = read_json(build / "netlist" / "index.json", NETLIST_FORMAT)["decks"][1]
    assert set(row) == {*sample, "engine", "finer"}
