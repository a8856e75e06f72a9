"""Compiled loops of the phase flow, over blocks of lanes.

One lane is one target: d' = sum_n A_n cos(n d) - B_n sin(n d), d(0) = 0, over unit
time, with A_n = g a_n, B_n = g b_n. Lanes of the same number of steps are gathered in
blocks, so that the inner loops run over lanes and use vector instructions.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from numba import njit

from oscc.arrays import FloatArray, IntArray

BLOCK = 64
_FLAGS: dict[str, Any] = {
    "error_model": "numpy",
    "cache": True,
    "fastmath": {"contract"},
}

# sin and cos of |y| <= pi/2 by their power series, cut below 1e-16
_SIN = np.array(
    [(-1.0) ** i / float(np.prod(np.arange(1.0, 2 * i + 2))) for i in range(11)]
)
_COS = np.array(
    [(-1.0) ** i / float(np.prod(np.arange(1.0, 2 * i + 1))) for i in range(11)]
)
_TURN = 2.0 * np.pi
_TURN_LOW = 2.4492935982947064e-16  # 2 pi minus its double


@njit(**_FLAGS)
def _sine_cosine(d, cosine, sine):  # type: ignore[no-untyped-def]
    """Both functions of every lane, without branches: half angle, then doubled."""
    for lane in range(BLOCK):
        turns = np.floor(d[lane] / _TURN + 0.5)
        y = 0.5 * ((d[lane] - turns * _TURN) - turns * _TURN_LOW)
        x = y * y
        s = _SIN[10]
        c = _COS[10]
        for i in range(9, -1, -1):
            s = s * x + _SIN[i]
            c = c * x + _COS[i]
        s = s * y
        cosine[lane] = 1.0 - 2.0 * s * s
        sine[lane] = 2.0 * s * c


@njit(**_FLAGS)
def _rate(a, b, cosine, sine, cn, sn, out):  # type: ignore[no-untyped-def]
    """Set out = sum_n A_n cos(n d) - B_n sin(n d) from cos d and sin d."""
    for lane in range(BLOCK):
        cn[lane] = cosine[lane]
        sn[lane] = sine[lane]
        out[lane] = a[0, lane] * cosine[lane] - b[0, lane] * sine[lane]
    for n in range(1, a.shape[0]):
        for lane in range(BLOCK):
            c = cn[lane] * cosine[lane] - sn[lane] * sine[lane]
            s = sn[lane] * cosine[lane] + cn[lane] * sine[lane]
            cn[lane] = c
            sn[lane] = s
            out[lane] += a[n, lane] * c - b[n, lane] * s


@njit(**_FLAGS)
def _gather(a, b, lanes, block_a, block_b):  # type: ignore[no-untyped-def]
    block_a[:] = 0.0
    block_b[:] = 0.0
    for n in range(a.shape[0]):
        for i in range(lanes.shape[0]):
            block_a[n, i] = a[n, lanes[i]]
            block_b[n, i] = b[n, lanes[i]]


@njit(**_FLAGS)
def _stage_points(a, b, d, step, y, cs, sn, work):  # type: ignore[no-untyped-def]
    """The four Runge-Kutta points of one step: y, their cos and sin; d moves on."""
    for lane in range(BLOCK):
        y[0, lane] = d[lane]
        work[3, lane] = 0.0
    for stage in range(4):
        _sine_cosine(y[stage], cs[stage], sn[stage])
        _rate(a, b, cs[stage], sn[stage], work[0], work[1], work[2])
        weight = step / 6.0 if stage in (0, 3) else step / 3.0
        reach = step if stage == 2 else 0.5 * step
        for lane in range(BLOCK):
            work[3, lane] += weight * work[2, lane]
        if stage < 3:
            for lane in range(BLOCK):
                y[stage + 1, lane] = d[lane] + reach * work[2, lane]
    for lane in range(BLOCK):
        d[lane] += work[3, lane]


@njit(**_FLAGS)
def rk4_forward(a, b, order, starts, steps):  # type: ignore[no-untyped-def]
    """Increment d(1) of every lane by RK4 with the block's number of steps."""
    harmonics = a.shape[0]
    out = np.empty(a.shape[1])
    block_a, block_b = np.empty((harmonics, BLOCK)), np.empty((harmonics, BLOCK))
    d, work = np.empty(BLOCK), np.empty((4, BLOCK))
    y, cs, sn = np.empty((4, BLOCK)), np.empty((4, BLOCK)), np.empty((4, BLOCK))
    for block in range(steps.shape[0]):
        lanes = order[starts[block] : starts[block + 1]]
        _gather(a, b, lanes, block_a, block_b)
        d[:] = 0.0
        for _ in range(steps[block]):
            _stage_points(block_a, block_b, d, 1.0 / steps[block], y, cs, sn, work)
        for i in range(lanes.shape[0]):
            out[lanes[i]] = d[i]
    return out


