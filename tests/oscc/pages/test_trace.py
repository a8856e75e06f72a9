"""The waveform of the report against the circuit engine and the phase equation."""

from __future__ import annotations

import numpy as np
import pytest

from oscc.device import load_card
from oscc.device.coupler import injection_A
from oscc.device.piecewise import omega, period_s
from oscc.device.ppv import ppv
from oscc.pages.trace import target_trace
from oscc_sims.circuit_dwell import run_dwell

CARD = load_card("vo2-two-state-6k")


@pytest.mark.parametrize("phi0", [-7.0, 0.0, 0.4, 2.0, 5.9, 20.0])
def test_lead_at_the_end_is_that_of_the_circuit_engine(phi0: float) -> None:
    drive = np.array([[1.2 * np.exp(0.7j), 0.3 * np.exp(-1.0j)]])
    current = injection_A(CARD, drive, [1, 2], 6)
    seen = target_trace(CARD, current[0], phi0, 6)
    wanted = run_dwell(CARD, current, np.array([phi0]), 6).lead_rad[0]
    # Bisection to 2^-60 of a hundredth of a period; rounding of the phase remains.
    assert seen.lead_rad[-1] == pytest.approx(wanted, abs=1e-9)
    assert seen.lead_rad[0] == pytest.approx(phi0, abs=1e-12)


def test_free_cell_stays_on_its_cycle() -> None:
    seen = target_trace(CARD, np.zeros(3, complex), 1.3, 4)
    np.testing.assert_allclose(seen.v_V, seen.free_V, atol=1e-10)
    np.testing.assert_allclose(seen.lead_rad, 1.3, atol=1e-9)
    assert not seen.injection_A.any()


def test_lead_follows_the_phase_equation_all_along() -> None:
    """dphi/dt = omega + ppv(phi) I(t) is exact: integrate it by the midpoint rule."""
    current = injection_A(CARD, np.array([[2.0 * np.exp(2.1j)]]), [1], 2)[0]
    steps, periods = 1000, 2
    seen = target_trace(CARD, current, 0.9, periods, samples_per_period=steps)
    step = period_s(CARD) / steps

    def rate(t: float, phi: float) -> float:
        wave = (current * np.exp(1j * np.arange(2) * omega(CARD) * t)).real.sum()
        return float(omega(CARD) + ppv(CARD, phi) * wave)

    phi = np.empty(seen.time_s.size)
    phi[0] = 0.9
    for k, t in enumerate(seen.time_s[:-1]):
        middle = phi[k] + 0.5 * step * rate(t, phi[k])
        phi[k + 1] = phi[k] + step * rate(t + 0.5 * step, middle)
    lead = phi - omega(CARD) * seen.time_s
    # The phase response jumps at a switching: a step that straddles one errs by at most
    # the jump times the current times the step; there are two switchings a period.
    jump = float(np.ptp(ppv(CARD, np.linspace(0, 6.28, 5000))))
    bound = (2 * periods + 1) * jump * float(np.abs(current).sum()) * step
    assert np.abs(lead - seen.lead_rad).max() < bound
    assert np.ptp(seen.lead_rad) > 20 * bound


def test_injection_is_the_sum_of_its_phasors() -> None:
    current = np.array([1e-6, 2e-5 * np.exp(0.3j), 1e-5j])
    seen = target_trace(CARD, current, 0.0, 1, samples_per_period=8)
    t = omega(CARD) * seen.time_s
    wanted = 1e-6 + 2e-5 * np.cos(t + 0.3) - 1e-5 * np.sin(2 * t)
    np.testing.assert_allclose(seen.injection_A, wanted, atol=1e-15)
