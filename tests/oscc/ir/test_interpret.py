"""The interpreter against an edge-by-edge right-hand side and the closed form."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.integrate import solve_ivp

from oscc.arrays import FloatArray
from oscc.errors import RequestError, UndecidedError
from oscc.ir import Stage
from oscc.ir.interpret import interpret, run
from oscc.ir.views import pairs
from oscc.testing.strategies import dynamic_stages
from oscc.testing.tiny import tiny_program, tiny_stage


def pull(stage: Stage, phi: FloatArray) -> FloatArray:
    """dphi/dtau of every target by a loop over its edges, shape (T*K,)."""
    total = np.array(stage.detuning_rad).ravel()
    gain, theta = stage.gain_rad.ravel(), stage.theta_rad.ravel()
    for chunk in pairs(stage):
        for k in range(chunk.target.size):
            a, n = int(chunk.target[k]), int(chunk.harmonic[k])
            lag = n * (theta[chunk.source[k]] - phi[a]) + chunk.frustration_rad[k]
            total[a] += gain[a] * chunk.strength[k] * math.sin(lag)
    return total


def integrated(stage: Stage) -> FloatArray:
    """Another method (backward differentiation, implicit) on the edge list."""
    found = solve_ivp(
        lambda _, phi: pull(stage, phi),
        (0.0, 1.0),
        stage.phi0_rad.ravel(),
        method="LSODA",
        rtol=1e-10,
        atol=1e-11,
    )
    out: FloatArray = found.y[:, -1].reshape(stage.phi0_rad.shape)
    return out


@settings(max_examples=15)
@given(dynamic_stages(largest_gain=4.0))
def test_flow_equals_the_integrated_edge_list(stage: Stage) -> None:
    # rtol 1e-10 on phases of 9 rad, grown by the flow near a repeller
    assert np.abs(interpret(stage) - integrated(stage)).max() < 1e-7


@given(dynamic_stages(largest_gain=12.0, changes={"model_update": "euler"}))
def test_euler_is_one_step_of_the_edge_list(stage: Stage) -> None:
    wanted = stage.phi0_rad.ravel() + pull(stage, stage.phi0_rad.ravel())
    assert np.abs(interpret(stage).ravel() - wanted).max() < 1e-12


@pytest.mark.parametrize("gain", [0.3, -0.3, 2.0, -2.0, 12.0, -12.0])
def test_one_harmonic_follows_the_closed_form(gain: float) -> None:
    """e^{i phi1} = (z0 + a e^{i arg G}) / (1 + a e^{-i arg G} z0), a = tanh(g |G| / 2).

    Source: docs/reference/physics.md, closed forms.
    """
    stage = tiny_stage(5, harmonics=(1,), routes=("present",))
    stage = replace(stage, gain_rad=np.full(stage.phi0_rad.shape, gain))
    coupling, head = stage.couplings[0], stage.couplings[0].head_of_coordinate
    for t in range(4):
        for j in range(4):
            row = coupling.weights[head[j], t]
            drive = (
                gain
                * coupling.coefficients[0, j]
                * (row @ np.exp(1j * stage.theta_rad[:, j]))
            )
            a = math.tanh(abs(drive) / 2)
            turn = drive / abs(drive)
            z0 = np.exp(1j * stage.phi0_rad[t, j])
            wanted = (z0 + a * turn) / (1 + a * turn.conjugate() * z0)
            found = np.exp(1j * interpret(stage)[t, j])
            assert abs(found - wanted) < 1e-9


def test_a_detuned_target_without_coupling_drifts_by_its_detuning() -> None:
    stage = tiny_stage(gain_rad=0.0)
    detuning = np.linspace(-20.0, 20.0, 16).reshape(4, 4)
    moved = interpret(replace(stage, detuning_rad=detuning)) - stage.phi0_rad
    assert np.abs(moved - detuning).max() < 1e-12 * 30


def test_locked_phase_of_a_detuned_pair() -> None:
    """d phi = Omega - K sin phi settles at asin(Omega / K) = 0.643501 for 0.6."""
    stage = tiny_stage(tokens=1, coordinates=1, heads=1, harmonics=(1,))
    alone = replace(stage.couplings[0], gamma=[[1.0]], alpha_rad=[[0.0]])
    locked = replace(
        stage,
        couplings=(alone,),
        theta_rad=[[0.0]],
        phi0_rad=[[0.2]],
        gain_rad=[[60.0]],
        detuning_rad=[[36.0]],
    )
    assert abs(interpret(locked)[0, 0] - 0.643501) < 1e-6


def test_more_targets_than_a_chunk_keep_their_places() -> None:
    stage = tiny_stage(1, tokens=60, coordinates=40, heads=2, harmonics=(1,))
    part = replace(
        stage,
        phi0_rad=stage.phi0_rad[50:],
        gain_rad=stage.gain_rad[50:],
        detuning_rad=stage.detuning_rad[50:],
        digital_rad=stage.digital_rad[50:],
        couplings=tuple(replace(c, weights=c.weights[:, 50:]) for c in stage.couplings),
        causal=False,
    )
    assert np.abs(interpret(stage)[50:] - interpret(part)).max() < 1e-8


def test_an_integrator_that_stops_early_gives_no_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from scipy import integrate

    def early(*args: object, **options: object) -> object:
        found = solve_ivp(*args, **options)  # type: ignore[arg-type]
        found.t = found.t * 0.5
        return found

    monkeypatch.setattr(integrate, "solve_ivp", early)
    with pytest.raises(UndecidedError, match=r"stopped at 0\.5 of the dwell"):
        interpret(tiny_stage())


def test_level_ir_of_a_program_holds_every_stage() -> None:
    program = tiny_program(tiny_stage(), tiny_stage(1, name="layer.1.coupling"))
    seen = run(program)
    assert seen.stages == ("layer.0.coupling", "layer.1.coupling")
    assert seen.program == program.digest()
    with pytest.raises(RequestError, match=r"holds no `layer\.2\.coupling\.phase`"):
        seen.phase("layer.2.coupling")
