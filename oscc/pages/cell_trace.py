"""Waveforms of one pair cell in its dwell, for the report: exact pieces of the circuit.

Between two switchings both nodes and both tanks are a linear network,

    C_k dV_k/dt = Vdd/R_s - G_k V_k + gm U_l          k, l = 1, 2 and 2, 1
    C dU_k/dt   = (V_k - U_k)/R - I_k,    L dI_k/dt = U_k

advanced over a step of the output by its eigenvectors. A switching inside of a step is
found by bisection. It is meant for a picture: a few cells, not all.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from oscc.arrays import ComplexArray, FloatArray
from oscc.device.lock_cell import TANK_OHM, LockCell, capacitors_F
from oscc.device.lock_readout import phase_difference_at
from oscc.device.piecewise import INSULATING, omega, segments
from oscc.phases import TURN

_BISECTIONS = 50
_STATES = 7  # two nodes, two tanks of two each, and the constant 1


@dataclass(frozen=True, slots=True, eq=False)
class CellTrace:
    """One cell from rest, until both oscillators have crossed after the dwell.

    Args:
        time: In free periods of the card, shape (N,).
        v_V: Node voltages of both oscillators, shape (2, N) [V].
        crossing: Times of the upward crossings of each oscillator, in periods.
        psi_time: Times of the crossings of oscillator 1 in the dwell, but those before
            the first of oscillator 2, in periods.
        psi_rad: Phase difference at these times, unwrapped.
    """

    time: FloatArray
    v_V: FloatArray
    crossing: tuple[FloatArray, FloatArray]
    psi_time: FloatArray
    psi_rad: FloatArray


@dataclass(slots=True)
class _Pair:
    """Both oscillators while they are followed.

    Attributes:
        y: Nodes, tanks, and 1, shape (7,).
        state: Metallic or insulating, of each oscillator.
        ups: Times of the upward crossings of each oscillator.
    """

    y: FloatArray
    state: tuple[int, int] = (INSULATING, INSULATING)
    ups: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))


@dataclass(frozen=True, slots=True, eq=False)
class _Circuit:
    """The four pairs of states: y(t) = out exp(rate t) into y(0), t in periods.

    Attributes:
        rate: Eigenvalues, shape (2, 2, 7).
        into: From the states, shape (2, 2, 7, 7).
        out: To the states, shape (2, 2, 7, 7).
        ends_V: Threshold at which each state ends, shape (2,).
    """

    rate: ComplexArray
    into: ComplexArray
    out: ComplexArray
    ends_V: FloatArray

    def move(self, states: tuple[int, int], time: float) -> FloatArray:
        """Matrix from y(0) to y(time), shape (7, 7)."""
        grown = self.out[states] * np.exp(self.rate[states] * time)
        return np.asarray((grown @ self.into[states]).real)

    def beyond(self, pair: _Pair, y: FloatArray) -> list[int]:
        """Oscillators that are past the threshold of their state."""
        out = []
        for one in (0, 1):
            excess = y[one] - self.ends_V[pair.state[one]]
            if (excess if pair.state[one] == INSULATING else -excess) >= 0.0:
                out.append(one)
        return out


def cell_trace(
    cell: LockCell, ratio: float, periods: int, *, samples_per_period: int = 60
) -> CellTrace:
    """Follow one cell from rest through its dwell.

    Args:
        cell: Element values.
        ratio: x, any sign.
        periods: Length of the dwell.
        samples_per_period: Samples of the output.

    Raises:
        RequestError: the cell is detuned beyond the trim of the card.

    Example:
        >>> from oscc.device import load_card
        >>> from oscc.device.lock_cell import lock_cell
        >>> cell = lock_cell(load_card("vo2-two-state-5k5"))
        >>> round(float(np.cos(cell_trace(cell, 0.6, 60).psi_rad[-1])), 2)
        0.8
    """
    circuit, length = _circuit(cell, ratio), 1.0 / samples_per_period
    steps = {states: circuit.move(states, length) for states in np.ndindex(2, 2)}
    pair = _Pair(np.array([cell.card.v_mit_V] * 2 + [0.0] * (_STATES - 3) + [1.0]))
    voltages, step = [pair.y[:2].copy()], 0
    while min(ups[-1] if ups else 0.0 for ups in pair.ups) <= periods:
        ahead = steps[pair.state] @ pair.y
        if circuit.beyond(pair, ahead):
            _events(circuit, pair, step * length, length)
        else:
            pair.y = ahead
        voltages.append(pair.y[:2].copy())
        step += 1
    first, second = (np.array(ups) for ups in pair.ups)
    within = first[first <= periods]
    psi = phase_difference_at(within, second)
    return CellTrace(
        time=np.arange(step + 1) / samples_per_period,
        v_V=np.array(voltages).T,
        crossing=(first, second),
        psi_time=within[np.isfinite(psi)],
        psi_rad=psi[np.isfinite(psi)],
    )


def _circuit(cell: LockCell, ratio: float) -> _Circuit:
    card = cell.card
    farad = capacitors_F(card, cell.rate, [ratio])[:, 0]
    piece = segments(card)
    slope = np.zeros((2, 2, _STATES, _STATES))
    for states in np.ndindex(2, 2):
        a = slope[states]
        for one in (0, 1):
            own, other = 2 + 2 * one, 4 - 2 * one
            a[one, one] = -piece.conductance_S[states[one]] / farad[one]
            a[one, other] = cell.siemens / farad[one]
            a[one, -1] = card.vdd_V / card.r_series_ohm / farad[one]
            # of a tank: its voltage, and its current times its resistor
            a[own, [one, own, own + 1]] = np.array([1, -1, -1]) / TANK_OHM / cell.tank_F
            a[own + 1, own] = TANK_OHM / cell.tank_H
    rate, out = np.linalg.eig(slope * TURN / omega(card))
    out = out.astype(np.complex128)
    return _Circuit(rate.astype(np.complex128), np.linalg.inv(out), out, piece.v_end_V)


def _events(circuit: _Circuit, pair: _Pair, begin: float, length: float) -> None:
    """Bring both oscillators on by a step in which at least one of them switches."""
    left = length
    while True:
        ahead = circuit.move(pair.state, left) @ pair.y
        if not circuit.beyond(pair, ahead):
            pair.y = ahead
            return
        low, high = 0.0, left
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            if circuit.beyond(pair, circuit.move(pair.state, middle) @ pair.y):
                high = middle
            else:
                low = middle
        pair.y = circuit.move(pair.state, high) @ pair.y
        left -= high
        for one in circuit.beyond(pair, pair.y):
            _switch(circuit, pair, one, begin + length - left)


def _switch(circuit: _Circuit, pair: _Pair, one: int, now: float) -> None:
    pair.y[one] = circuit.ends_V[pair.state[one]]
    if pair.state[one] == INSULATING:
        pair.ups[one].append(now)
    first, second = pair.state
    pair.state = (1 - first, second) if one == 0 else (first, 1 - second)
