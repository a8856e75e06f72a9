"""Read-out of a lock cell: what is decided from its crossings, and with what margin.

Hardware reads the phase difference psi of the two oscillators from the times of their
upward crossings, at the last crossing of the dwell, and keeps one flag: whether psi
ever passed pi/2. From psi = 0 a pair that locks never passes it, a pair that slips
always does. Read so, the cosine is the best of four read-outs compared in
docs/reference/lock.md.

What a pair of detuning x should show is worked out from the time that the law
dpsi/ds = x - sin psi takes to reach an angle, with h = psi/2 and q = sqrt(|1 - x^2|):

    s = (2/q) atanh(q sin h / (x cos h - sin h))      x < 1
    s = (2/q) atan2(q sin h, x cos h - sin h)         x > 1, and 2 pi/q for each turn

which is not how the phase engine finds psi (`lock_law`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from oscc.arrays import BoolArray, FloatArray
from oscc.checks import require_positive
from oscc.ir.lock import LOCKED, SLIPPING, UNDECIDED, LockReading

SETTLED = 0.01
"""A cosine this near to its limit counts as settled."""

_HALVINGS = 64  # a bracket of order one shrinks below the last bit of a double


def elapsed_rad(psi_rad: npt.ArrayLike, ratio: npt.ArrayLike) -> FloatArray:
    """Time K t that a pair takes from 0 to a phase difference, [rad], shape (...).

    Args:
        psi_rad: Unwrapped phase difference >= 0, [rad], shape (...).
        ratio: Detuning over lock range, x >= 0, shape (...).

    Returns:
        K t; infinite where the pair locks before it gets there.

    Example:
        >>> elapsed_rad([0.1, 0.7], 0.6).round(3).tolist()
        [0.182, inf]
    """
    psi, x = np.broadcast_arrays(
        np.asarray(psi_rad, dtype=np.float64), np.asarray(ratio, dtype=np.float64)
    )
    turns = np.floor(psi / (2.0 * np.pi))
    half = 0.5 * psi - np.pi * turns
    up, along = np.sin(half), x * np.cos(half) - np.sin(half)
    q = np.sqrt(np.abs((1.0 - x) * (1.0 + x)))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(along > 0.0, q * up / along, 1.0)
        beyond = (share >= 1.0) & (up > 0.0) | (turns > 0)
        slow = np.where(beyond, np.inf, 2.0 * np.arctanh(np.minimum(share, 1.0)) / q)
        fast = 2.0 * (np.arctan2(q * up, along) + np.pi * turns) / q
        edge = np.where((along > 0.0) & (turns == 0), 2.0 * up / along, np.inf)
    found = np.where(x > 1.0, fast, slow)
    return np.asarray(np.where(q > 0.0, found, edge), dtype=np.float64)


def ratio_of(psi_rad: npt.ArrayLike, lock_rad: npt.ArrayLike) -> FloatArray:
    """The x that brings a pair from 0 to a phase difference in a time K t.

    psi grows with x at every time, between (x - 1) K t and x K t.

    Args:
        psi_rad: Unwrapped phase difference, any sign, [rad], shape (...).
        lock_rad: K t > 0, [rad], shape (...).

    Returns:
        x, shape (...), an odd function of psi.

    Example:
        >>> ratio_of([0.2, -9.0], elapsed_rad([0.2, 9.0], [0.7, 1.4])).round(9).tolist()
        [0.7, -1.4]
    """
    psi, dwell = np.broadcast_arrays(
        np.asarray(psi_rad, dtype=np.float64), np.asarray(lock_rad, dtype=np.float64)
    )
    size = np.abs(psi)
    low = size / dwell
    high = 1.0 + low
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        slower = elapsed_rad(size, middle) > dwell
        low = np.where(slower, middle, low)
        high = np.where(slower, high, middle)
    return np.asarray(np.copysign(0.5 * (low + high), psi), dtype=np.float64)


def least_coherence(lock_rad: float) -> float:
    """Cosine that a pair must show at the end of a dwell to count as locked.

    sqrt(1 - x^2) of the largest x whose cosine is settled to `SETTLED` by then.

    Args:
        lock_rad: K t of the dwell, > 0, [rad].

    Raises:
        RequestError: not above zero.

    Example:
        >>> round(least_coherence(12.6), 2)
        0.3
    """
    require_positive("lock_rad", lock_rad, unit="rad")

    def settled(x: float) -> bool:
        shown = np.sqrt((1.0 - x) * (1.0 + x)) + SETTLED
        return shown >= 1.0 or float(elapsed_rad(np.arccos(shown), x)) <= lock_rad

    low, high = 0.0, 1.0
    if settled(high):
        return 0.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if settled(middle):
            low = middle
        else:
            high = middle
    return float(np.sqrt((1.0 - low) * (1.0 + low)))


def decide(
    psi_rad: npt.ArrayLike,
    passed: npt.ArrayLike,
    lock_rad: float,
    *,
    read_rad: npt.ArrayLike | None = None,
) -> LockReading:
    """Decide every cell from its phase difference and its flag.

    Args:
        psi_rad: Unwrapped phase difference at the end, [rad], shape (M,).
        passed: Whether |psi| was ever above pi/2, shape (M,).
        lock_rad: K t of the whole dwell, [rad]; sets the least cosine.
        read_rad: K t up to the moment of reading, shape (M,); the whole dwell if not
            given. The margin is found with it.

    Raises:
        RequestError: the dwell is not above zero.

    Example:
        >>> seen = decide([0.6, 1.5, 9.0], [False, False, True], 12.6)
        >>> seen.locked.tolist(), seen.coherence.round(2).tolist()
        ([1, -1, 0], [0.83, 0.07, 0.0])
    """
    psi = np.asarray(psi_rad, dtype=np.float64)
    slips: BoolArray = np.asarray(passed, dtype=np.bool_)
    least = least_coherence(lock_rad)
    cosine = np.where(slips, 0.0, np.cos(psi))
    locked = np.where(slips, SLIPPING, np.where(cosine >= least, LOCKED, UNDECIDED))
    time = lock_rad if read_rad is None else read_rad
    margin = 1.0 - np.abs(ratio_of(psi, time))
    return LockReading(locked.astype(np.int8), cosine, margin, psi)


def phase_difference_at(first: FloatArray, second: FloatArray) -> FloatArray:
    """Unwrapped phase difference at every crossing of oscillator 1, [rad].

        psi = 2 pi (n_1 - n_2)

    n counts the upward crossings from the start of the dwell, at which both
    oscillators were alike; between two crossings n_2 grows evenly with time.

    Args:
        first: Times of the upward crossings of oscillator 1, ascending, shape (A,).
        second: The same of oscillator 2, in the same unit, shape (B,).

    Returns:
        Shape (A,); NaN before the first and after the last crossing of oscillator 2.

    Example:
        >>> phase_difference_at(np.array([1.0, 2.0]), np.array([1.0, 2.5])).round(3)
        array([0.   , 2.094])
    """
    count = np.interp(first, second, np.arange(second.size), left=np.nan, right=np.nan)
    turns = np.arange(first.size) - count
    return np.asarray(2.0 * np.pi * turns, dtype=np.float64)


def read_crossings(
    first: FloatArray, second: FloatArray, end: float
) -> tuple[float, bool, float] | None:
    """Phase difference at the last crossing of oscillator 1 in a dwell, flag, time.

    Args:
        first: Times of the upward crossings of oscillator 1, shape (A,).
        second: The same of oscillator 2; at least one beyond the last of `first`
            within the dwell, shape (B,).
        end: End of the dwell, in the same unit.

    Returns:
        psi [rad], whether |psi| ever was above pi/2 up to there, and the time of
        reading; None where a crossing is missing.

    Example:
        >>> read_crossings(np.array([1.0, 2.0]), np.array([1.0, 2.0, 3.0]), 2.5)
        (0.0, False, 2.0)
    """
    seen = first[first <= end]
    if not seen.size or not second.size:
        return None
    psi = phase_difference_at(seen, second)
    if not np.isfinite(psi[-1]):
        return None
    passed = bool(np.nanmax(np.abs(psi)) > 0.5 * np.pi)
    return float(psi[-1]), passed, float(seen[-1])