@njit(**_FLAGS)
def _add_gradient(n_count, cosine, sine, weight, cn, sn, grad_a, grad_b):  # type: ignore[no-untyped-def]
    """grad_A_n += weight cos(n y), grad_B_n -= weight sin(n y)."""
    for lane in range(BLOCK):
        cn[lane] = cosine[lane]
        sn[lane] = sine[lane]
        grad_a[0, lane] += weight[lane] * cosine[lane]
        grad_b[0, lane] -= weight[lane] * sine[lane]
    for n in range(1, n_count):
        for lane in range(BLOCK):
            c = cn[lane] * cosine[lane] - sn[lane] * sine[lane]
            s = sn[lane] * cosine[lane] + cn[lane] * sine[lane]
            cn[lane] = c
            sn[lane] = s
            grad_a[n, lane] += weight[lane] * c
            grad_b[n, lane] -= weight[lane] * s


@njit(**_FLAGS)
def _slope(a, b, cosine, sine, cn, sn, out):  # type: ignore[no-untyped-def]
    """Set out = d rate / d d = sum_n -n (A_n sin(n d) + B_n cos(n d))."""
    for lane in range(BLOCK):
        cn[lane] = cosine[lane]
        sn[lane] = sine[lane]
        out[lane] = -(a[0, lane] * sine[lane] + b[0, lane] * cosine[lane])
    for n in range(1, a.shape[0]):
        for lane in range(BLOCK):
            c = cn[lane] * cosine[lane] - sn[lane] * sine[lane]
            s = sn[lane] * cosine[lane] + cn[lane] * sine[lane]
            cn[lane] = c
            sn[lane] = s
            out[lane] -= (n + 1.0) * (a[n, lane] * s + b[n, lane] * c)


@njit(**_FLAGS)
def _step_adjoint(a, b, step, cs, sn, adjoint, work, grad_a, grad_b):  # type: ignore[no-untyped-def]
    """Adjoint of one RK4 step: dL/dd goes from the step's end to its start."""
    for lane in range(BLOCK):
        work[3, lane] = 0.0  # pull of the later stage
        work[4, lane] = 0.0  # sum of all pulls
    for stage in range(3, -1, -1):
        weight = step / 6.0 if stage in (0, 3) else step / 3.0
        reach = step if stage == 2 else 0.5 * step
        for lane in range(BLOCK):
            work[5, lane] = weight * adjoint[lane] + reach * work[3, lane]
        _add_gradient(
            a.shape[0], cs[stage], sn[stage], work[5], work[0], work[1], grad_a, grad_b
        )
        _slope(a, b, cs[stage], sn[stage], work[0], work[1], work[2])
        for lane in range(BLOCK):
            work[3, lane] = work[5, lane] * work[2, lane]
            work[4, lane] += work[3, lane]
    for lane in range(BLOCK):
        adjoint[lane] += work[4, lane]


@njit(**_FLAGS)
def rk4_adjoint(a, b, order, starts, steps, grad_out):  # type: ignore[no-untyped-def]
    """Gradients with respect to A and B of the discrete RK4 solution."""
    harmonics = a.shape[0]
    out_a, out_b = np.empty_like(a), np.empty_like(b)
    block_a, block_b = np.empty((harmonics, BLOCK)), np.empty((harmonics, BLOCK))
    grad_a, grad_b = np.empty((harmonics, BLOCK)), np.empty((harmonics, BLOCK))
    d, adjoint, work = np.empty(BLOCK), np.empty(BLOCK), np.empty((6, BLOCK))
    y = np.empty((4, BLOCK))
    most = steps.max()
    cs, sn = np.empty((most, 4, BLOCK)), np.empty((most, 4, BLOCK))
    for block in range(steps.shape[0]):
        lanes = order[starts[block] : starts[block + 1]]
        _gather(a, b, lanes, block_a, block_b)
        count, step = steps[block], 1.0 / steps[block]
        d[:] = 0.0
        adjoint[:] = 0.0
        grad_a[:] = 0.0
        grad_b[:] = 0.0
        for i in range(count):
            _stage_points(block_a, block_b, d, step, y, cs[i], sn[i], work)
        for i in range(lanes.shape[0]):
            adjoint[i] = grad_out[lanes[i]]
        for i in range(count - 1, -1, -1):
            _step_adjoint(
                block_a, block_b, step, cs[i], sn[i], adjoint, work, grad_a, grad_b
            )
        for n in range(harmonics):
            for i in range(lanes.shape[0]):
                out_a[n, lanes[i]] = grad_a[n, i]
                out_b[n, lanes[i]] = grad_b[n, i]
    return out_a, out_b


