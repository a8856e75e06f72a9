"""ngspice and gnucap on driven targets, against the circuit engine and scipy."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oscc.device import load_card
from oscc.device.cycle_energy import energy_per_period_J
from oscc.device.piecewise import period_s
from oscc.errors import RequestError, ToolError
from oscc.ir.plan import Dwell, dwells
from oscc.ir.program import Program
from oscc.observables import Observables
from oscc.testing.independent import driven_increment_rad
from oscc.testing.tiny import tiny_program, tiny_stage
from oscc_backends import circuit
from oscc_backends.spice import build_deck, largest_move_rad, prepare
from oscc_netlists.network import injected_A
from oscc_netlists.reader import read
from oscc_netlists.settings import default_settings
from oscc_netlists.timing import Timing
from oscc_sims.calibration import calibrate
from oscc_sims.circuit import CircuitEngine
from oscc_sims.process import Children
from oscc_sims.readout import increment_rad
from oscc_sims.registry import engine
from oscc_sims.simulator import program_path, run_deck

SIMULATORS = [
    pytest.param("ngspice", marks=pytest.mark.ngspice),
    pytest.param("gnucap", marks=pytest.mark.gnucap),
]
# rms over driven targets: gnucap .2 mrad, ngspice's smooth cell .7 mrad (docs)
TOLERANCE_RAD = {"ngspice": 3e-3, "gnucap": 1e-3}
TARGETS = np.array([[11, 0], [7, 1], [3, 2]])


def program(**changes: Any) -> Program:
    wanted: dict[str, Any] = {
        "tokens": 12,
        "gain_rad": 4.0,
        "substeps": 2,
        "dwell_periods": 4,
    }
    return tiny_program(tiny_stage(3, **(wanted | changes)))


@lru_cache(maxsize=4)
def circuit_run(update: str = "flow") -> tuple[Program, Observables]:
    made = program(update=update, substeps=1 if update == "probe" else 2)
    return made, CircuitEngine().run(circuit.build(made))


@lru_cache(maxsize=4)
def timing(dialect: str) -> Timing:
    return calibrate(load_card("vo2-two-state-6k"), default_settings(dialect))


def moved(
    made: Program, token: int, dwell: Dwell, dialect: str, fidelity: str = "pairwise"
) -> tuple[float, dict[int, complex]]:
    """Increment of coordinate 0 of a token in a simulator, and the deck's current."""
    stage = made.stages[0]
    prepared = prepare(made)
    deck = build_deck(
        prepared,
        stage.name,
        token,
        0,
        dwell,
        phi0_rad=float(stage.phi0_rad[token, 0]),
        fidelity=fidelity,
        dialect=dialect,
        timing=timing(dialect),
    )
    path = program_path(dialect)
    assert path is not None
    with Children() as children:
        plot = run_deck(children, deck, path, timeout_s=60)
    bound = largest_move_rad(stage, token, 0, dwell)
    found = increment_rad(prepared.card, deck, plot, bound)
    return found, injected_A(read(deck.text)[0])


@pytest.mark.parametrize("name", SIMULATORS)
def test_the_free_period_is_that_of_the_closed_form(name: str) -> None:
    card = load_card("vo2-two-state-6k")
    # gnucap locates events (1e-5 at this step); the smooth cell's bias is 2.6e-4
    limit = {"gnucap": 5e-5, "ngspice": 5e-4}[name]
    assert abs(timing(name).period_s / period_s(card) - 1) < limit


@pytest.mark.parametrize("name", SIMULATORS)
@pytest.mark.parametrize("size", [0.5, -1.0, 2.0])
def test_a_driven_target_moves_as_scipy_says(name: str, size: float) -> None:
    made = program(gain_rad=1.0)
    stage = made.stages[0]
    gain = np.full(stage.gain_rad.shape, size)
    made = made.replace(stages=(replace(stage, gain_rad=gain),))
    card = load_card("vo2-two-state-6k")
    phi0 = float(stage.phi0_rad[9, 0])
    dwell = Dwell(run=0, substep=0, periods=5, gain=1.0)
    found, phasors = moved(made, 9, dwell, name)
    # carriers of the deck run at the simulator's period: scale to the card's
    scale = timing(name).period_s / period_s(card)
    wanted = driven_increment_rad(
        card, {n: value * scale for n, value in phasors.items()}, phi0, 5
    )
    assert abs(wanted) > 0.02
    assert abs(found - wanted) < TOLERANCE_RAD[name]


@pytest.mark.parametrize("name", SIMULATORS)
def test_summed_moves_a_target_as_pairwise_does(name: str) -> None:
    made = program()
    dwell = dwells(made.stages[0])[0]
    pairs, current = moved(made, 10, dwell, name)
    host, total = moved(made, 10, dwell, name, "summed")
    for order, value in total.items():
        assert abs(current[order] - value) <= 1e-9 * abs(value)
    assert abs(pairs - host) < 0.2e-3


