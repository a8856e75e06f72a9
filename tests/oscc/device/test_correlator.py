"""The correlator's closed form against a discrete Fourier transform."""

from __future__ import annotations

import numpy as np
import pytest

from oscc.device import load_card
from oscc.device.correlator import leakage, settling_periods, tank_response
from oscc.device.piecewise import waveform_V


@pytest.mark.parametrize("name", ["vo2-two-state-6k", "vo2-two-state-20k"])
@pytest.mark.parametrize("quality", [2.0, 5.0])
def test_leakage_is_that_of_the_sampled_waveform(name: str, quality: float) -> None:
    card, count = load_card(name), 1 << 16
    phase = 2 * np.pi * (np.arange(count) + 0.5) / count
    spectrum = np.fft.rfft(waveform_V(card, phase))[1:7] / count
    n = np.arange(1, 7)
    # the tank as impedances: R in series with L parallel C, all at w0 = 1, R = 1
    admittance = 1j * n * quality + quality / (1j * n)
    passed = np.abs(spectrum / (1 + admittance)) ** 2
    wanted = passed / np.abs(spectrum[0]) ** 2
    np.testing.assert_allclose(leakage(card, quality, 6), wanted, rtol=1e-4)


def test_a_tuned_tank_passes_its_carrier_whole() -> None:
    assert tank_response(7.0, 1) == 1.0
    assert abs(tank_response(7.0, 2)) < abs(tank_response(3.0, 2)) < 0.22


@pytest.mark.parametrize(("left", "periods"), [(1.0, 0), (0.5, 2), (1e-6, 22)])
def test_a_transient_has_settled_after_whole_periods(left: float, periods: int) -> None:
    found = settling_periods(5.0, left)
    assert found == periods
    assert np.exp(-np.pi * found / 5.0) <= left
    assert not found or np.exp(-np.pi * (found - 1) / 5.0) > left
