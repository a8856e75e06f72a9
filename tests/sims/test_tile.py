"""Tile of real cells: its gap to `pairwise`, its weights, its supply energy."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from oscc.device import load_card
from oscc.device.cycle_energy import energy_per_period_J
from oscc.device.piecewise import period_s
from oscc.errors import RequestError
from oscc.files import dump_json
from oscc.ir.program import Program
from oscc.testing.tiny import tiny_program, tiny_stage
from oscc_backends.spice import prepare
from oscc_backends.tile import TileOptions, build_tile
from oscc_netlists.couplers import WEIGHT_SIEMENS
from oscc_netlists.dialects import write
from oscc_netlists.element import Transconductor
from oscc_netlists.lint import lint
from oscc_netlists.reader import read
from oscc_netlists.settings import default_settings
from oscc_netlists.tile import WriteTiming
from oscc_sims.tile import TileResult, calibrate_write, run_tile

CARD = load_card("vo2-two-state-6k")
GNUCAP = default_settings("gnucap")
NOMINAL = WriteTiming(GNUCAP, period_s(CARD), 2.6)


def program(**changes: Any) -> Program:
    shape: dict[str, Any] = {"tokens": 6, "coordinates": 2, "heads": 1, "substeps": 3}
    return tiny_program(tiny_stage(2, **{**shape, "dwell_periods": 4, **changes}))


def test_every_pair_and_route_is_one_weight() -> None:
    made = program()
    stage = made.stages[0]
    tile = build_tile(prepare(made), stage.name, 1, NOMINAL)
    circuit, dialect = read(tile.deck.text)
    assert dialect == "gnucap"
    assert write(circuit, dialect) == tile.deck.text
    assert lint(circuit) == ()
    found = {}
    for element in circuit.elements():
        name = re.fullmatch(r"g_w_(\d+)_(\d+)_([ps])", element.name)
        if name and isinstance(element, Transconductor):
            key = (name[3], int(name[1]), int(name[2]))
            found[key] = element.siemens / WEIGHT_SIEMENS
    wanted = {
        (coupling.route[0], t, u): float(coupling.weights[0, t, u])
        for coupling in stage.couplings
        for t, u in np.argwhere(coupling.weights[0])
    }
    assert set(found) == set(wanted)
    for key, value in wanted.items():
        assert found[key] == pytest.approx(value, rel=1e-12)


def test_the_header_says_what_is_ideal() -> None:
    made = program()
    tile = build_tile(prepare(made), made.stages[0].name, 1, NOMINAL)
    header = dict(tile.deck.circuit.header)
    assert header["fidelity"] == "oscillators"
    assert header["weight_output"] == "10000000.0 ohm, 1e-15 F each"
    # 6 write clocks of sources, 6 of targets, 1 of the reference, and the gate
    assert "V 14" in header["ideal_elements"]


def test_a_tile_takes_its_first_tokens_alone() -> None:
    made = program()
    tile = build_tile(
        prepare(made), made.stages[0].name, None, NOMINAL, TileOptions(tokens=3)
    )
    assert tile.spec.theta_rad.size == tile.spec.phi0_rad.size == 3
    assert all(matrix.shape == (3, 3) for matrix in tile.spec.weights.values())


def test_what_is_no_tile_is_refused() -> None:
    made = program()
    name = made.stages[0].name
    with pytest.raises(RequestError, match="no coordinate 2"):
        build_tile(prepare(made), name, 2, NOMINAL)
    detuned = program(detuning_rad=np.full((6, 2), 0.1))
    with pytest.raises(RequestError, match="detuned"):
        build_tile(prepare(detuned), name, 0, NOMINAL)
    other = replace(NOMINAL, settings=default_settings("ngspice"))
    with pytest.raises(RequestError, match="gnucap"):
        build_tile(prepare(made), name, 0, other)
    stage = made.stages[0]
    full = replace(stage.couplings[0], weights=np.full((1, 6, 6), 1 / 6.0))
    mixed = replace(stage, causal=False, couplings=(full,))
    loose = made.replace(stages=(mixed,))
    with pytest.raises(RequestError, match="later"):
        build_tile(prepare(loose), name, 0, NOMINAL, TileOptions(tokens=3))


@lru_cache(maxsize=2)
def result(orders: int) -> TileResult:
    made = program(harmonics=tuple(range(1, orders + 1)), gain_rad=3.0)
    return run_tile(made, made.stages[0].name, jobs=2)


# design/fidelity.md section 8: gap at g <= 1 below 1.5 mrad at Q 3; two harmonics over
# two routes are rms .6 there for one, and the targets here are pulled by one source
@pytest.mark.gnucap
@pytest.mark.parametrize(("orders", "limit_rad"), [(1, 1.5e-3), (2, 5e-3)])
def test_the_gap_to_pairwise_is_small(orders: int, limit_rad: float) -> None:
    seen = result(orders)
    facts = seen.to_json()
    assert facts["largest_move_rad"] > 0.1
    assert facts["rms_rad"] < limit_rad
    assert facts["circuit_rms_rad"] < limit_rad
    # the decks of `pairwise` themselves follow the engine
    assert np.abs(seen.pairwise_rad - seen.circuit_rad).max() < 1e-3
    assert facts["write_rms_rad"] < 1e-3


@pytest.mark.gnucap
def test_the_supply_is_that_of_held_and_free_cells() -> None:
    seen = result(1)
    facts = seen.to_json()
    # held cells draw a constant current, free ones E0 a period (measured .2 %)
    assert facts["over_closed_form"] == pytest.approx(1.0, abs=5e-3)
    free = energy_per_period_J(CARD).supply_J * 13 * 4
    assert facts["supply_parts_J"]["dwell"] == pytest.approx(free, rel=0.05)
    assert sum(facts["supply_parts_J"].values()) == pytest.approx(facts["supply_J"])
    dump_json(facts)


@pytest.mark.gnucap
def test_a_written_cell_runs_at_the_period_of_the_card() -> None:
    timing = calibrate_write(CARD, GNUCAP)
    assert timing.period_s == pytest.approx(period_s(CARD), rel=5e-5)


@pytest.mark.gnucap
def test_the_load_of_the_weights_is_designed_in() -> None:
    made = program(harmonics=(1,), gain_rad=3.0)
    name = made.stages[0].name
    heavy = TileOptions(out_ohm=3e5, out_farad=0.0)
    seen = run_tile(made, name, options=heavy, jobs=2)
    # ignored, 300 kohm a weight turn the gain by 20 %: gaps of tens of mrad
    assert seen.to_json()["rms_rad"] < 2 * result(1).to_json()["rms_rad"] + 2e-4
