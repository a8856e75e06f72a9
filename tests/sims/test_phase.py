"""Engine `phase`: what it runs for each update, against the reference engine."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

from oscc.errors import UndecidedError
from oscc.ir import Stage
from oscc.ir.interpret import interpret
from oscc.testing.strategies import dynamic_stages
from oscc.testing.tiny import tiny_program, tiny_stage
from oscc_backends import phase as backend
from oscc_sims import phase, reference
from oscc_sims.phase import PhaseEngine


@settings(max_examples=30)
@given(dynamic_stages(largest_gain=12.0))
def test_flow_is_what_the_interpreter_means(stage: Stage) -> None:
    found = phase.solve(backend.problem(stage)).reshape(stage.phi0_rad.shape)
    assert np.abs(found - interpret(stage)).max() < 1e-6


@settings(max_examples=15)
@given(dynamic_stages(largest_gain=6.0, changes={"update": "probe"}))
def test_probe_is_the_reference_probe(stage: Stage) -> None:
    problem = backend.problem(stage)
    # two increments to 1e-11 each, over 2 epsilon
    bound = 1e-11 / stage.probe_epsilon
    assert np.abs(phase.solve(problem) - reference.solve(problem)).max() < bound


def probe_bias(epsilon: float) -> float:
    """Largest distance of a probe from the Euler step, on drives of about 2 rad."""
    stage = tiny_stage(
        3, gain_rad=4.0, update="probe", model_update="euler", probe_epsilon=epsilon
    )
    detuned = replace(stage, detuning_rad=np.full(stage.phi0_rad.shape, 0.7))
    found = phase.solve(backend.problem(detuned)).reshape(stage.phi0_rad.shape)
    return float(np.abs(found - interpret(detuned)).max())


def test_probe_is_the_euler_step_within_epsilon_squared() -> None:
    """The even orders cancel: the bias falls fourfold when epsilon is halved."""
    bias = [probe_bias(e) for e in (0.08, 0.04, 0.02, 0.01)]
    assert bias[2] < 5e-3
    for coarse, fine in pairwise(bias):
        assert coarse / fine == pytest.approx(4.0, rel=0.05)


def test_zero_gain_is_the_identity() -> None:
    for update in ("flow", "probe"):
        stage = tiny_stage(gain_rad=0.0, update=update)
        found = phase.solve(backend.problem(stage))
        assert found.tolist() == stage.phi0_rad.ravel().tolist()


def test_a_turn_of_a_source_changes_nothing() -> None:
    stage = tiny_stage(gain_rad=3.0)
    theta = np.array(stage.theta_rad)
    theta[1] += 2 * np.pi
    theta[3] -= 6 * np.pi
    turned = replace(stage, theta_rad=theta)
    change = phase.solve(backend.problem(turned)) - phase.solve(backend.problem(stage))
    assert np.abs(change).max() < 1e-11


def test_rotating_every_phase_rotates_every_result() -> None:
    stage = tiny_stage(gain_rad=3.0, harmonics=(1, 2, 3))
    turned = replace(
        stage, theta_rad=stage.theta_rad + 1.3, phi0_rad=stage.phi0_rad + 1.3
    )
    change = phase.solve(backend.problem(turned)) - phase.solve(backend.problem(stage))
    assert np.abs(change - 1.3).max() < 1e-11


def test_relabelling_tokens_permutes_the_result() -> None:
    stage = replace(tiny_stage(gain_rad=3.0), causal=False)
    order = np.array([2, 0, 3, 1])
    relabelled = replace(
        stage,
        theta_rad=stage.theta_rad[order],
        phi0_rad=stage.phi0_rad[order],
        gain_rad=stage.gain_rad[order],
        couplings=tuple(
            replace(c, weights=c.weights[:, order][:, :, order])
            for c in stage.couplings
        ),
    )
    found = phase.solve(backend.problem(relabelled)).reshape(4, 4)
    wanted = phase.solve(backend.problem(stage)).reshape(4, 4)[order]
    assert np.abs(found - wanted).max() < 1e-12


def test_a_flow_that_is_not_known_gives_no_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = backend.problem(tiny_stage())
    monkeypatch.setattr(
        phase.extrapolation, "increment", lambda *_: (problem.phi0_rad, 1e-3)
    )
    with pytest.raises(UndecidedError, match=r"only known to 0\.001 rad a step"):
        phase.solve(problem)


def test_engine_names_the_program_and_every_stage() -> None:
    stages = (
        tiny_stage(tokens=3, coordinates=2),
        tiny_stage(1, tokens=2, harmonics=(1,), name="layer.1.coupling"),
    )
    program = tiny_program(*stages)
    seen = PhaseEngine().run(backend.build(program))
    assert (seen.engine, seen.program) == ("phase", program.digest())
    assert seen.phase("layer.0.coupling").shape == (3, 2)
    assert seen.phase("layer.1.coupling").shape == (2, 4)
    for stage in program.stages:
        assert np.abs(seen.phase(stage.name) - stage.digital_rad).max() < 1e-9
