"""Decks of stages whose pairs are listed: every pair is there, with its own offset."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oscc.device import load_card
from oscc.device.coupler import injection_A, unit_injection_A
from oscc.errors import RequestError
from oscc.ir.plan import Dwell, dwells
from oscc.testing.flat import modes_stage
from oscc.testing.tiny import tiny_program
from oscc_backends.circuit import drive
from oscc_backends.deck_files import write_sample
from oscc_backends.spice import build_deck, largest_move_rad
from oscc_backends.tile import strongest_coordinate
from oscc_netlists.dialects import DIALECTS, write
from oscc_netlists.lint import lint
from oscc_netlists.network import injected_A, read_pairs
from oscc_netlists.reader import read
from oscc_netlists.settings import default_settings
from oscc_netlists.timing import closed_form

CARD = load_card("vo2-two-state-6k")
NAME, TARGET = "layer.0.modes", (2, 3)


def deck_text(stage: Any, dwell: Dwell, **more: Any) -> str:
    made = tiny_program(stage)
    return build_deck(made, NAME, *TARGET, dwell, phi0_rad=0.4, **more).text


@pytest.mark.parametrize("dialect", DIALECTS)
@given(seed=st.integers(0, 10_000))
@settings(max_examples=10)
def test_every_listed_pair_is_a_weight_of_the_deck(dialect: str, seed: int) -> None:
    """Strength, order and the phase of the current, told from the elements alone."""
    stage = modes_stage(seed, modes=5)
    dwell, timing = dwells(stage)[0], closed_form(CARD, default_settings(dialect))
    text = deck_text(stage, dwell, dialect=dialect, timing=timing)
    found = read_pairs(read(text)[0])
    edges, row = stage.edges, TARGET[0] * 4 + TARGET[1]
    mine = np.flatnonzero(edges.target == row)
    assert mine.size == 5
    assert set(found.route) == {"edges"}
    told = {
        (int(n), int(b)): (float(w), complex(i))
        for n, b, w, i in zip(
            found.harmonic, found.source, found.weight, found.current_A, strict=True
        )
    }
    assert len(told) == mine.size
    seconds = dwell.periods * timing.period_s
    for e in mine:
        order, source = int(edges.harmonic[e]), int(edges.source[e])
        weight, current = told[order, source]
        assert weight == pytest.approx(edges.gamma[e], rel=1e-12)
        angle = order * stage.theta_rad[source] + edges.alpha_rad[e]
        unit = complex(unit_injection_A(CARD, np.array([order]), seconds)[0])
        gain = stage.gain_rad[row] * dwell.gain
        wanted = unit * gain * edges.gamma[e] * np.exp(1j * angle)
        assert abs(current - wanted) <= 1e-9 * abs(wanted)


@pytest.mark.parametrize("fidelity", ["pairwise", "summed"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_injected_current_is_that_of_the_coupling_law(
    dialect: str, fidelity: str
) -> None:
    stage = modes_stage(3, modes=4, detuning_rad=np.full(12, 0.3), substeps=3)
    timing = closed_form(CARD, default_settings(dialect))
    for dwell in dwells(stage):
        text = deck_text(
            stage, dwell, dialect=dialect, fidelity=fidelity, timing=timing
        )
        circuit, told = read(text)
        assert lint(circuit) == ()
        assert write(circuit, told) == text
        found = injected_A(circuit)
        pull = drive(stage).reshape(3, 4, -1)[TARGET][None] * dwell.gain
        offset = np.array([0.3 * dwell.gain])
        wanted = injection_A(
            CARD, pull, stage.harmonics, dwell.periods, detuning_rad=offset
        )[0]
        for order in (0, 1, 2):
            assert abs(found[order] - wanted[order]) <= 1e-9 * abs(wanted[order])


@given(st.integers(0, 1000), st.floats(-3, 3))
@settings(max_examples=30)
def test_the_bound_of_a_move_holds(seed: int, gain: float) -> None:
    stage = modes_stage(seed, tokens=2, modes=5)
    dwell = Dwell(0, 0, 4, gain)
    pull = np.abs(drive(stage)).reshape(2, 4, -1).sum(axis=2) * abs(gain)
    bound = [[largest_move_rad(stage, t, k, dwell) for k in range(4)] for t in range(2)]
    assert (pull <= np.array(bound) * (1 + 1e-12)).all()


def test_the_sample_names_rows_of_the_bank(tmp_path: Path) -> None:
    stage = modes_stage(4, modes=3, substeps=2)
    write_sample(tiny_program(stage), {NAME: np.array([TARGET])}, tmp_path)
    origin = json.loads((tmp_path / "netlist/origin.json").read_text())["decks"]
    assert len(origin) == 2 * 2
    for entry in origin.values():
        weights = [e for e in entry["elements"].values() if e["role"] == "weight"]
        assert sorted(e["sources"] for e in weights) == [[6], [7], [8]]
        assert {e["route"] for e in weights} == {"edges"}
        assert sorted(e["harmonic"] for e in weights) == [1, 1, 2]


def test_a_tile_of_listed_pairs_is_refused() -> None:
    with pytest.raises(RequestError, match="listed as edges"):
        strongest_coordinate(modes_stage())
