"""Independent integration of a driven cell, for tests: scipy with located events."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oscc.device.card import Card
from oscc.device.piecewise import (
    INSULATING,
    METALLIC,
    omega,
    period_s,
    phase_of,
    state_of,
    waveform_V,
)
from oscc.phases import TURN


def driven_increment_rad(
    card: Card,
    phasors_A: dict[int, complex],
    phi0_rad: float,
    periods: int,
    *,
    carrier_period_s: float | None = None,
) -> float:
    """Phase that an injected current adds over a dwell, by DOP853 with events.

    Shares no code with an engine: the node equation is integrated state by state.

        C dV/dt = (Vdd - V)/R_s - V/R_state + sum_n Re(I_n e^{i n w t})

    Args:
        phasors_A: Peak phasor of each harmonic order, 0 for a direct current.
        phi0_rad: Phase at the opening of the gate.
        periods: Length in carrier periods.
        carrier_period_s: Period of the carrier; the card's own without it.

    Example:
        >>> from oscc.device import load_card
        >>> card = load_card("vo2-two-state-6k")
        >>> abs(driven_increment_rad(card, {}, 1.0, 1)) < 1e-8
        True
    """
    from scipy.integrate import solve_ivp

    own = period_s(card)
    carrier = carrier_period_s or own
    rate = TURN / carrier
    stop = periods * carrier
    time, v = 0.0, float(waveform_V(card, phi0_rad))
    state, turns = int(state_of(card, phi0_rad)), 0
    while time < stop:
        run = solve_ivp(
            _slope(card, state, rate, phasors_A),
            (time, stop),
            [v],
            method="DOP853",
            rtol=1e-11,
            atol=1e-12,
            events=_switching(card, state),
            max_step=own / 40,
        )
        time, v = float(run.t[-1]), float(run.y[0, -1])
        if run.status == 1:
            turns += state == INSULATING
            v, state = _threshold_V(card, state), 1 - state
    end = float(phase_of(card, v, state)) + TURN * turns
    return end - float(np.mod(phi0_rad, TURN)) - omega(card) * stop


def _threshold_V(card: Card, state: int) -> float:
    return card.v_mit_V if state == METALLIC else card.v_imt_V


def _slope(
    card: Card, state: int, rate: float, phasors_A: dict[int, complex]
) -> Callable[[float, list[float]], list[float]]:
    ohm = card.r_met_ohm if state == METALLIC else card.r_ins_ohm

    def slope(t: float, y: list[float]) -> list[float]:
        current = sum(
            (value * np.exp(1j * n * rate * t)).real for n, value in phasors_A.items()
        )
        node = (card.vdd_V - y[0]) / card.r_series_ohm - y[0] / ohm
        return [(node + current) / card.c_F]

    return slope


def _switching(card: Card, state: int) -> Callable[[float, list[float]], float]:
    """Event of the device leaving a state, as solve_ivp wants it."""

    def event(t: float, y: list[float]) -> float:
        del t
        return y[0] - _threshold_V(card, state)

    event.terminal = True  # type: ignore[attr-defined]
    event.direction = -1 if state == METALLIC else 1  # type: ignore[attr-defined]
    return event
