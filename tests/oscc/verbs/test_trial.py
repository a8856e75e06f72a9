"""Trials of the passes: the exact flow and the device, target by target."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from oscc.device import load_card
from oscc.ir.interpret import interpret
from oscc.passes.dwell import euler_step
from oscc.passes.options import Scheme, Targets
from oscc.passes.trials import trial_targets
from oscc.testing.strategies import targets
from oscc.testing.tiny import tiny_stage
from oscc.verbs.trial import CircuitTrial
from oscc_backends import circuit, phase
from oscc_sims import circuit as engine
from oscc_sims import reference

CARD = load_card("vo2-two-state-6k")


@settings(max_examples=10)
@given(targets(largest_drive=8.0))
def test_exact_is_the_flow(case: Targets) -> None:
    stage = tiny_stage(tokens=1, coordinates=1, heads=1)
    problem = phase.problem(stage)
    found = CircuitTrial(CARD).exact(case)
    for k in range(case.phi0_rad.size):
        lone = {
            "harmonics": case.harmonics,
            "drive": case.drive[k : k + 1],
            "phi0_rad": case.phi0_rad[k : k + 1],
        }
        wanted = reference.solve(replace(problem, **lone))
        assert abs(found[k] - wanted[0]) < 1e-7


@pytest.mark.parametrize("update", ["flow", "probe"])
@pytest.mark.parametrize("scheme", ["plain", "extrapolated", "corrected"])
def test_hardware_is_the_engine_on_the_stage(update: str, scheme: str) -> None:
    """The same bits as a run of the whole stage, so that predictions are runs."""
    stage = tiny_stage(
        update=update, scheme=scheme, substeps=2, dwell_periods=8, gain_rad=1.0
    )
    problem = circuit.problem(stage)
    wanted, _ = engine.solve(CARD, problem)
    epsilon = stage.probe_epsilon if update == "probe" else None
    case = Targets(problem.drive, problem.harmonics, problem.phi0_rad)
    found = CircuitTrial(CARD, threads=2).hardware(case, Scheme(scheme, 2, 8, epsilon))
    assert found.tolist() == wanted.tolist()


def test_a_part_of_the_targets_gives_the_same_phases() -> None:
    stage = tiny_stage(tokens=30, coordinates=10, gain_rad=1.0)
    problem = circuit.problem(stage)
    case = Targets(problem.drive, problem.harmonics, problem.phi0_rad)
    part = Targets(problem.drive[100:], problem.harmonics, problem.phi0_rad[100:])
    trial, scheme = CircuitTrial(CARD), Scheme("plain", 1, 20)
    change = trial.hardware(case, scheme)[100:] - trial.hardware(part, scheme)
    assert np.abs(change).max() < 1e-9


@pytest.mark.parametrize("update", ["flow", "probe"])
def test_detuned_targets_are_tried_detuned(update: str) -> None:
    """On hardware the bits of the engine on the stage; exactly, the flow."""
    plain = tiny_stage(update=update, scheme="plain", substeps=2, dwell_periods=8)
    offset = np.linspace(-0.6, 0.9, plain.targets).reshape(plain.grid)
    stage = replace(plain, detuning_rad=offset)
    problem = circuit.problem(stage)
    wanted, _ = engine.solve(CARD, problem)
    case = Targets(
        problem.drive, problem.harmonics, problem.phi0_rad, problem.detuning_rad
    )
    epsilon = stage.probe_epsilon if update == "probe" else None
    trial = CircuitTrial(CARD)
    found = trial.hardware(case, Scheme("plain", 2, 8, epsilon))
    assert found.tolist() == wanted.tolist()
    flow = interpret(replace(stage, model_update="flow")).ravel()
    assert np.abs(trial.exact(case) - flow).max() < 1e-8
    part = case.take(np.array([3, 1]))
    assert part.detuning_rad is not None
    assert part.detuning_rad.tolist() == offset.ravel()[[3, 1]].tolist()
    assert np.abs(trial.exact(part) - flow[[3, 1]]).max() < 1e-8
    step = interpret(replace(stage, model_update="euler")).ravel()
    assert np.abs(euler_step(case) - step).max() < 1e-12


def test_trials_of_a_stage_keep_its_detunings() -> None:
    stage = tiny_stage(tokens=3)
    assert trial_targets(stage, 0, count=99, draws=2).detuning_rad is None
    offset = np.arange(12.0).reshape(3, 4)
    drawn = trial_targets(
        replace(stage, detuning_rad=offset), 0, count=99, draws=2
    ).detuning_rad
    assert drawn is not None
    assert sorted(drawn) == sorted(np.tile(offset.ravel(), 2))
