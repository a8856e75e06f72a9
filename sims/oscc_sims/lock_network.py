"""The lock cell between two switching events: a linear network, solved in closed form.

States V_1, V_2, u_1, j_1, u_2, j_2: the nodes, and voltage and scaled current of the
tank that each drives. With x = w0 t, r = wr/w0 and G the conductance of a state,

    C_1 w0 dV_1/dx = Vdd/R_s - G V_1 + gm u_2      (and the other way round)
    du/dx = r/Q (V - u) - r j,     dj/dx = r u

so that y' = A y + b with one (A, b) for each of the four pairs of device states, and

    y(x) = level + Re sum_m out_m e^{rate_m x} (into_m . (y(0) - level))

over the eigenvalues with imaginary part >= 0; a complex one stands for its partner too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oscc.arrays import ComplexArray, FloatArray, IntArray
from oscc.device.lock_cell import LockCell, capacitors_F
from oscc.device.piecewise import omega, segments

STATES = 6
PAIRS = 4  # pairs of device states: 2 * state of oscillator 1 + state of oscillator 2


class Network(NamedTuple):
    """What the kernel reads; a named tuple, as it cannot take other classes.

    Attributes:
        rate: Eigenvalues per base phase, shape (M, 4, 6); only `modes` are used.
        modes: Eigenvalues with imaginary part >= 0, shape (M, 4).
        into: From the states to the amplitudes, shape (M, 4, 6, 6).
        out: From the amplitudes to the states, shape (M, 4, 6, 6) by state.
        level: What the states would settle to, shape (M, 4, 6) [V].
        last: Threshold at which a state ends, shape (2,) by state [V].
        length: Free length of a state in base phase, shape (M, 2, 2) by oscillator.
        constants: w0, Vdd, R_s, R_met, R_ins, gm.
        capacity: Capacitors of both oscillators, shape (M, 2) [F].
    """

    rate: ComplexArray
    modes: IntArray
    into: ComplexArray
    out: ComplexArray
    level: FloatArray
    last: FloatArray
    length: FloatArray
    constants: FloatArray
    capacity: FloatArray


def network_of(cell: LockCell, ratio: FloatArray, *, where: str = "") -> Network:
    """Expansion of every cell of a stage.

    Args:
        cell: Element values.
        ratio: x of every cell, shape (M,).
        where: Place for messages.

    Raises:
        RequestError: a cell is detuned beyond the trim of the card.
    """
    card, w0 = cell.card, omega(cell.card)
    capacity = capacitors_F(card, cell.rate, ratio, where=where).T
    matrix, drive = matrices(cell, capacity)
    rate, vectors = np.linalg.eig(matrix)
    rate, vectors = rate.astype(np.complex128), vectors.astype(np.complex128)
    into = np.linalg.inv(vectors)
    level = -np.linalg.solve(matrix, drive[..., None])[..., 0]
    kept = rate.imag >= 0
    order = np.argsort(~kept, axis=-1, kind="stable")
    weight = np.where(rate.imag > 0, 2.0, 1.0)
    piece = segments(card)
    shape = capacity[:, :, None] / card.c_F * piece.length_s * w0
    constants = (w0, card.vdd_V, card.r_series_ohm, card.r_met_ohm, card.r_ins_ohm)
    return Network(
        rate=np.take_along_axis(rate, order, -1),
        modes=kept.sum(axis=-1).astype(np.int64),
        into=np.ascontiguousarray(np.take_along_axis(into, order[..., None], -2)),
        out=np.ascontiguousarray(
            np.take_along_axis(weight[..., None, :] * vectors, order[..., None, :], -1)
        ),
        level=np.ascontiguousarray(level),
        last=piece.v_end_V.copy(),
        length=np.ascontiguousarray(shape),
        constants=np.array([*constants, cell.siemens]),
        capacity=np.ascontiguousarray(capacity),
    )


def matrices(cell: LockCell, capacity_F: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A and b of y' = A y + b in base phase, shapes (M, 4, 6, 6) and (M, 4, 6).

    Args:
        capacity_F: Capacitors of both oscillators, shape (M, 2).
    """
    card, w0, r = cell.card, omega(cell.card), cell.resonance
    conductance = segments(card).conductance_S
    a = np.zeros((len(capacity_F), PAIRS, STATES, STATES))
    b = np.zeros((len(capacity_F), PAIRS, STATES))
    for one in (0, 1):
        other, u = 1 - one, 2 + 2 * one
        per_farad = 1.0 / (capacity_F[:, one] * w0)
        for pair in range(PAIRS):
            state = (pair >> 1, pair & 1)[one]
            a[:, pair, one, one] = -conductance[state] * per_farad
            b[:, pair, one] = card.vdd_V / card.r_series_ohm * per_farad
            # oscillator 1 hears the tank of oscillator 2
            a[:, pair, one, 2 + 2 * other] = cell.siemens * per_farad
        a[:, :, u, one], a[:, :, u, u] = r / cell.quality, -r / cell.quality
        a[:, :, u, u + 1], a[:, :, u + 1, u] = -r, r
    return a, b
