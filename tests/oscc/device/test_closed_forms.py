"""Closed forms of the free cycle against stated values and an independent integrator.

The stated values are those of docs/reference/physics.md, computed by other code.
"""

import dataclasses

import numpy as np
import pytest

from oscc.device import Card, load_card
from oscc.device.cycle_energy import energy_per_period_J
from oscc.device.interaction import (
    frustration_rad,
    interaction,
    interaction_series,
)
from oscc.device.piecewise import (
    duty,
    omega,
    period_s,
    phase_of,
    segments,
    state_of,
    waveform_series,
    waveform_V,
)
from oscc.device.ppv import (
    lock_range,
    ppv,
    ppv_at_switching,
    ppv_series,
    ppv_square_series,
    slowest_current_A,
)
from oscc.device.sensitivity import frequency_sensitivity, jitter_variance_rad2


def test_20k_period_and_duty(card_20k):
    assert period_s(card_20k) == pytest.approx(7.123235781181e-07, rel=1e-12)
    assert 1 / period_s(card_20k) == pytest.approx(1.403856380e6, rel=1e-9)
    assert duty(card_20k) == pytest.approx(0.887914878, abs=1e-9)
    assert segments(card_20k).length_s == pytest.approx(
        [7.984087528e-08, 6.324827028e-07], rel=1e-9
    )


def test_20k_waveform_series(card_20k):
    v = waveform_series(card_20k, np.arange(4))
    assert v[0] == pytest.approx(1.520272232, abs=1e-8)
    assert abs(v[1:]) == pytest.approx(
        [0.175985528, 0.082853909, 0.049668719], abs=1e-8
    )
    assert np.angle(v[1:]) == pytest.approx([1.327460, 0.984367, 0.668557], abs=1e-6)


def test_20k_ppv_series(card_20k):
    gamma = ppv_series(card_20k, np.arange(4))
    assert gamma[0] == pytest.approx(4.929684e10, rel=1e-6)
    assert abs(gamma[1:]) == pytest.approx(
        [7.759006e9, 6.789927e9, 6.000657e9], rel=1e-6
    )
    assert np.angle(gamma[1:]) == pytest.approx(
        [2.299538, 2.203192, 1.953589], abs=1e-6
    )


def test_20k_native_interaction(card_20k):
    h = abs(interaction_series(card_20k, np.arange(1, 5), "resistive"))
    assert h[1:] / h[0] == pytest.approx([0.41200, 0.21827, 0.11836], abs=1e-5)


def test_20k_energy(card_20k):
    energy = energy_per_period_J(card_20k)
    assert energy.supply_J == pytest.approx(0.619673e-9, rel=1e-5)
    assert energy.supply_J == pytest.approx(0.247869 * 100e-12 * 25, rel=1e-5)
    assert energy.r_series_J == pytest.approx(0.434252e-9, rel=1e-5)
    assert energy.vo2_met_J == pytest.approx(0.170059e-9, rel=1e-5)
    assert energy.vo2_ins_J == pytest.approx(0.015362e-9, rel=3e-5)  # six digits given
    assert energy.capacitor_met_J == pytest.approx(-0.15e-9, rel=1e-14)
    assert energy.capacitor_ins_J == pytest.approx(0.15e-9, rel=1e-14)


def test_20k_sensitivities(card_20k):
    stated = {
        "vdd_V": 1.397,
        "r_series_ohm": -0.960,
        "c_F": -1.0,
        "r_ins_ohm": 0.089,
        "r_met_ohm": -0.129,
        "v_imt_V": -2.312,
        "v_mit_V": 0.914,
    }
    assert frequency_sensitivity(card_20k) == pytest.approx(stated, abs=1e-3)


def test_6k_stated_values(card_6k):
    assert duty(card_6k) == pytest.approx(0.579, abs=5e-4)
    assert 1 / period_s(card_6k) == pytest.approx(3.27e6, rel=2e-3)
    assert energy_per_period_J(card_6k).supply_J == pytest.approx(0.9025e-9, abs=5e-14)


