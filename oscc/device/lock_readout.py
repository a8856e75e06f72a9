"""Read-out of a lock cell: what is decided from its crossings, and with what margin.

Hardware reads the phase difference psi of the two oscillators from the times of their
upward crossings, at the last crossing of the dwell, and keeps one flag: whether psi
ever passed pi/2. From psi = 0 a pair that locks never passes it, a pair that slips
always does. Read so, the cosine is the best of four read-outs compared in
docs/reference/lock.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from oscc.arrays import BoolArray, FloatArray
from oscc.device.lock_law import least_coherence, ratio_of

LOCKED, SLIPPING, UNDECIDED = 1, 0, -1
"""What `LockReading.locked` holds."""


@dataclass(frozen=True, slots=True, eq=False)
class LockReading:
    """What was read of lock cells, arrays of shape (M,).

    Attributes:
        locked: 0 where psi passed pi/2, so that the pair slips; else 1 where the cosine
            is at least `least_coherence` of the dwell; else -1, undecided. int8.
        coherence: cos psi at the end; 0 where psi ever passed pi/2. Of an undecided
            cell it is an upper bound of the settled one.
        margin: 1 - |x|, with x the detuning over the lock range that the law of
            `lock_law` needs to bring psi to where it is at the end of the dwell. Above
            zero the pair locks with that share of its lock range to spare, below zero
            it slips. The phase engine returns what was programmed; of a circuit it is
            a measurement, with the circuit's own law error in it.
        psi_rad: Phase difference at the end, unwrapped.
    """

    locked: npt.NDArray[np.int8]
    coherence: FloatArray
    margin: FloatArray
    psi_rad: FloatArray


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
