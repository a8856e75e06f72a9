"""Shaped coupling, ripple and second-order currents."""

import numpy as np
import pytest

from oscc.device import load_card
from oscc.device.averaging import (
    ripple_antiderivative,
    ripple_rad,
    second_order_currents,
    second_order_drift,
    without_ripple,
)
from oscc.device.coupler import (
    injection_A,
    injection_ratio,
    peak_injection_A,
    require_injection,
)
from oscc.device.piecewise import omega, period_s, segments
from oscc.device.ppv import ppv, ppv_series, slowest_current_A
from oscc.errors import RequestError
from oscc.seeds import stream


def _average(card, current, psi, count=40_000):
    """Mean over one carrier period of ppv(x + psi) I(x)."""
    x = (np.arange(count) + 0.5) * (2 * np.pi / count)
    orders = np.arange(current.size)
    wave = np.real(np.exp(1j * np.outer(x, orders)) @ current)
    return np.mean(ppv(card, x + psi) * wave)


def test_synthesised_current_averages_to_the_wanted_flow(card):
    """Harmonics 1 and 3, frustrated (complex) drive of both signs, a detuning."""
    drive = np.array([[0.4 - 0.3j, -0.2 + 0.1j]])
    current = injection_A(card, drive, [1, 3], 20, detuning_rad=np.array([0.15]))
    assert current.shape == (1, 4)
    for psi in (0.0, 1.1, 4.0):
        waves = np.exp(-1j * psi * np.array([1, 3]))
        wanted = 0.15 + np.imag(waves * drive[0]).sum()
        moved = _average(card, current[0], psi) * 20 * period_s(card)
        # the mean of a function with jumps: one cell of 1.6e-4 rad
        assert moved == pytest.approx(wanted, abs=3e-4)


def test_current_falls_with_the_dwell(card):
    drive = np.array([[1.0 + 0j]])
    short, long = (injection_A(card, drive, [1], periods) for periods in (10, 20))
    assert short == pytest.approx(2 * long, rel=1e-14)


@pytest.mark.parametrize(
    ("harmonics", "message"),
    [([0], "whole numbers >= 1"), ([1.5], "whole"), ([1, 1], "twice")],
)
def test_bad_harmonics(harmonics, message):
    drive = np.zeros((1, len(harmonics)), dtype=complex)
    with pytest.raises(RequestError, match=message):
        injection_A(load_card("vo2-two-state-6k"), drive, harmonics, 20)


@pytest.mark.parametrize("periods", [0, -1, 2.5])
def test_bad_dwell(periods):
    with pytest.raises(RequestError, match="dwell_periods"):
        injection_A(load_card("vo2-two-state-6k"), np.zeros((1, 1)), [1], periods)


def test_drive_that_is_not_finite():
    drive = np.array([[0j], [np.nan]])
    with pytest.raises(RequestError, match="drive"):
        injection_A(load_card("vo2-two-state-6k"), drive, [1], 20)


def test_peak_is_a_bound_and_tight():
    rng = stream(3, "peak")
    current = rng.normal(size=(50, 5)) + 1j * rng.normal(size=(50, 5))
    current[:, 0] = current[:, 0].real
    x = np.linspace(0, 2 * np.pi, 20_000)
    wave = np.abs(np.real(current @ np.exp(1j * np.outer(np.arange(5), x))))
    peak = wave.max(axis=1)
    bound = peak_injection_A(current)
    assert (bound >= peak * (1 - 1e-6)).all()
    assert (bound <= 1.005 * peak).all()


def test_ratio_of_a_constant_current(card):
    current = np.array([[0.5 * slowest_current_A(card) + 0j]])
    assert injection_ratio(card, current)[0] == pytest.approx(0.5, rel=1e-12)


def test_too_much_injection_names_the_target(card_6k):
    current = injection_A(card_6k, np.array([[0.1], [40.0]], complex), [1], 4)
    with pytest.raises(RequestError, match=r"layer\.0\.coupling: target 1 needs"):
        require_injection(card_6k, current, where="layer.0.coupling")


