"""Several harmonics: extrapolation against scipy, closed forms and laws of the flow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from oscc.arrays import FloatArray
from oscc.passes.options import Targets
from oscc.phases import wrap
from oscc.testing.strategies import targets
from oscc_sims import extrapolation, mobius

few = settings(max_examples=25)


def solved(case: Targets, detuning: FloatArray | float = 0.0) -> FloatArray:
    offset = np.broadcast_to(detuning, case.phi0_rad.shape).astype(float)
    moved, left = extrapolation.increment(
        case.phi0_rad, case.drive, case.harmonics, offset
    )
    assert left < 1e-11
    return moved


def slope(case: Targets, phi: FloatArray, detuning: FloatArray) -> FloatArray:
    lag = np.angle(case.drive) - phi[:, None] * case.harmonics
    total: FloatArray = detuning + (np.abs(case.drive) * np.sin(lag)).sum(axis=1)
    return total


def integrated(case: Targets, detuning: FloatArray) -> FloatArray:
    out = np.empty_like(case.phi0_rad)
    for k in range(out.size):
        lone = Targets(case.drive[k : k + 1], case.harmonics, case.phi0_rad[k : k + 1])
        found = solve_ivp(
            lambda _, moved, lone=lone, k=k: slope(
                lone, lone.phi0_rad + moved, detuning[k : k + 1]
            ),
            (0.0, 1.0),
            [0.0],
            method="DOP853",
            rtol=1e-12,
            atol=1e-12,
        )
        out[k] = found.y[0, -1]
    return out


def stretch(case: Targets, moved: FloatArray, detuning: FloatArray) -> FloatArray:
    """Bound on how much the flow multiplies an error made on the way."""
    start = np.abs(slope(case, case.phi0_rad, detuning))
    path = np.linspace(0.0, 1.0, 200)[:, None] * moved + case.phi0_rad
    speeds = np.array([np.abs(slope(case, phi, detuning)) for phi in path])
    slowest = np.maximum(np.minimum(speeds.min(axis=0), start), 1e-6)
    bound: FloatArray = 1.0 + speeds.max(axis=0) / slowest
    return bound


@settings(max_examples=12)
@given(targets(), st.floats(-12.0, 12.0))
def test_increment_is_the_integrated_flow(case: Targets, offset: float) -> None:
    detuning = np.full(case.phi0_rad.size, offset)
    moved = solved(case, detuning)
    allowed = 1e-10 * stretch(case, moved, detuning)
    assert (np.abs(moved - integrated(case, detuning)) < allowed).all()


@pytest.mark.parametrize("drive", [4.0, 12.0, 24.0, 30.0])
def test_large_drives_of_three_harmonics(drive: float) -> None:
    random = np.random.default_rng(int(drive))
    phasor = np.exp(1j * random.uniform(-np.pi, np.pi, (40, 3)))
    size = drive * np.array([0.6, 0.3, 0.1])
    case = Targets(size * phasor, np.array([1, 2, 3]), random.uniform(-9, 9, 40))
    still = np.zeros(40)
    moved = solved(case)
    allowed = 1e-10 * stretch(case, moved, still)
    assert (np.abs(moved - integrated(case, still)) < allowed).all()


@few
@given(targets(most_harmonics=1))
def test_one_harmonic_is_the_closed_form(case: Targets) -> None:
    closed = mobius.increment(case.phi0_rad, case.drive[:, 0])
    allowed = 1e-11 * stretch(case, closed, np.zeros(closed.size))
    assert (np.abs(solved(case) - closed) < allowed).all()


@pytest.mark.parametrize("order", [2, 3, 5])
def test_a_lone_higher_harmonic_is_the_closed_form_in_n_phi(order: int) -> None:
    """psi = n phi obeys the one-harmonic flow with drive n D."""
    random = np.random.default_rng(order)
    drive = random.standard_normal(30) + 1j * random.standard_normal(30)
    phi0 = random.uniform(-9, 9, 30)
    case = Targets(drive[:, None], np.array([order]), phi0)
    closed = mobius.increment(order * phi0, order * drive) / order
    assert np.abs(solved(case) - closed).max() < 1e-10


@pytest.mark.parametrize("detuning", [0.3, -2.0, 7.0])
def test_detuned_harmonic_is_a_matrix_exponential(detuning: float) -> None:
    """z' = i Omega z + (D - conj(D) z^2) / 2 is a Riccati equation."""
    random = np.random.default_rng(3)
    drive = 2.0 * (random.standard_normal(20) + 1j * random.standard_normal(20))
    phi0 = random.uniform(-9, 9, 20)
    case = Targets(drive[:, None], np.array([1]), phi0)
    end = phi0 + solved(case, detuning)
    for k in range(20):
        half = 0.5 * np.array(
            [[1j * detuning, drive[k]], [drive[k].conj(), -1j * detuning]]
        )
        (a, b), (c, d) = expm(half)
        z = np.exp(1j * phi0[k])
        wanted = np.angle((a * z + b) / (c * z + d))
        assert abs(wrap(end[k] - wanted)) < 1e-9