@pytest.mark.parametrize("name", SIMULATORS)
def test_every_dwell_follows_the_circuit_engine(name: str, tmp_path: Path) -> None:
    made, start = circuit_run()
    stage = made.stages[0]
    decks = tmp_path / "Run 1 Ü" / "decks"
    seen = engine(name).run(
        made, {stage.name: TARGETS}, start, jobs=2, gate=True, decks_dir=decks
    )
    rows = TARGETS[:, 0] * stage.phi0_rad.shape[1] + TARGETS[:, 1]
    end = start.arrays[f"{stage.name}.raw.end_rad"][rows]
    found = seen.arrays[f"{stage.name}.raw.end_rad"]
    assert found.shape == (3, len(dwells(stage)))
    assert (
        np.abs(end - stage.phi0_rad[TARGETS[:, 0], TARGETS[:, 1]][:, None]).max() > 0.3
    )
    assert np.abs(found - end).max() < TOLERANCE_RAD[name]
    half = seen.arrays[f"{stage.name}.raw.half_step_rad"]
    assert 0 < np.abs(half - found).max() < TOLERANCE_RAD[name] / 2
    both = 2 * found[:, -1] - found[:, -2]
    np.testing.assert_array_equal(seen.arrays[f"{stage.name}.phase"], both)
    np.testing.assert_array_equal(seen.arrays[f"{stage.name}.index"], TARGETS)
    assert len(list(decks.glob("*.cir"))) == seen.facts["decks"] == 2 * found.size
    assert seen.program == made.digest()


@pytest.mark.ngspice
def test_energies_are_those_of_the_circuit_engine() -> None:
    made, start = circuit_run()
    stage = made.stages[0]
    seen = engine("ngspice").run(made, {stage.name: TARGETS}, start, jobs=2)
    rows = TARGETS[:, 0] * stage.phi0_rad.shape[1] + TARGETS[:, 1]
    supply = seen.arrays[f"{stage.name}.supply_J"]
    free = energy_per_period_J(load_card("vo2-two-state-6k")).supply_J
    periods = sum(dwell.periods for dwell in dwells(stage))
    # a pull changes the energy of a period by a few per cent at most
    np.testing.assert_allclose(supply, free * periods, rtol=0.05)
    assert seen.facts[stage.name]["balance_error"] < 1e-3
    for part, share in (("supply", 1e-3), ("r_series", 1e-3), ("vo2", 1e-3)):
        key = f"{stage.name}.{part}_J"
        np.testing.assert_allclose(
            seen.arrays[key], start.arrays[key][rows], rtol=share
        )
    injected = f"{stage.name}.injected_J"
    np.testing.assert_allclose(
        seen.arrays[injected], start.arrays[injected][rows], atol=1e-3 * supply.max()
    )


@pytest.mark.parametrize("name", SIMULATORS)
def test_a_probe_runs_both_signs(name: str) -> None:
    made, start = circuit_run("probe")
    stage = made.stages[0]
    seen = engine(name).run(made, {stage.name: TARGETS[:1]}, start)
    end = seen.arrays[f"{stage.name}.raw.end_rad"]
    wanted = start.arrays[f"{stage.name}.raw.end_rad"][11 * 4 : 11 * 4 + 1]
    assert end.shape == wanted.shape == (1, 4)
    assert np.abs(end - wanted).max() < 1e-3
    both = (2 * end[:, 1] - end[:, 0]) - (2 * end[:, 3] - end[:, 2])
    phase = stage.phi0_rad[11, 0] + both / (2 * stage.probe_epsilon)
    np.testing.assert_allclose(seen.arrays[f"{stage.name}.phase"], phase, rtol=1e-12)


@pytest.mark.parametrize("name", SIMULATORS)
def test_a_failed_deck_is_kept_and_no_number_is_offered(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, start = circuit_run()
    stage = made.stages[0]
    folder = tmp_path / "decks"
    # the limit holds for the free reference too; here the decks are to meet it
    monkeypatch.setattr(
        "oscc_sims.spice_engine.calibrate",
        lambda card, settings, tool, **_: calibrate(card, settings, tool),
    )
    with pytest.raises(ToolError, match=r"layer\.0\.coupling/11/0") as caught:
        engine(name).run(
            made,
            {stage.name: TARGETS},
            start,
            timeout=0.001,
            decks_dir=folder,
        )
    kept = sorted((tmp_path / "failed").iterdir())
    assert str(kept[0]) in str(caught.value)
    assert (kept[0] / "deck.cir").read_text().startswith("* oscc target")
    assert "time limit" in (kept[0] / "log.txt").read_text()


@pytest.mark.ngspice
def test_start_phases_of_another_program_are_refused() -> None:
    made, start = circuit_run()
    other = program(gain_rad=1.0)
    targets = {made.stages[0].name: TARGETS}
    with pytest.raises(RequestError, match="another program"):
        engine("ngspice").run(other, targets, start)
    empty = Observables("circuit", made.digest(), {}, {})
    with pytest.raises(RequestError, match="start phases"):
        engine("ngspice").run(made, targets, empty)
