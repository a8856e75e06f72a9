"""Engine `circuit` on whole stages: its error law, its bits, its energies."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from oscc.device import card_to_mapping, load_card
from oscc.errors import RequestError
from oscc.ir import Stage
from oscc.ir.interpret import interpret
from oscc.ir.plan import dwells, total_periods
from oscc.observables import Observables
from oscc.testing.tiny import tiny_program, tiny_stage
from oscc_backends import circuit, phase
from oscc_sims import circuit_lanes
from oscc_sims import phase as exact
from oscc_sims.circuit import CircuitEngine, solve

CARD = load_card("vo2-two-state-6k")


def run(stage: Stage, **options: Any) -> Observables:
    return CircuitEngine().run(circuit.build(tiny_program(stage)), **options)


def averaging_rms(scheme: str, periods: int, **settings: Any) -> float:
    """Distance of the circuit from the exact phase dynamics, rms over 60 targets."""
    stage = tiny_stage(
        11,
        tokens=10,
        coordinates=6,
        gain_rad=1.5,
        scheme=scheme,
        substeps=1,
        dwell_periods=periods,
        **settings,
    )
    found, _ = solve(CARD, circuit.problem(stage))
    error = found - exact.solve(phase.problem(stage))
    return float(np.sqrt(np.mean(error**2)))


def test_plain_dwells_fall_as_one_over_periods() -> None:
    errors = [averaging_rms("plain", p) for p in (20, 40, 80, 160)]
    for coarse, fine in pairwise(errors):
        assert coarse / fine == pytest.approx(2.0, rel=0.1)


def test_extrapolated_dwells_fall_faster() -> None:
    """What is left after extrapolation is of second order in 1/P at least."""
    errors = [averaging_rms("extrapolated", p) for p in (20, 40, 80)]
    for coarse, fine in pairwise(errors):
        assert coarse / fine > 3.5
    assert errors[0] < averaging_rms("plain", 60)  # at equal periods


def test_substeps_reach_large_drives() -> None:
    """4 substeps of 6 against one of 24 periods, at equal cost."""
    settings: dict[str, Any] = {"tokens": 8, "coordinates": 4, "gain_rad": 8.0}
    rms = []
    for substeps, periods in ((1, 24), (4, 6)):
        stage = tiny_stage(2, substeps=substeps, dwell_periods=periods, **settings)
        found, _ = solve(CARD, circuit.problem(stage))
        error = found - exact.solve(phase.problem(stage))
        rms.append(float(np.sqrt(np.mean(error**2))))
    assert rms[1] < 0.5 * rms[0]


def test_a_detuned_stage_drifts_as_the_phase_engine_says() -> None:
    detuning = np.linspace(-1.0, 1.0, 16).reshape(4, 4)
    stage = tiny_stage(
        gain_rad=0.5, detuning_rad=detuning, substeps=1, dwell_periods=100
    )
    found, _ = solve(CARD, circuit.problem(stage))
    assert np.abs(found - exact.solve(phase.problem(stage))).max() < 1e-3
    moved = found.reshape(4, 4) - stage.phi0_rad
    assert np.abs(moved - detuning).max() < 0.6  # mostly drift


def test_zero_gain_is_the_identity() -> None:
    seen = run(tiny_stage(gain_rad=0.0))
    # phases are read from voltages, to a few ulp of a whole turn times the dwells
    stage = tiny_stage(gain_rad=0.0)
    assert np.abs(seen.phase(stage.name) - stage.phi0_rad).max() < 1e-10


def test_same_bits_for_any_number_of_threads() -> None:
    stage = tiny_stage(
        4,
        tokens=67,
        coordinates=53,
        heads=1,
        scheme="plain",
        substeps=1,
        dwell_periods=9,
    )
    lanes = 67 * 53
    assert lanes % circuit_lanes.BLOCK
    assert lanes > 3 * 8 * circuit_lanes.BLOCK  # every thread has work
    runs = [run(stage, threads=n) for n in (1, 2, 3)]
    for other in runs[1:]:
        assert runs[0].arrays.keys() == other.arrays.keys()
        for name, array in runs[0].arrays.items():
            assert array.tobytes() == other.arrays[name].tobytes(), name
        assert runs[0].facts == other.facts


def test_energies_balance_target_by_target() -> None:
    name = "layer.0.coupling"
    seen = run(tiny_stage(gain_rad=3.0), energy=True)
    part = {
        word: seen.arrays[f"{name}.{word}_J"]
        for word in ("supply", "injected", "r_series", "vo2", "capacitor")
    }
    into = part["supply"] + part["injected"]
    spent = part["r_series"] + part["vo2"] + part["capacitor"]
    assert into.shape == (16,)
    assert (np.abs(into - spent) < 1e-9 * part["supply"]).all()
    assert (part["supply"] > 0).all()
    assert (part["injected"] != 0).any()


def test_supply_is_the_energy_of_the_free_cells_within_the_pull() -> None:
    from oscc.device.cycle_energy import energy_per_period_J

    stage = tiny_stage(gain_rad=0.0, dwell_periods=20)
    seen = run(stage)
    wanted = total_periods(stage) * energy_per_period_J(CARD).supply_J
    found = seen.arrays["layer.0.coupling.supply_J"]
    assert np.abs(found / wanted - 1.0).max() < 1e-9
    assert not seen.arrays["layer.0.coupling.injected_J"].any()


def test_energies_are_left_out_when_not_asked_for() -> None:
    seen = run(tiny_stage(), energy=False)
    assert not any(name.endswith("_J") for name in seen.arrays)


@pytest.mark.parametrize("scheme", ["plain", "extrapolated"])
@pytest.mark.parametrize("update", ["flow", "probe"])
def test_raw_columns_are_the_dwells_of_the_plan(scheme: str, update: str) -> None:
    stage = tiny_stage(scheme=scheme, update=update, substeps=3, dwell_periods=5)
    seen = run(stage)
    start = seen.arrays["layer.0.coupling.raw.start_rad"]
    end = seen.arrays["layer.0.coupling.raw.end_rad"]
    plan = dwells(stage)
    assert start.shape == end.shape == (16, len(plan))
    last: dict[int, Any] = {}
    each = 1 if scheme == "plain" else 2
    for first in range(0, len(plan), each):
        dwell = plan[first]
        wanted = last.get(dwell.run, stage.phi0_rad.ravel())
        for column in range(first, first + each):
            assert (start[:, column] == wanted).all()
        last[dwell.run] = (
            end[:, first] if each == 1 else 2 * end[:, first + 1] - end[:, first]
        )
    found = seen.phase("layer.0.coupling").ravel()
    if update == "flow":
        assert (found == last[0]).all()
    else:
        probed = (last[0] - last[1]) / (2 * stage.probe_epsilon)
        assert np.abs(found - stage.phi0_rad.ravel() - probed).max() < 1e-12


def test_a_probe_finds_the_euler_step() -> None:
    stage = tiny_stage(
        gain_rad=2.0,
        update="probe",
        model_update="euler",
        substeps=1,
        dwell_periods=12,
        probe_epsilon=0.01,
    )
    error = run(stage).phase(stage.name) - interpret(stage)
    assert float(np.sqrt(np.mean(error**2))) < 5e-3


def test_facts_state_what_was_run() -> None:
    stage = tiny_stage(substeps=2, dwell_periods=10, gain_rad=1.0)
    facts = run(stage).facts["layer.0.coupling"]
    assert facts["targets"] == 16
    assert facts["periods_in_all"] == total_periods(stage)
    assert 0 < facts["injection_ratio"] < 0.8
    assert facts["fallback_targets"] == 0


def test_too_much_injection_names_stage_and_limit() -> None:
    stage = tiny_stage(gain_rad=60.0, substeps=1, dwell_periods=3)
    with pytest.raises(
        RequestError, match=r"stage layer\.0\.coupling: target \d+ needs"
    ):
        run(stage)


def test_the_device_comes_from_the_program() -> None:
    stage = tiny_stage(gain_rad=2.0, scheme="plain", substeps=1, dwell_periods=100)
    slow = tiny_program(stage, device=card_to_mapping(load_card("vo2-two-state-20k")))
    on_20k = CircuitEngine().run(circuit.build(slow)).phase(stage.name)
    on_6k = run(stage).phase(stage.name)
    flow = exact.solve(phase.problem(stage)).reshape(4, 4)
    # the 20k card averages worse, physics.md section 4
    assert np.abs(on_20k - flow).max() > 2 * np.abs(on_6k - flow).max()