def _cooper_verner() -> tuple[FloatArray, FloatArray]:
    """Stage and final weights of the 11-stage method of order 8.

    Source: Cooper and Verner 1972, as tabled in Hairer, Norsett, Wanner, Solving
    Ordinary Differential Equations I, section II.5; its order is tested.
    """
    r = sqrt(21.0)
    rows: list[dict[int, float]] = [
        {},
        {0: 1 / 2},
        {0: 1 / 4, 1: 1 / 4},
        {0: 1 / 7, 1: (-7 - 3 * r) / 98, 2: (21 + 5 * r) / 49},
        {0: (11 + r) / 84, 2: (18 + 4 * r) / 63, 3: (21 - r) / 252},
        {
            0: (5 + r) / 48,
            2: (9 + r) / 36,
            3: (-231 + 14 * r) / 360,
            4: (63 - 7 * r) / 80,
        },
        {
            0: (10 - r) / 42,
            2: (-432 + 92 * r) / 315,
            3: (633 - 145 * r) / 90,
            4: (-504 + 115 * r) / 70,
            5: (63 - 13 * r) / 35,
        },
        {0: 1 / 14, 4: (14 - 3 * r) / 126, 5: (13 - 3 * r) / 63, 6: 1 / 9},
        {
            0: 1 / 32,
            4: (91 - 21 * r) / 576,
            5: 11 / 72,
            6: (-385 - 75 * r) / 1152,
            7: (63 + 13 * r) / 128,
        },
        {
            0: 1 / 14,
            4: 1 / 9,
            5: (-733 - 147 * r) / 2205,
            6: (515 + 111 * r) / 504,
            7: (-51 - 11 * r) / 56,
            8: (132 + 28 * r) / 245,
        },
        {
            4: (-42 + 7 * r) / 18,
            5: (-18 + 28 * r) / 45,
            6: (-273 - 53 * r) / 72,
            7: (301 + 53 * r) / 72,
            8: (28 - 28 * r) / 45,
            9: (49 - 7 * r) / 18,
        },
    ]
    stages = np.zeros((11, 11))
    for i, row in enumerate(rows):
        for j, value in row.items():
            stages[i, j] = value
    final = np.zeros(11)
    final[[0, 7, 8, 9, 10]] = 1 / 20, 49 / 180, 16 / 45, 49 / 180, 1 / 20
    return stages, final


STAGES, FINAL = _cooper_verner()


@njit(**_FLAGS)
def _add_rates(y, step, weights, count, rates):  # type: ignore[no-untyped-def]
    """Add to y the step times the weighted sum of the first `count` rates."""
    for j in range(count):
        weight = step * weights[j]
        if weight != 0.0:
            for lane in range(BLOCK):
                y[lane] += weight * rates[j, lane]


@njit(**_FLAGS)
def order8_forward(a, b, order, starts, steps):  # type: ignore[no-untyped-def]
    """Increment d(1) of every lane by the order 8 method, block by block."""
    harmonics = a.shape[0]
    out = np.empty(a.shape[1])
    block_a, block_b = np.empty((harmonics, BLOCK)), np.empty((harmonics, BLOCK))
    d, y, work = np.empty(BLOCK), np.empty(BLOCK), np.empty((4, BLOCK))
    rates = np.empty((11, BLOCK))
    for block in range(steps.shape[0]):
        lanes = order[starts[block] : starts[block + 1]]
        _gather(a, b, lanes, block_a, block_b)
        step = 1.0 / steps[block]
        d[:] = 0.0
        for _ in range(steps[block]):
            for i in range(11):
                y[:] = d
                _add_rates(y, step, STAGES[i], i, rates)
                _sine_cosine(y, work[0], work[1])
                _rate(block_a, block_b, work[0], work[1], work[2], work[3], rates[i])
            _add_rates(d, step, FINAL, 11, rates)
        for i in range(lanes.shape[0]):
            out[lanes[i]] = d[i]
    return out


def blocks(counts: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Lanes of equal number of steps, cut into blocks.

    Numbers of steps are rounded up to a few rungs, four to an octave, so that blocks
    fill; a lane's own number says its rung. What a lane gives does therefore not depend
    on its neighbours: no token on later ones, no window on the rest of its batch.

    Args:
        counts: Fewest steps of each lane, shape (lanes,), >= 1.

    Returns:
        Order of the lanes, start of every block in that order (one more than
        blocks), and steps of every block.

    Example:
        >>> blocks(np.array([9, 8, 8]))[2].tolist()
        [8, 10]
    """
    rungs = _rungs(counts)
    order = np.argsort(rungs, kind="stable")
    steps, sizes = np.unique(rungs, return_counts=True)
    whole = -(-sizes // BLOCK)  # blocks of each rung
    first = np.repeat(np.cumsum(sizes) - sizes, whole)
    place = np.arange(whole.sum()) - np.repeat(np.cumsum(whole) - whole, whole)
    starts = np.append(first + BLOCK * place, len(counts))
    return order, starts, np.repeat(steps, whole)


def _rungs(counts: IntArray) -> IntArray:
    """Least m 2^e, m = 4 to 7, that is not below the count; counts below 4 as they are.

    Example:
        >>> _rungs(np.array([3, 8, 9, 11, 17])).tolist()
        [3, 8, 10, 12, 20]
    """
    octave = np.maximum(np.frexp(counts.astype(np.float64))[1] - 3, 0)
    rung = -(-counts >> octave) << octave
    out: IntArray = rung.astype(np.int64)
    return out
