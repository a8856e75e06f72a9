"""Several harmonics: Gragg-Bulirsch-Stoer extrapolation, each target on its own.

The modified midpoint rule has an error series in even powers of the step, so that
eight refinements with 2, 4, .. 16 steps extrapolate to order 16. Steps are halved
until two neighbouring extrapolations agree.

Source: Gragg 1965; Bulirsch and Stoer 1966; Hairer, Norsett, Wanner 1993, II.9.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from oscc.arrays import ComplexArray, FloatArray, IntArray

_LEVELS = 8
_SMALLEST = 1e-6


@njit(cache=True, nogil=True, error_model="numpy")
def _rate(terms, detuning, moved):  # type: ignore[no-untyped-def]
    """Slope of the increment; rows of terms: n, re and im of drive exp(-i n phi0)."""
    total = detuning
    for k in range(terms.shape[1]):
        angle = terms[0, k] * moved
        total += terms[2, k] * math.cos(angle) - terms[1, k] * math.sin(angle)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _midpoint(terms, detuning, start, length, count):  # type: ignore[no-untyped-def]
    """Displacement over the step; small, so that many turns cost no figures."""
    h = length / count
    before = 0.0
    now = h * _rate(terms, detuning, start)
    for _ in range(count - 1):
        slope = _rate(terms, detuning, start + now)
        before, now = now, before + 2.0 * h * slope
    # Gragg's smoothing keeps the even error series
    return 0.5 * (before + now + h * _rate(terms, detuning, start + now))


@njit(cache=True, nogil=True, error_model="numpy")
def _step(terms, detuning, start, length, table):  # type: ignore[no-untyped-def]
    """One extrapolated step: its displacement and the last correction."""
    change = 1e300
    for k in range(_LEVELS):
        table[k] = _midpoint(terms, detuning, start, length, 2 * (k + 1))
        last = table[0]
        for j in range(k, 0, -1):
            ratio = ((k + 1.0) / j) ** 2
            table[j - 1] = table[j] + (table[j] - table[j - 1]) / (ratio - 1.0)
        change = abs(table[0] - last)
        if k >= 2 and change < 1e-14:
            break
    return table[0], change


@njit(cache=True, nogil=True, error_model="numpy")
def _march(terms, detuning, tolerance, out, worst):  # type: ignore[no-untyped-def]
    table = np.empty(_LEVELS)
    for lane in range(detuning.size):
        own = terms[lane]
        size = abs(detuning[lane])
        for k in range(own.shape[1]):
            size += own[0, k] * math.hypot(own[1, k], own[2, k])
        h = min(1.0, 2.0 / max(size, 1e-300))
        tau, moved, worst[lane] = 0.0, 0.0, 0.0
        while tau < 1.0:
            h = min(h, 1.0 - tau)
            step, change = _step(own, detuning[lane], moved, h, table)
            if change > tolerance and h > _SMALLEST:
                h *= 0.5
                continue
            worst[lane] = max(worst[lane], change)
            tau = 1.0 if h >= 1.0 - tau else tau + h
            moved += step
            if change < 1e-3 * tolerance:
                h *= 1.5
        out[lane] = moved


def increment(
    phi0: FloatArray,
    drive: ComplexArray,
    harmonics: IntArray,
    detuning: FloatArray,
    *,
    tolerance: float = 1e-12,
) -> tuple[FloatArray, float]:
    """Phase increment over one dwell, unwrapped.

    Args:
        phi0: Start phases, shape (M,) [rad].
        drive: g C_n of each target, shape (M, N) [rad].
        harmonics: Orders, shape (N,).
        detuning: Detuning over the dwell, shape (M,) [rad].
        tolerance: Largest change of a step between two orders [rad].

    Returns:
        phi(1) - phi0, shape (M,) [rad], and the largest change left in a step.

    Example:
        >>> drive = np.array([[0.5 + 0j, 0.1j]])
        >>> moved, _ = increment(np.ones(1), drive, np.array([1, 2]), np.zeros(1))
        >>> moved.shape
        (1,)
    """
    turned = drive * np.exp(-1j * np.outer(phi0, harmonics))
    orders = np.broadcast_to(harmonics, turned.shape)
    terms = np.stack([orders, turned.real, turned.imag], axis=1)
    out, worst = np.empty(phi0.size), np.empty(phi0.size)
    _march(terms, np.ascontiguousarray(detuning), tolerance, out, worst)
    return out, float(worst.max(initial=0.0))