def test_free_drift_is_the_detuning() -> None:
    case = Targets(np.zeros((3, 2), complex), np.array([1, 2]), np.zeros(3))
    detuning = np.array([0.0, -40.0, 1e3])
    # 500 steps of 2 rad, each with the rounding of 1e3 rad
    rounding = 500 * np.spacing(1e3)
    assert np.abs(solved(case, detuning) - detuning).max() < rounding


@few
@given(targets(), st.integers(-3, 3))
def test_a_whole_turn_of_the_start_changes_nothing(case: Targets, turns: int) -> None:
    turned = Targets(case.drive, case.harmonics, case.phi0_rad + 2 * np.pi * turns)
    allowed = 1e-11 * stretch(case, solved(case), np.zeros(case.phi0_rad.size))
    assert (np.abs(solved(turned) - solved(case)) < allowed).all()


@few
@given(targets(), st.floats(-9.0, 9.0))
def test_rotating_all_phases_rotates_the_result(case: Targets, angle: float) -> None:
    """phi + c solves the flow with drives D_n e^{i n c}."""
    turned = Targets(
        case.drive * np.exp(1j * angle * case.harmonics),
        case.harmonics,
        case.phi0_rad + angle,
    )
    allowed = 1e-11 * stretch(case, solved(case), np.zeros(case.phi0_rad.size))
    assert (np.abs(solved(turned) - solved(case)) < allowed).all()


@few
@given(targets(), st.floats(-5.0, 5.0))
def test_mirror_image(case: Targets, detuning: float) -> None:
    """-phi solves the flow with conjugate drives and opposite detuning."""
    mirrored = Targets(case.drive.conj(), case.harmonics, -case.phi0_rad)
    straight = solved(case, detuning)
    offset = np.full(straight.size, detuning)
    allowed = 1e-11 * stretch(case, straight, offset)
    assert (np.abs(solved(mirrored, -detuning) + straight) < allowed).all()


@few
@given(targets(), st.floats(0.0, 1.0), st.floats(-5.0, 5.0))
def test_splitting_a_dwell_composes(
    case: Targets, share: float, detuning: float
) -> None:
    whole = solved(case, detuning)
    first = Targets(share * case.drive, case.harmonics, case.phi0_rad)
    middle = case.phi0_rad + solved(first, share * detuning)
    rest = Targets((1.0 - share) * case.drive, case.harmonics, middle)
    end = middle + solved(rest, (1.0 - share) * detuning)
    offset = np.full(whole.size, detuning)
    allowed = 1e-10 * stretch(case, whole, offset)
    assert (np.abs(end - case.phi0_rad - whole) < allowed).all()


def test_increments_of_more_than_a_turn_come_back_unwrapped() -> None:
    """A drive too weak to hold its target lets it slip, at a known beat.

    d phi = Omega - D sin phi takes 2 pi / sqrt(Omega^2 - D^2) a turn: 5 turns in one
    dwell for Omega = 100 and this D.
    """
    beat = 2 * np.pi * 5
    strength = np.sqrt(100.0**2 - beat**2)
    case = Targets(np.array([[strength + 0j, 0j]]), np.array([1, 2]), np.zeros(1))
    assert abs(solved(case, 100.0)[0] - beat) < 1e-9


def test_targets_do_not_see_each_other() -> None:
    random = np.random.default_rng(4)
    drive = random.standard_normal((9, 2)) + 1j * random.standard_normal((9, 2))
    case = Targets(drive, np.array([1, 2]), random.uniform(-9, 9, 9))
    alone = [
        solved(Targets(drive[k : k + 1], case.harmonics, case.phi0_rad[k : k + 1]))
        for k in range(9)
    ]
    assert solved(case).tolist() == np.concatenate(alone).tolist()


def test_no_target_at_all() -> None:
    empty = Targets(np.zeros((0, 2), complex), np.array([1, 2]), np.zeros(0))
    assert solved(empty).shape == (0,)
