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


@dataclass(slots=True)
class _Node:
    """State of the node while it is followed; `offset` is D of the current piece."""

    state: int
    since: float
    offset: float
    seen: float = 0.0
    ups: int = 0


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
        injection: Peak phasors by order, [A], shape (N+1,), see `oscc.device.coupler`.
        phi0_rad: Phase at the opening of the gate, [rad], any turn.
        periods: Length of the dwell.
        samples_per_period: Samples of the output.

    Raises:
        RequestError: the injection has an imaginary part in order 0.

    Example:
        >>> from oscc.device import load_card
        >>> card = load_card("vo2-two-state-6k")
        >>> seen = target_trace(card, np.zeros(2, complex), 1.0, 2)
        >>> round(float(seen.lead_rad[-1]), 9)
        1.0
    """
    piece = segments(card)
    time = np.linspace(0.0, periods * period_s(card), periods * samples_per_period + 1)
    forced = np.stack([_forced(card, piece, injection, s, time) for s in (0, 1)])
    start = int(state_of(card, phi0_rad))
    v = np.empty_like(time)
    v[0] = waveform_V(card, phi0_rad)
    node = _Node(start, 0.0, float(v[0] - forced[start, 0]))
    state = np.full(time.size, start)
    ups = np.zeros(time.size, dtype=np.int64)
    for k in range(1, time.size):
        v[k] = _advance(card, piece, injection, node, time[k], forced[:, k])
        state[k], ups[k] = node.state, node.ups
    cycle = phase_of(card, v, state)
    turns = np.floor(phi0_rad / TURN) + ups
    lead = cycle + TURN * turns - omega(card) * time
    return TargetTrace(
        time_s=time,
        v_V=v,
        free_V=waveform_V(card, phi0_rad + omega(card) * time),
        injection_A=_wave(card, injection, time),
        lead_rad=lead,
    )


def _wave(card: Card, injection: ComplexArray, time: FloatArray) -> FloatArray:
    orders = np.arange(injection.size)
    turned = np.exp(1j * omega(card) * np.multiply.outer(time, orders))
    return np.asarray((turned * injection).real.sum(axis=-1))


def _forced(
    card: Card,
    piece: Segments,
    injection: ComplexArray,
    state: int,
    time: FloatArray | float,
) -> FloatArray:
    """V_inf plus the forced response, [V], shape of `time`."""
    orders = np.arange(injection.size)
    load = piece.conductance_S[state] * (
        1.0 + 1j * orders * omega(card) * piece.tau_s[state]
    )
    wave = _wave(card, injection / load, np.asarray(time))
    return np.asarray(piece.v_inf_V[state] + wave)


def _advance(
    card: Card,
    piece: Segments,
    injection: ComplexArray,
    node: _Node,
    until: float,
    forced: FloatArray,
) -> float:
    """Voltage at a time, with every switching before it done."""
    while True:
        decay = np.exp(-(until - node.since) / piece.tau_s[node.state])
        v = float(forced[node.state] + node.offset * decay)
        sign = 1.0 if node.state == INSULATING else -1.0
        threshold = float(piece.v_end_V[node.state])
        if sign * (v - threshold) < 0.0:
            node.seen = until
            return v
        at = _crossing(card, piece, injection, node, until, sign)
        node.ups += int(node.state == INSULATING)
        node.state = METALLIC if node.state == INSULATING else INSULATING
        node.since = at
        node.offset = threshold - float(_forced(card, piece, injection, node.state, at))


def _crossing(
    card: Card,
    piece: Segments,
    injection: ComplexArray,
    node: _Node,
    until: float,
    sign: float,
) -> float:
    """Time at which the node reaches the threshold of its state, by bisection."""
    low, high = max(node.since, node.seen), until
    threshold = float(piece.v_end_V[node.state])
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        decay = np.exp(-(middle - node.since) / piece.tau_s[node.state])
        forced = float(_forced(card, piece, injection, node.state, middle))
        if sign * (forced + node.offset * decay - threshold) < 0.0:
            low = middle
        else:
            high = middle
    return high