def test_5k5_frequency_is_stationary():
    """At 5.5k neither the supply nor the series resistor moves the frequency."""
    card = load_card("vo2-two-state-5k5")
    slope = frequency_sensitivity(card)
    assert duty(card) == pytest.approx(0.534, abs=5e-4)
    assert slope["vdd_V"] == pytest.approx(0.04, abs=5e-3)
    assert slope["r_series_ohm"] == pytest.approx(0.02, abs=5e-3)
    assert slope["r_met_ohm"] == pytest.approx(-1.03, abs=5e-3)
    assert slope["v_mit_V"] == pytest.approx(1.67, abs=5e-3)


def test_published_configurations():
    """Periods and energies of the two-state device of Maffezzoni 2015, C = 1 nF.

    Computed by an independent event-driven model: resistor to the supply, 2.5 V.
    """
    for resistor, period, metal, energy in (
        (20e3, 41.471e-6, 0.01712, 4.277e-9),
        (6e3, 8.1727e-6, 0.09663, 3.125e-9),
        (3e3, 4.4005e-6, 0.21702, 3.494e-9),
    ):
        card = Card("m", 2.5, resistor, 1e-9, 100.2e3, 0.99e3, 1.99, 1.0)
        assert period_s(card) == pytest.approx(period, rel=1e-4)
        assert 1 - duty(card) == pytest.approx(metal, rel=5e-4)
        assert energy_per_period_J(card).supply_J == pytest.approx(energy, rel=2e-4)


def test_period_against_an_integrator(card, crossings):
    hits = crossings(card, card.v_mit_V, 1, 3.9 * period_s(card))
    assert np.diff(hits) == pytest.approx(period_s(card), rel=1e-11)


def test_phase_is_zero_at_the_upward_crossing(card):
    assert state_of(card, 0.0) == 0
    assert float(waveform_V(card, 0.0)) == card.v_imt_V
    before = -1e-9
    assert state_of(card, before) == 1
    assert float(waveform_V(card, before)) == pytest.approx(card.v_imt_V, abs=1e-8)


def test_phase_of_inverts_the_waveform(card):
    phi = np.linspace(0.001, 6.28, 200)
    back = phase_of(card, waveform_V(card, phi), state_of(card, phi))
    assert back == pytest.approx(phi, abs=1e-12)


def test_whole_turns_change_nothing(card):
    phi = np.linspace(0.1, 6.0, 20)
    turned = waveform_V(card, phi + 8 * np.pi)
    assert turned == pytest.approx(waveform_V(card, phi), abs=1e-12)


def _midpoints(card, count=200_000):
    """Midpoints of the two segments, with weights that sum to one."""
    switch = omega(card) * segments(card).length_s[0]
    inner = (np.arange(count) + 0.5) / count
    first, second = inner * switch, switch + inner * (2 * np.pi - switch)
    share = switch / (2 * np.pi)
    weights = np.repeat([share / count, (1 - share) / count], count)
    return np.concatenate([first, second]), weights


@pytest.mark.parametrize("order", [0, 1, 2, 3, 7, -2])
def test_series_against_quadrature(card, order):
    """Midpoint rule on each smooth piece: error (pi/count)^2/6 f''."""
    phi, weights = _midpoints(card)
    wave = np.exp(-1j * order * phi) * weights
    scale = abs(ppv_at_switching(card)).max()
    assert waveform_series(card, order) == pytest.approx(
        (waveform_V(card, phi) * wave).sum(), abs=1e-9
    )
    assert ppv_series(card, order) == pytest.approx(
        (ppv(card, phi) * wave).sum(), abs=1e-9 * scale
    )
    assert ppv_square_series(card, order) == pytest.approx(
        (ppv(card, phi) ** 2 * wave).sum(), abs=1e-9 * scale**2
    )


