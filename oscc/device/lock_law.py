"""The lock law in closed form: what a pair of mutually coupled cells does in a dwell.

A pair of detuning Delta and lock range K obeys, with x = Delta/K and s = K t,

    dpsi/ds = x - sin psi,        psi(0) = 0

Here `ratio` is x, and `lock_rad` is the whole dwell K t, that is 2 pi P K/omega for P
periods. With w = tan(psi/2), q = sqrt(|1 - x^2|) and z = q s/2 the solution is

    w = x T / (1 + T),    T = tanh(z)/q for x < 1,  s/2 for x = 1,  tan(z)/q for x > 1

and psi grows by 2 pi whenever z grows by pi. Derivation: docs/reference/lock.md.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from oscc.arrays import FloatArray
from oscc.checks import require_finite, require_positive
from oscc.errors import RequestError

SETTLED = 0.01
"""A cosine this near to its limit counts as settled."""

_HALVINGS = 64  # a bracket of order one shrinks below the last bit of a double
_LONGEST_RAD = 1e9


def phase_difference_rad(ratio: npt.ArrayLike, lock_rad: npt.ArrayLike) -> FloatArray:
    """Phase difference psi after a dwell that began at psi = 0, unwrapped, [rad].

    Args:
        ratio: Detuning over lock range, x, any sign, shape (...).
        lock_rad: Lock range times time, K t >= 0, [rad], shape (...).

    Returns:
        psi, an odd function of x, in the broadcast shape.

    Source: the law of the module, tested against an integrator.

    Example:
        >>> psi = phase_difference_rad([0.6, 1.2], 100.0)
        >>> round(float(np.cos(psi[0])), 6), int(psi[1] // (2 * np.pi))
        (0.8, 10)
    """
    x, s = np.broadcast_arrays(
        np.asarray(ratio, dtype=np.float64), np.asarray(lock_rad, dtype=np.float64)
    )
    size = np.abs(x)
    q = np.sqrt(np.abs((1.0 - size) * (1.0 + size)))
    z = 0.5 * q * s
    slips = size > 1.0
    half = np.where(slips, _turning(size, q, z), _settling(size, q, z, 0.5 * s))
    return np.asarray(np.copysign(2.0 * half, x), dtype=np.float64)


def _settling(
    x: FloatArray, q: FloatArray, z: FloatArray, limit: FloatArray
) -> FloatArray:
    """psi/2 for x <= 1; `limit` is what T tends to where q vanishes."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(q > 0.0, np.tanh(z) / q, limit)
    return np.asarray(np.arctan(x * t / (1.0 + t)), dtype=np.float64)


def _turning(x: FloatArray, q: FloatArray, z: FloatArray) -> FloatArray:
    """psi/2 for x > 1: a half turn for every half turn of z."""
    turns = np.floor(z / np.pi)
    rest = z - np.pi * turns
    angle = np.arctan2(x * np.sin(rest), q * np.cos(rest) + np.sin(rest))
    return np.asarray(angle + np.pi * turns, dtype=np.float64)


def settling_error(ratio: npt.ArrayLike, lock_rad: float) -> FloatArray:
    """Excess of cos psi after a dwell over its limit sqrt(1 - x^2), |x| <= 1.

    Shape (...). Never negative, as psi comes from below. At x = 1 it is
    2(1 + Kt)/(1 + (1 + Kt)^2).

    Example:
        >>> round(float(settling_error(1.0, 12.6)), 3)
        0.146
    """
    x = np.abs(np.asarray(ratio, dtype=np.float64))
    limit = np.sqrt(np.maximum((1.0 - x) * (1.0 + x), 0.0))
    return np.asarray(np.cos(phase_difference_rad(x, lock_rad)) - limit)


def x_settled(lock_rad: float) -> float:
    """Largest x whose cosine is settled to `SETTLED` after a dwell, 1 if all are.

    Args:
        lock_rad: K t of the dwell, > 0, [rad].

    Raises:
        RequestError: not above zero.

    Example:
        >>> round(x_settled(12.6), 3)
        0.955
    """
    _require_dwell(lock_rad)
    if float(settling_error(1.0, lock_rad)) <= SETTLED:
        return 1.0
    low, high = 0.0, 1.0  # the error grows with x
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if float(settling_error(middle, lock_rad)) > SETTLED:
            high = middle
        else:
            low = middle
    return low


def slip_time_rad(ratio: float) -> float:
    """K t at which a pair passes pi/2, from 0, [rad]; infinite for x <= 1.

        K t = (2/q) atan(sqrt((x + 1)/(x - 1)))

    Example:
        >>> round(float(phase_difference_rad(1.5, slip_time_rad(1.5))) / np.pi, 12)
        0.5
    """
    x = float(ratio)
    if not x > 1.0:
        return math.inf
    q = math.sqrt((x - 1.0) * (x + 1.0))
    return 2.0 / q * math.atan2(x + 1.0, q)


def x_slipped(lock_rad: float) -> float:
    """Smallest x above 1 that has passed pi/2 after a dwell, so that it surely slips.

    Args:
        lock_rad: K t of the dwell, > 0, [rad].

    Raises:
        RequestError: not above zero.

    Example:
        >>> round(x_slipped(12.6), 3)
        1.026
    """
    _require_dwell(lock_rad)
    low, high = 0.0, 0.5 * np.pi / lock_rad + 1.0  # of x - 1: psi > (x - 1) K t
    for _ in range(2 * _HALVINGS):
        middle = 0.5 * (low + high)
        if middle > 0.0 and slip_time_rad(1.0 + middle) <= lock_rad:
            high = middle
        else:
            low = middle
        if 1.0 + low == 1.0 + high:
            break
    return float(1.0 + high)


def least_coherence(lock_rad: float) -> float:
    """Cosine that a pair must show at the end of a dwell to count as locked.

        sqrt(1 - x_settled^2)

    A pair that has not passed pi/2 and shows less is undecided.

    Example:
        >>> round(least_coherence(12.6), 2)
        0.3
    """
    edge = x_settled(lock_rad)
    return math.sqrt((1.0 - edge) * (1.0 + edge))


def lock_rad_for(margin: float) -> float:
    """Shortest dwell K t that decides every pair with | |x| - 1 | >= margin, [rad].

    Decided means settled to `SETTLED` below the edge and past pi/2 above it.

    Args:
        margin: Distance from the edge in units of the lock range, between 0 and 1.

    Raises:
        RequestError: a margin out of range, or one that no dwell below 1e9 decides.

    Example:
        >>> round(lock_rad_for(0.045), 1)
        12.6
    """
    if not 0.0 < margin < 1.0:
        raise RequestError(
            f"Argument `margin` must lie between 0 and 1, but is {margin!r}: it is "
            "the distance from the edge of the lock range, in units of that range."
        )

    def decided(dwell: float) -> bool:
        settled = float(settling_error(1.0 - margin, dwell)) <= SETTLED
        return settled and slip_time_rad(1.0 + margin) <= dwell

    low, high = 0.0, 1.0
    while not decided(high):
        low, high = high, 2.0 * high
        if high > _LONGEST_RAD:
            raise RequestError(
                f"Argument `margin` is {margin!r}: no dwell decides so close to the "
                "edge. Ask for a larger margin."
            )
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if decided(middle):
            high = middle
        else:
            low = middle
    return high


def _require_dwell(lock_rad: float) -> None:
    require_positive("lock_rad", lock_rad, unit="rad")
    require_finite("lock_rad", np.asarray(lock_rad))
