"""Independent integration of a lock cell, for tests: scipy with located events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oscc.arrays import FloatArray
from oscc.device.card import Card
from oscc.device.lock_cell import TANK_OHM, LockCell
from oscc.device.piecewise import omega, period_s


@dataclass(frozen=True, slots=True, eq=False)
class IndependentRun:
    """Crossings of both oscillators, and energies over the dwell.

    Attributes:
        first_s: Upward crossings of oscillator 1, [s].
        second_s: The same of oscillator 2.
        supply_J: From the supply into both cells.
        injected_J: From the transconductors into both nodes.
    """

    first_s: FloatArray
    second_s: FloatArray
    supply_J: float
    injected_J: float


def lock_crossings(
    cell: LockCell,
    ratio: float,
    periods: int,
    *,
    method: str = "DOP853",
    tolerance: float = 1e-12,
) -> IndependentRun:
    """One lock cell from rest, by an integrator with events, from its elements alone.

        C_k dV_k/dt = (Vdd - V_k)/R_s - V_k/R_state + gm u_other
        C dU/dt = (V_k - U)/R - I,     L dI/dt = U

    Shares no code with an engine. The two events must not coincide: not for x = 0.

    Args:
        cell: Element values.
        ratio: Detuning over lock range, x, other than 0.
        periods: Length in free periods of the card.
        method: Method of `solve_ivp`.
        tolerance: Relative tolerance of a step; at 1e-12 steps are kept short too, as
            events are found on an interpolant of lower order.

    Example:
        >>> from oscc.device import load_card
        >>> from oscc.device.lock_cell import lock_cell
        >>> cell = lock_cell(load_card("vo2-two-state-5k5"))
        >>> seen = lock_crossings(cell, 0.5, 1)
        >>> bool(seen.first_s[0] < seen.second_s[0])
        True
    """
    from scipy.integrate import solve_ivp

    card, unit = cell.card, 1.0 / omega(cell.card)
    shift = ratio * cell.rate / 2
    farad = (card.c_F / (1 + shift), card.c_F / (1 - shift))
    y = np.array([card.v_mit_V, card.v_mit_V, 0, 0, 0, 0, 0, 0], dtype=np.float64)
    state, time, stop = [1, 1], 0.0, periods * period_s(card)
    found: tuple[list[float], list[float]] = ([], [])
    while time < stop:
        run = solve_ivp(
            _slope(cell, tuple(state), farad),
            (time / unit, stop / unit),
            y,
            method=method,
            rtol=tolerance,
            atol=tolerance * 1e-2,
            events=[_event(card, one, state[one]) for one in (0, 1)],
            max_step=0.15 if tolerance <= 1e-12 else np.inf,
        )
        time, y = float(run.t[-1]) * unit, run.y[:, -1]
        if run.status == 1:
            one = 0 if run.t_events[0].size else 1
            if state[one]:
                found[one].append(time)
            y[one] = card.v_imt_V if state[one] else card.v_mit_V
            state[one] = 1 - state[one]
    first, second = (np.array(times) for times in found)
    # energies are kept in units of 1e-9 J, so that the tolerance suits them
    return IndependentRun(first, second, float(y[6]) * 1e-9, float(y[7]) * 1e-9)


def _slope(
    cell: LockCell, state: tuple[int, ...], farad: tuple[float, float]
) -> Callable[[float, FloatArray], list[float]]:
    """Slopes by base phase: nodes, tanks as (U, I TANK_OHM), supply, injected."""
    card, w0 = cell.card, omega(cell.card)
    ohm = [card.r_ins_ohm if s else card.r_met_ohm for s in state]
    charge, flux = TANK_OHM * cell.tank_F * w0, cell.tank_H / TANK_OHM * w0

    def slope(_: float, y: FloatArray) -> list[float]:
        v = y[:2]
        injected = cell.siemens * np.array([y[4], y[2]])
        series = (card.vdd_V - v) / card.r_series_ohm
        node = (series - v / ohm + injected) / np.array(farad) / w0
        tank = [
            (v[0] - y[2] - y[3]) / charge,
            y[2] / flux,
            (v[1] - y[4] - y[5]) / charge,
            y[4] / flux,
        ]
        power = [card.vdd_V * series.sum(), float(v @ injected)]
        return [*node, *tank, *(p / w0 * 1e9 for p in power)]

    return slope


def _event(card: Card, one: int, state: int) -> Callable[[float, FloatArray], float]:
    """Event of an oscillator leaving its state, as solve_ivp wants it."""
    level = card.v_imt_V if state else card.v_mit_V

    def event(_: float, y: FloatArray) -> float:
        return float(y[one]) - level

    event.terminal = True  # type: ignore[attr-defined]
    event.direction = 1 if state else -1  # type: ignore[attr-defined]
    return event
