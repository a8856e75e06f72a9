"""Decks of a program: headers, origins, weights of the IR, files that repeat."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oscc.device import load_card
from oscc.device.coupler import injection_A
from oscc.errors import RequestError
from oscc.ir.plan import Dwell, dwells
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc.testing.tiny import tiny_program, tiny_stage
from oscc_backends.circuit import drive
from oscc_backends.deck_files import write_sample
from oscc_backends.spice import build_deck, largest_move_rad, prepare
from oscc_netlists.circuit import SIGNAL_ROLES, ideal_elements
from oscc_netlists.dialects import DIALECTS, write
from oscc_netlists.lint import lint
from oscc_netlists.network import injected_A, read_pairs
from oscc_netlists.reader import read
from oscc_netlists.settings import default_settings
from oscc_netlists.timing import Timing, closed_form

CARD = load_card("vo2-two-state-6k")
TARGET = (5, 2)


def program(**changes: Any) -> Program:
    return tiny_program(tiny_stage(1, tokens=8, **changes))


def deck_text(made: Program, dwell: Dwell, **more: Any) -> str:
    name = made.stages[0].name
    return build_deck(made, name, *TARGET, dwell, phi0_rad=0.4, **more).text


@pytest.mark.parametrize("dialect", DIALECTS)
@given(seed=st.integers(0, 10_000))
@settings(max_examples=10)
def test_every_pair_term_of_the_ir_is_a_weight_of_the_deck(
    dialect: str, seed: int
) -> None:
    made = tiny_program(tiny_stage(seed, tokens=8, heads=2))
    stage = made.stages[0]
    circuit, _ = read(deck_text(made, dwells(stage)[0], dialect=dialect))
    found = read_pairs(circuit)
    token, coordinate = TARGET
    told = {
        (route, int(order), int(source)): float(weight)
        for route, order, source, weight in zip(
            found.route, found.harmonic, found.source, found.weight, strict=True
        )
    }
    wanted = {}
    for coupling in stage.couplings:
        row = coupling.weights[coordinate // 2, token]
        for order in coupling.harmonics.tolist():
            for source in np.flatnonzero(row).tolist():
                wanted[coupling.route, order, source] = float(row[source])
    assert set(told) == set(wanted)
    for key, value in wanted.items():
        assert told[key] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("fidelity", ["pairwise", "summed"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_injected_current_is_that_of_the_coupling_law(
    dialect: str, fidelity: str
) -> None:
    # detuning included: gamma_0 I_0 = kappa Omega
    detuning = np.full((8, 4), 0.3)
    made = program(detuning_rad=detuning, substeps=3)
    stage = made.stages[0]
    timing = closed_form(CARD, default_settings(dialect))
    for dwell in dwells(stage):
        text = deck_text(made, dwell, dialect=dialect, fidelity=fidelity, timing=timing)
        found = injected_A(read(text)[0])
        pull = drive(stage).reshape(8, 4, -1)[TARGET][None] * dwell.gain
        offset = np.array([0.3 * dwell.gain])
        wanted = injection_A(
            CARD, pull, stage.harmonics, dwell.periods, detuning_rad=offset
        )[0]
        for order in (0, 1, 2):
            assert abs(found[order] - wanted[order]) <= 1e-9 * abs(wanted[order])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_header_says_what_the_deck_is(dialect: str) -> None:
    made = program()
    dwell = dwells(made.stages[0])[1]
    timing = closed_form(CARD, default_settings(dialect))
    known = replace(timing, calibrated=True)
    circuit, _ = read(deck_text(made, dwell, dialect=dialect, timing=known))
    header = dict(circuit.header)
    counts = " ".join(f"{k} {n}" for k, n in ideal_elements(circuit).items())
    assert header["fidelity"] == "pairwise"
    assert header["ideal_elements"] == counts
    assert header["program"] == made.digest()
    assert header["stage"] == "layer.0.coupling"
    assert (header["token"], header["coordinate"]) == ("5", "2")
    assert (header["periods"], header["calibrated"]) == (str(dwell.periods), "yes")
    plain = read(deck_text(made, dwell, dialect=dialect))[0]
    assert dict(plain.header)["calibrated"] == "no"


def test_ideal_elements_count_sources_by_letter() -> None:
    circuit, _ = read(deck_text(program(), dwells(program().stages[0])[0]))
    # 6 sources (causal) x 2 harmonics x 2 routes, the gate, and what sums them
    assert ideal_elements(circuit) == {"B": 1, "G": 24 + 4, "V": 24 + 1}


@pytest.mark.parametrize("fidelity", ["pairwise", "summed"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_decks_pass_lint_and_read_back(dialect: str, fidelity: str) -> None:
    made = program()
    text = deck_text(
        made, dwells(made.stages[0])[0], dialect=dialect, fidelity=fidelity
    )
    circuit, told = read(text)
    assert lint(circuit) == ()
    assert write(circuit, told) == text
    words = [line.split()[0] for line in text.splitlines()]
    dots = {word for word in words if word.startswith(".")}
    assert dots <= {".model", ".options", ".save", ".print", ".tran", ".end"}


def test_a_stage_name_cannot_become_a_command() -> None:
    name = "q\n.system touch x\n.control > y"
    made = program(name=name)
    for dialect in DIALECTS:
        text = deck_text(made, dwells(made.stages[0])[0], dialect=dialect)
        lines = [x for x in text.splitlines() if "touch" in x or "control" in x]
        assert lines
        assert all(line.startswith("* ") for line in lines)


@given(st.integers(0, 1000), st.floats(-3, 3))
@settings(max_examples=30)
def test_the_bound_of_a_move_holds(seed: int, gain: float) -> None:
    stage = tiny_stage(seed, tokens=4)
    dwell = Dwell(0, 0, 4, gain)
    pull = np.abs(drive(stage)).reshape(4, 4, -1).sum(axis=2) * abs(gain)
    bound = [[largest_move_rad(stage, t, k, dwell) for k in range(4)] for t in range(4)]
    assert (pull <= np.array(bound) * (1 + 1e-12)).all()


def refused(match: str, made: Program, **more: Any) -> None:
    with pytest.raises(RequestError, match=match):
        deck_text(made, Dwell(0, 0, 4, 1.0), **more)


def test_what_no_deck_can_hold_is_refused() -> None:
    refused("corrected", program(scheme="corrected"))
    refused("fidelity", program(), fidelity="passive")
    refused("dialect", program(), dialect="xyce")
    timing = closed_form(CARD, default_settings("gnucap"))
    refused("free period of its own", program(), dialect="ngspice", timing=timing)


def test_too_strong_a_pull_is_refused_with_the_target() -> None:
    strong = program(gain_rad=2.0)
    with pytest.raises(RequestError, match="target 5/2"):
        deck_text(strong, Dwell(0, 0, 1, 40.0))


def test_a_target_that_is_not_there_is_refused() -> None:
    made = program()
    with pytest.raises(RequestError, match="8/0"):
        build_deck(made, made.stages[0].name, 8, 0, Dwell(0, 0, 4, 1.0), phi0_rad=0.0)


def two_layers() -> Program:
    first, second = (tiny_stage(k, tokens=6, substeps=2) for k in (1, 2))
    return tiny_program(replace(first, name="Q"), replace(second, name="q"))


SAMPLE = {"Q": np.array([[1, 0], [5, 3]]), "q": np.array([[4, 2]])}


def test_the_sample_is_written_with_index_and_origin(tmp_path: Path) -> None:
    made = two_layers()
    write_sample(made, SAMPLE, tmp_path)
    index = json.loads((tmp_path / "netlist/index.json").read_text())
    origin = json.loads((tmp_path / "netlist/origin.json").read_text())
    assert index["format"] == "oscc.netlist/1"
    assert origin["format"] == "oscc.origin/1"
    assert index["program"] == made.digest()
    # layers that differ by case alone keep names of their own
    assert sorted(index["names"].values()) == ["q", "q_2"]
    files = {row["file"] for row in index["decks"]}
    written = {
        str(p.relative_to(tmp_path / "netlist"))
        for p in (tmp_path / "netlist").rglob("*.cir")
    }
    # 3 targets x 2 dwells of the first substep, and the reference, in two dialects
    assert files == written
    assert len(files) == 2 * (3 * 2 + 1)
    assert set(origin["decks"]) == {f for f in files if "reference" not in f}


def test_origin_names_every_element(tmp_path: Path) -> None:
    write_sample(two_layers(), SAMPLE, tmp_path)
    origin = json.loads((tmp_path / "netlist/origin.json").read_text())
    for name, entry in origin["decks"].items():
        circuit, _ = read((tmp_path / "netlist" / name).read_text())
        told = entry["elements"]
        assert set(told) == {element.name for element in circuit.elements()}
        for word, facts in told.items():
            if facts["role"] in ("source", "weight"):
                source, order, letter = word[2:].split("_")
                assert facts["sources"] == [int(source)]
                assert facts["harmonic"] == int(order)
                assert facts["route"] == {"p": "present", "s": "successor"}[letter]
        assert {f["role"] for f in told.values()} <= {*SIGNAL_ROLES, "target"}


def test_the_same_program_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_sample(two_layers(), SAMPLE, tmp_path / name)
    files = sorted(p for p in (tmp_path / "a").rglob("*") if p.is_file())
    for path in files:
        other = tmp_path / "b" / path.relative_to(tmp_path / "a")
        assert path.read_bytes() == other.read_bytes()
        assert str(tmp_path) not in path.read_text()


def test_calibrated_timings_are_told(tmp_path: Path) -> None:
    closed = closed_form(CARD, default_settings("gnucap"))
    timing: Timing = replace(closed, calibrated=True)
    write_sample(two_layers(), SAMPLE, tmp_path, {"gnucap": timing, "ngspice": None})
    index = json.loads((tmp_path / "netlist/index.json").read_text())
    for row in index["decks"]:
        assert row["calibrated"] is (row["dialect"] == "gnucap")


def test_prepare_is_shared_by_all_decks_of_a_program() -> None:
    made = program()
    shared = prepare(made)
    stage: Stage = made.stages[0]
    dwell = dwells(stage)[0]
    one = build_deck(shared, stage.name, *TARGET, dwell, phi0_rad=0.4)
    assert one.text == deck_text(made, dwell)
