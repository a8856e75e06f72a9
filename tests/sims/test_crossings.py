"""Crossings by inverse interpolation through four points."""

from __future__ import annotations

import numpy as np

from oscc_sims.crossings import upward


def test_crossings_of_a_sine_converge_with_the_fourth_power_of_the_step() -> None:
    errors = []
    for points in (40, 80, 160):
        t = np.arange(3 * points + 1) / points + 0.3 / points
        found = upward(t, np.sin(2 * np.pi * t), 0.3)
        exact = np.arcsin(0.3) / (2 * np.pi) + np.arange(3)
        assert found.size == 3
        errors.append(np.abs(found - exact).max())
    assert errors[1] < errors[0] / 8
    assert errors[2] < errors[1] / 8


def test_only_upward_crossings_count() -> None:
    t = np.linspace(0.0, 4.0, 9)
    v = np.array([0.0, 1.0, 2.0, 1.0, 0.0, -1.0, 0.0, 1.0, 2.0])
    np.testing.assert_allclose(upward(t, v, 0.5), [0.25, 3.25])
    np.testing.assert_allclose(upward(t, -v, -0.5), [1.75])


def test_a_kink_is_crossed_on_a_straight_line() -> None:
    t = np.array([0.0, 1.0, 1.0, 2.0, 3.0])
    v = np.array([1.0, 0.0, 0.0, 4.0, 3.0])
    np.testing.assert_allclose(upward(t, v, 1.0), [1.25])


def test_a_flat_wave_has_no_crossing() -> None:
    assert upward(np.arange(5.0), np.zeros(5), 0.0).size == 0
    assert upward(np.arange(5.0), np.zeros(5), 1.0).size == 0
