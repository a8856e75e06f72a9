"""Waveform of one target in one dwell, for the report: exact pieces of the circuit.

Between two switchings the node follows

    V(t) = V_inf + sum_n Re(H_n I_n e^{i n omega t}) + D e^{-t/tau}
    H_n  = (1/G) / (1 + i n omega tau)

exactly, G and tau of the state it is in. A switching is the first crossing of the
state's threshold, found on a grid of the output and then by bisection. It is meant for
a picture: a few targets, not all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oscc.arrays import ComplexArray, FloatArray
from oscc.device import Card
from oscc.device.piecewise import (
    INSULATING,
    METALLIC,
    Segments,
    omega,
    period_s,
    phase_of,
    segments,
    state_of,
    waveform_V,
)
from oscc.phases import TURN

_BISECTIONS = 60


@dataclass(frozen=True, slots=True, eq=False)
class TargetTrace:
    """One dwell of one target, all arrays of shape (samples,).

    Args:
        time_s: From the opening of the gate to its closing.
        v_V: Node voltage.
        free_V: Node voltage of the same cell without injection.
        injection_A: Injected current, positive into the node.
        lead_rad: Phase against the free reference, unwrapped, starting at phi0.
    """

    time_s: FloatArray
    v_V: FloatArray
    free_V: FloatArray
    injection_A: FloatArray
    lead_rad: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class _Circuit:
    """The cell with its injection."""

    card: Card
    piece: Segments
    injection: ComplexArray

    def wave_A(self, time: FloatArray) -> FloatArray:
        """Injected current, shape of `time`."""
        return self._sum(self.injection, time)

    def forced_V(self, state: int, time: FloatArray | float) -> FloatArray:
        """V_inf plus the forced response, shape of `time`."""
        orders = np.arange(self.injection.size)
        turn = 1j * orders * omega(self.card) * self.piece.tau_s[state]
        response = self.injection / (self.piece.conductance_S[state] * (1.0 + turn))
        return np.asarray(self.piece.v_inf_V[state] + self._sum(response, time))

    def _sum(self, phasors: ComplexArray, time: FloatArray | float) -> FloatArray:
        angle = np.multiply.outer(np.asarray(time), np.arange(phasors.size))
        turned = np.exp(1j * omega(self.card) * angle)
        return np.asarray((turned * phasors).real.sum(axis=-1))


@dataclass(slots=True)
class _Node:
    """State of the node while it is followed.

    Attributes:
        state: Metallic or insulating.
        since: Time of the last switching.
        offset: D of the current piece, [V].
        seen: Time up to which the node is known not to have switched.
        ups: Upward crossings so far.
    """

    state: int
    since: float
    offset: float
    seen: float = 0.0
    ups: int = 0

    def excess_V(self, circuit: _Circuit, time: float, forced: float) -> float:
        """How far the node is beyond the threshold of its state, [V]."""
        piece = circuit.piece
        decay = np.exp(-(time - self.since) / piece.tau_s[self.state])
        beyond = forced + self.offset * decay - piece.v_end_V[self.state]
        return float(beyond if self.state == INSULATING else -beyond)


def target_trace(
    card: Card,
    injection: ComplexArray,
    phi0_rad: float,
    periods: int,
    *,
    samples_per_period: int = 200,
) -> TargetTrace:
    """Follow one target through a dwell.

    Args:
        injection: Peak phasors by order, [A], shape (N+1,), order 0 real, see
            `oscc.device.coupler`.
        phi0_rad: Phase at the opening of the gate, [rad], any turn.
        periods: Length of the dwell.
        samples_per_period: Samples of the output.

    Example:
        >>> from oscc.device import load_card
        >>> card = load_card("vo2-two-state-6k")
        >>> seen = target_trace(card, np.zeros(2, complex), 1.0, 2)
        >>> round(float(seen.lead_rad[-1]), 9)
        1.0
    """
    circuit = _Circuit(card, segments(card), injection)
    time = np.linspace(0.0, periods * period_s(card), periods * samples_per_period + 1)
    forced = np.stack([circuit.forced_V(state, time) for state in (0, 1)])
    start = int(state_of(card, phi0_rad))
    v = np.empty_like(time)
    v[0] = waveform_V(card, phi0_rad)
    node = _Node(start, 0.0, float(v[0] - forced[start, 0]))
    state = np.full(time.size, start)
    ups = np.zeros(time.size, dtype=np.int64)
    for k in range(1, time.size):
        v[k] = _advance(circuit, node, float(time[k]), forced[:, k])
        state[k], ups[k] = node.state, node.ups
    turns = np.floor(phi0_rad / TURN) + ups
    return TargetTrace(
        time_s=time,
        v_V=v,
        free_V=waveform_V(card, phi0_rad + omega(card) * time),
        injection_A=circuit.wave_A(time),
        lead_rad=phase_of(card, v, state) + TURN * turns - omega(card) * time,
    )


def _advance(circuit: _Circuit, node: _Node, until: float, forced: FloatArray) -> float:
    """Voltage at a time, with every switching before it done."""
    while node.excess_V(circuit, until, float(forced[node.state])) >= 0.0:
        threshold = float(circuit.piece.v_end_V[node.state])
        at = _crossing(circuit, node, until)
        node.ups += int(node.state == INSULATING)
        node.state = METALLIC if node.state == INSULATING else INSULATING
        node.since = at
        node.offset = threshold - float(circuit.forced_V(node.state, at))
    node.seen = until
    decay = np.exp(-(until - node.since) / circuit.piece.tau_s[node.state])
    return float(forced[node.state] + node.offset * decay)


def _crossing(circuit: _Circuit, node: _Node, until: float) -> float:
    """Time at which the node reaches the threshold of its state, by bisection."""
    low, high = max(node.since, node.seen), until
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        forced = float(circuit.forced_V(node.state, middle))
        if node.excess_V(circuit, middle, forced) < 0.0:
            low = middle
        else:
            high = middle
    return high
