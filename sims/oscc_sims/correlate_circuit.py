"""Correlations in the exact circuit: cells, tanks from rest, mixers, an integrator.

In base phase s = w0 t a tank of a cell that runs at phase theta + s obeys

    u'' + u'/Q + u = v'/Q,    v = v_inf + d exp(-a (phase - begin)) in each state

so that u is P exp(-a .) + Re[c exp(lambda .)] in each state, lambda^2 + lambda/Q + 1
= 0, with constants that close the cycle, four real equations solved
once a card. A cell is held at V_MIT and let go at its written time, within the period
before s = 0; up to then its tank is at rest, so that

    u(s) = u_cycle(theta + s) - Re[b exp(lambda (s + m))]
    m = (theta - begin) mod 2 pi

with b from u_cycle at the beginning of the insulating state. The product of two tanks
is integrated over whole periods by equally spaced samples, exact but for harmonics of
the sampling, and divided by 2 |v_1|^2. Mixers, gates and integrator are ideal. The
Fourier sums of `oscc.device.correlator` are not used in here, so each checks the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from oscc.arrays import ComplexArray, FloatArray
from oscc.device.card import Card
from oscc.device.piecewise import (
    INSULATING,
    METALLIC,
    omega,
    segments,
    waveform_series,
)
from oscc.errors import RequestError
from oscc.ir.correlation import Correlation
from oscc.phases import TURN

SAMPLES = 64
"""Samples a period of the integral; they alias no harmonic below the 62nd."""


@dataclass(frozen=True, slots=True, eq=False)
class TankCycle:
    """Voltage of a tank that a free cell drives, as a function of the cell's phase.

    Attributes:
        begin: Phase at which each state begins, shape (2,), [rad].
        fall: a of each state in base phase, shape (2,).
        forced: P of each state, shape (2,), [V].
        free: c of each state, shape (2,), [V].
        pole: lambda, in units of w0.
        start: b, the transient of a tank at rest when its cell is let go, [V].
        unit: 2 |v_1|^2, what two cells of one phase would give as pure tones, [V^2].
    """

    begin: FloatArray
    fall: FloatArray
    forced: FloatArray
    free: ComplexArray
    pole: complex
    start: complex
    unit: float


def tank_cycle(card: Card, quality: float) -> TankCycle:
    """The closed cycle of a tank tuned to the card.

    Raises:
        RequestError: the tank does not ring (quality of 1/2 or less).
    """
    if quality <= 0.5:
        raise RequestError(f"A tank of quality {quality:g} does not ring; take more.")
    piece, w0 = segments(card), omega(card)
    begin, length = w0 * piece.begin_s, w0 * piece.length_s
    fall = 1.0 / (w0 * piece.tau_s)
    forced = fall * (piece.v_inf_V - piece.v_start_V) / quality
    forced = forced / (fall**2 - fall / quality + 1.0)
    pole = complex(-0.5 / quality, np.sqrt(1.0 - 0.25 / quality**2))
    rows, right = np.zeros((4, 4)), np.zeros(4)
    for equation, (before, after) in enumerate(
        ((METALLIC, INSULATING), (INSULATING, METALLIC))
    ):
        grown = np.exp(pole * length[before])
        died = forced[before] * np.exp(-fall[before] * length[before])
        for derivative in range(2):
            row = 2 * equation + derivative
            for state, sent in ((before, grown), (after, -1.0)):
                value = sent * pole**derivative
                rows[row, 2 * state] += np.real(value)
                rows[row, 2 * state + 1] -= np.imag(value)
            right[row] = forced[after] * (-fall[after]) ** derivative
            right[row] -= died * (-fall[before]) ** derivative
    found = np.linalg.solve(rows, right)
    free = found[0::2] + 1j * found[1::2]
    at_release = forced[INSULATING] + free[INSULATING].real
    slope = -fall[INSULATING] * forced[INSULATING] + (free[INSULATING] * pole).real
    start = complex(at_release, (pole.real * at_release - slope) / pole.imag)
    unit = 2.0 * float(np.abs(waveform_series(card, 1)) ** 2)
    return TankCycle(begin, fall, forced, free, pole, start, unit)


def tank_voltage(cycle: TankCycle, phase_rad: FloatArray, s: FloatArray) -> FloatArray:
    """Voltage of tanks at base times s, shape (..., len(s)), [V].

    Args:
        phase_rad: Phase of each cell at s = 0, shape (...), [rad].
        s: Base times since every cell was let go, shape (N,), [rad].
    """
    place = np.mod(phase_rad[..., None] + s, TURN)
    state = np.where(place >= cycle.begin[INSULATING], INSULATING, METALLIC)
    since = place - cycle.begin[state]
    ringing = (cycle.free[state] * np.exp(cycle.pole * since)).real
    settled = cycle.forced[state] * np.exp(-cycle.fall[state] * since) + ringing
    gone = np.mod(phase_rad - cycle.begin[INSULATING], TURN)[..., None] + s
    out: FloatArray = settled - (cycle.start * np.exp(cycle.pole * gone)).real
    return out


def solve(card: Card, stage: Correlation) -> FloatArray:
    """Sums of every head as the circuit gives them, shape (H, T, S), [nat].

    Raises:
        RequestError: the tank does not ring.
    """
    cycle = tank_cycle(card, stage.quality)
    count = SAMPLES * stage.periods
    s = TURN * (stage.settle_periods + (np.arange(count) + 0.5) / SAMPLES)
    out = np.zeros(stage.digital.shape)
    for head in range(stage.heads):
        columns = stage.columns(head)
        query = tank_voltage(cycle, stage.query_rad[:, columns], s)
        key = tank_voltage(cycle, stage.key_rad[:, columns], s)
        query *= stage.query_gain[:, columns, None]
        key *= stage.key_gain[:, columns, None]
        # no BLAS: its sums depend on the number of threads
        flat = (query.reshape(len(query), -1), key.reshape(len(key), -1))
        summed = np.einsum("ta,ua->tu", *flat)
        whole = summed / (count * cycle.unit)
        out[head] = np.where(stage.visible, whole, 0.0)
    return out


def facts(stage: Correlation) -> dict[str, Any]:
    """Figures of a run that repeat exactly."""
    return {
        "outputs": stage.outputs,
        "mixers": stage.mixers,
        "quality": stage.quality,
        "periods_in_all": stage.periods_in_all,
        "ideal": ["mixers", "gates", "integrators", "buffers"],
    }