@pytest.mark.parametrize("n", [-2, 0, 1, 3])
def test_ripple_antiderivative_against_its_series(card, n):
    """Terms fall as 1/r^2: the tail of 20 000 terms is below 2 Gamma_r r / 20 000."""
    phi = np.array([0.3, 1.9, 3.1, 5.5])
    r = np.concatenate([np.arange(-20_000, 0), np.arange(1, 20_001)])
    series = ppv_series(card, r - n) / (1j * r)
    wanted = np.exp(1j * np.outer(phi, r)) @ series
    scale = abs(ppv_series(card, [0, 1])).max()
    found = ripple_antiderivative(card, phi, n)
    assert found == pytest.approx(wanted, abs=1e-3 * scale)


def test_ripple_against_the_definition(card_6k):
    """dW/dpsi by differences equals the oscillating part of ppv I at the gate."""
    current = np.array([[1e-6, 2e-6 + 1e-6j, -1e-6j]])
    psi, h = 2.1, 1e-5

    def moved(delta):
        # the phase that the current adds while the carriers run a little: W is the
        # part of it that the average leaves out
        x = np.linspace(0.0, delta, 2001)
        wave = np.real(np.exp(1j * np.outer(x, np.arange(3))) @ current[0])
        rate = ppv(card_6k, x + psi) * wave / omega(card_6k)
        return np.trapezoid(rate, x)

    ahead = ripple_rad(card_6k, _turned(current, h), np.array([psi + h]))[0]
    now = ripple_rad(card_6k, current, np.array([psi]))[0]
    mean = _average(card_6k, current[0], psi) / omega(card_6k)
    # the mean has an error of one cell in 40 000 where ppv jumps
    ratio = injection_ratio(card_6k, current)[0]
    assert ahead - now == pytest.approx(moved(h) - mean * h, abs=ratio * h / 40_000)


def _turned(current, angle):
    """The same current, seen from a later opening of the gate."""
    turned = current * np.exp(1j * angle * np.arange(current.shape[1]))
    turned[:, 0] = current[:, 0]
    return turned


def test_without_ripple_inverts(card_6k):
    current = injection_A(card_6k, np.full((40, 1), 3 + 1j), [1], 20)
    psi = np.linspace(0, 6.2, 40)
    read = psi + ripple_rad(card_6k, current, psi)
    assert without_ripple(card_6k, current, read) == pytest.approx(psi, abs=1e-11)


def test_second_order_currents_of_the_20k_card(card_20k):
    """Stated within 0.3 % (a slow sum): 454 and 3390 + 1080i per ampere."""
    unit = 1e-6
    extra = second_order_currents(card_20k, np.array([[0, unit + 0j]]))[0]
    assert extra[0].real / unit**2 == pytest.approx(454, rel=3e-3)
    assert extra[2] / unit**2 == pytest.approx(3390 + 1080j, rel=3e-3)
    assert extra[1] == unit


def test_second_order_drift_is_quadratic(card):
    current = np.array([[1e-7, 1e-6 + 2e-7j, -3e-7j]])
    once, twice = (
        second_order_drift(card, current),
        second_order_drift(card, 2 * current),
    )
    assert twice == pytest.approx(4 * once, rel=1e-12)


def test_second_order_drift_is_what_a_weak_current_leaves(card):
    """A cell under a direct current: its period, and the square term of its drift.

    omega(I_0) = omega + Gamma_0 I_0 + F_0 + O(I^3), from the closed-form period of a
    cell whose asymptotes are shifted by I_0 / conductance.
    """
    piece = segments(card)

    def speed(direct):
        level = piece.v_inf_V + direct / piece.conductance_S
        ratio = (level - piece.v_start_V) / (level - piece.v_end_V)
        return 2 * np.pi / (piece.tau_s * np.log(ratio)).sum()

    step = 1e-3 * slowest_current_A(card)
    square = 0.5 * (speed(step) + speed(-step)) - speed(0.0)
    drift = second_order_drift(card, np.array([[step + 0j]]))[0, 0].real
    # central difference: relative error of order (step / slowest current)^2
    assert drift == pytest.approx(square, rel=2e-5)
