"""One harmonic in closed form, against scipy, the group law and known limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from oscc.arrays import ComplexArray, FloatArray
from oscc.passes.options import Targets
from oscc.testing.strategies import targets
from oscc_sims.mobius import increment

single = targets(most_harmonics=1)


def slope(phi: FloatArray, drive: ComplexArray) -> FloatArray:
    return np.abs(drive) * np.sin(np.angle(drive) - phi)


def integrated(phi0: FloatArray, drive: ComplexArray) -> FloatArray:
    out = np.empty_like(phi0)
    for k in range(phi0.size):
        found = solve_ivp(
            lambda _, moved, k=k: slope(phi0[k] + moved, drive[k]),
            (0.0, 1.0),
            [0.0],
            method="DOP853",
            rtol=1e-12,
            atol=1e-12,
        )
        out[k] = found.y[0, -1]
    return out


@settings(max_examples=12)
@given(single)
def test_closed_form_is_the_integrated_flow(case: Targets) -> None:
    phi0, drive = case.phi0_rad, case.drive[:, 0]
    moved = increment(phi0, drive)
    # the flow multiplies an error of the integrator by f(end) / f(start) at most
    start, end = slope(phi0, drive), slope(phi0 + moved, drive)
    stretch = 1.0 + np.abs(end) / np.maximum(np.abs(start), 1e-9)
    assert (np.abs(moved - integrated(phi0, drive)) < 1e-10 * stretch).all()


@given(single)
def test_increment_stays_inside_half_a_turn_towards_the_pull(case: Targets) -> None:
    moved = increment(case.phi0_rad, case.drive[:, 0])
    assert (np.abs(moved) < np.pi).all()
    assert (np.sign(moved) == np.sign(slope(case.phi0_rad, case.drive[:, 0]))).all()


@given(single, st.floats(0.0, 1.0))
def test_splitting_a_dwell_composes(case: Targets, share: float) -> None:
    phi0, drive = case.phi0_rad, case.drive[:, 0]
    first = phi0 + increment(phi0, share * drive)
    second = first + increment(first, (1.0 - share) * drive)
    assert np.abs(second - phi0 - increment(phi0, drive)).max() < 1e-9


@given(single, st.floats(-9.0, 9.0))
def test_rotating_all_phases_rotates_the_result(case: Targets, turn: float) -> None:
    phi0, drive = case.phi0_rad, case.drive[:, 0]
    turned = increment(phi0 + turn, drive * np.exp(1j * turn))
    assert np.abs(turned - increment(phi0, drive)).max() < 1e-9


@given(single)
def test_mirror_image(case: Targets) -> None:
    phi0, drive = case.phi0_rad, case.drive[:, 0]
    mirrored = increment(-phi0, drive.conj())
    assert np.abs(mirrored + increment(phi0, drive)).max() < 1e-12


def test_zero_drive_is_the_identity() -> None:
    assert not increment(np.linspace(-9, 9, 7), np.zeros(7, complex)).any()


def test_attractor_and_repeller_stand_still() -> None:
    drive = 5.0 * np.exp(1j * np.linspace(-3, 3, 7))
    assert np.abs(increment(np.angle(drive), drive)).max() < 1e-15
    at_repeller = increment(np.angle(drive) + np.pi, drive)
    # rounding of the start phase, grown by e^5
    assert np.abs(at_repeller).max() < math.exp(5) * 4 * np.finfo(float).eps * np.pi


@pytest.mark.parametrize("size", [1e-12, 1e-6, 1e-3])
def test_small_drives_are_the_euler_step(size: float) -> None:
    phi0 = np.linspace(-3.0, 3.0, 9)
    drive = size * np.exp(1j * np.linspace(0.0, 6.0, 9))
    euler = slope(phi0, drive)
    assert (np.abs(increment(phi0, drive) - euler) <= size**2).all()


def test_half_turn_in_one_number() -> None:
    """From pi/2 behind a drive of 1: 2 atan(tanh(1/2))."""
    moved = increment(np.zeros(1), np.array([1j]))
    assert abs(moved[0] - 2 * math.atan(math.tanh(0.5))) < 1e-15