@pytest.mark.parametrize("fraction", [0.05, 0.3, 0.62, 0.95])
def test_ppv_against_a_finite_charge(card, crossings, fraction):
    """Central difference: relative error (charge / C(V_inf - V))^2, plus 1e-8 rad."""
    charge = 1e-3 * card.c_F * (card.v_imt_V - card.v_mit_V)
    period = period_s(card)
    late, early = (
        crossings(card, card.v_imt_V, 0, 2.4 * period, (fraction * period, size))[-1]
        for size in (-charge, charge)
    )
    measured = omega(card) * (late - early) / (2 * charge)
    expected = float(ppv(card, 2 * np.pi * fraction))
    assert measured == pytest.approx(expected, rel=2e-5)


def test_energy_balance(card):
    energy = energy_per_period_J(card)
    parts = dataclasses.astuple(energy)
    assert energy.supply_J == pytest.approx(sum(parts[1:]), rel=1e-14)


def test_slowest_current_is_reached_before_a_switching(card):
    phi = np.linspace(0, 2 * np.pi, 20_001)
    current = omega(card) / np.abs(ppv(card, phi))
    assert slowest_current_A(card) <= current.min()
    assert slowest_current_A(card) == pytest.approx(current.min(), rel=2e-3)


@pytest.mark.parametrize(
    ("name", "kind", "alpha"),
    [
        ("vo2-two-state-20k", "resistive", 0.60),
        ("vo2-two-state-6k", "resistive", 0.50),
        ("vo2-two-state-20k", "capacitive", 2.17),
        ("vo2-two-state-6k", "capacitive", 2.07),
    ],
)
def test_native_frustration(name, kind, alpha):
    assert frustration_rad(load_card(name), kind) == pytest.approx(alpha, abs=5e-3)


@pytest.mark.parametrize(
    ("name", "ratio"), [("vo2-two-state-20k", 0.62), ("vo2-two-state-6k", 0.54)]
)
def test_native_even_part(name, ratio):
    """Ratio of the even to the odd part of H, mean taken out."""
    delta = np.arange(512) * (2 * np.pi / 512)
    there = interaction(load_card(name), delta, "resistive")
    back = interaction(load_card(name), -delta, "resistive")
    even = 0.5 * (there + back)
    odd = 0.5 * (there - back)
    assert even.std() / odd.std() == pytest.approx(ratio, abs=5e-3)


def test_native_interaction_against_its_definition(card):
    """Mean over a period of ppv(phi) (v(phi + delta) - v(phi))."""
    phi, weights = _midpoints(card, 20_000)
    response = ppv(card, phi) * weights
    for delta in (0.4, 2.0, -1.3):
        pulled = waveform_V(card, phi + delta) - waveform_V(card, phi)
        wanted = (response * pulled).sum()
        found = float(interaction(card, delta, "resistive"))
        # the integrand has jumps inside a cell: first order in the cell, 3e-4 rad
        assert found == pytest.approx(wanted, abs=2e-4 * abs(ppv(card, phi)).max())


def test_lock_range_of_a_sine(card_20k):
    assert lock_range(card_20k, 1e-6) == pytest.approx(7.759006e3, rel=1e-6)
    assert lock_range(card_20k, 1e-6, 2) == pytest.approx(6.789927e3, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "factor"), [("vo2-two-state-20k", 637), ("vo2-two-state-5k5", 1566)]
)
def test_thermal_jitter_law(name, factor):
    """var = P b kT/(C Vdd^2), b as stated."""
    card = load_card(name)
    unit = 1.380649e-23 * 300 / (card.c_F * card.vdd_V**2)
    assert jitter_variance_rad2(card, 7) / 7 / unit == pytest.approx(factor, abs=0.6)


@pytest.mark.parametrize(
    ("relative", "periods", "stated", "digit"),
    [(1e-4, 20, 6.2, 0.1), (1e-4, 2, 1.9, 0.1), (1e-3, 20, 61.0, 1.0)],
)
def test_threshold_jitter_law(card_20k, relative, periods, stated, digit):
    """Stated jitter in mrad at 300 K, to half of its last digit."""
    sigma = relative * card_20k.v_imt_V
    noise = jitter_variance_rad2(card_20k, periods, threshold_V=sigma)
    assert 1e3 * noise**0.5 == pytest.approx(stated, abs=0.5 * digit)
