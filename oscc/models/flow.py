"""Solution of the clamped phase flow over unit time.

    d phi / d tau = g sum_n Im(exp(-i n phi) C_n),   phi(0) = theta
    a_n, b_n = Im, Re of conj(z)^n C_n, z = exp(i theta); d = phi(1) - theta

One harmonic has a closed form; more are integrated. Derived in
docs/reference/models.md.
"""

from __future__ import annotations

import numpy as np

from oscc.arrays import FloatArray, IntArray
from oscc.checks import require_finite, require_shape
from oscc.errors import UndecidedError
from oscc.models.flow_kernels import blocks, order8_forward

TOLERANCE_RAD = 1e-10  # largest change allowed when the steps are doubled
_PER_DRIVE = 2.0  # steps of order 8 per radian of drive at the first try
_FEWEST = 6
_DOUBLINGS = 8


def drive_strength(a: FloatArray, b: FloatArray, gain: FloatArray) -> FloatArray:
    """Bound on the stiffness of every target, |g| sum_n n |C_n| [rad].

    Args:
        a: Im of conj(z)^n C_n, shape (N, ...).
        b: Re of conj(z)^n C_n, shape (N, ...).
        gain: Signed gain [rad], shape (...).

    Returns:
        Shape (...).

    Example:
        >>> float(drive_strength(np.array([3.0]), np.array([4.0]), np.array(-2.0)))
        10.0
    """
    orders = np.arange(1, len(a) + 1).reshape(-1, *[1] * (a.ndim - 1))
    return np.asarray(np.abs(gain) * (orders * np.hypot(a, b)).sum(axis=0))


def exact_increment(a: FloatArray, b: FloatArray, gain: FloatArray) -> FloatArray:
    """Increment phi(1) - theta of the flow, to 1e-9 rad.

    Args:
        a: Im of conj(z)^n C_n for n = 1..N, shape (N, ...).
        b: Re of conj(z)^n C_n, shape (N, ...).
        gain: Signed gain over the dwell [rad], shape (...).

    Returns:
        Unwrapped increment [rad], shape (...). With one harmonic it lies strictly
        inside (-pi, pi).

    Raises:
        RequestError: shapes do not fit, or a value is not finite.
        UndecidedError: doubling the steps never settles.

    Source: closed form and integrator derived in docs/reference/models.md.

    Example:
        >>> one = np.array([1.0])
        >>> float(exact_increment(one, 0 * one, np.array(0.0)))
        0.0
    """
    a, b, gain = (np.asarray(x, np.float64) for x in (a, b, gain))
    require_shape("b", b, a.shape)
    require_shape("gain", gain, a.shape[1:])
    for name, array in (("a", a), ("b", b), ("gain", gain)):
        require_finite(name, array)
    if len(a) == 1:
        return one_harmonic_increment(a[0], b[0], gain)
    flat = [(gain * part).reshape(len(a), -1) for part in (a, b)]
    return integrated_increment(flat[0], flat[1]).reshape(gain.shape)


def one_harmonic_increment(
    a: FloatArray, b: FloatArray, gain: FloatArray
) -> FloatArray:
    """Closed form of the flow with one harmonic, for any sign of the gain.

        d = 2 atan2(a' (1 - E), (R + b') + (R - b') E),  E = exp(-|g| R)
        a' = sign(g) a,  b' = sign(g) b,  R = |C|

    Written so that no sum cancels: next to the repelling phase b' = -R, and R + b'
    is then a'^2 / (R - b').

    Args:
        a: Im of conj(z) C, shape (...).
        b: Re of conj(z) C, shape (...).
        gain: Signed gain [rad], shape (...).

    Returns:
        Increment [rad], shape (...), strictly inside (-pi, pi).

    Source: derived in docs/reference/models.md.

    Example:
        >>> float(one_harmonic_increment(np.array(0.0), np.array(1.0), np.array(3.0)))
        0.0
    """
    sign = np.where(gain < 0, -1.0, 1.0)
    a, b = sign * a, sign * b
    radius = np.hypot(a, b)
    far = radius + np.abs(b)
    with np.errstate(invalid="ignore", divide="ignore"):
        near = np.where(far > 0, a * (a / far), 0.0)
    plus, minus = np.where(b < 0, near, far), np.where(b < 0, far, near)
    strength = np.abs(gain) * radius
    upper = -a * np.expm1(-strength)
    lower = plus + minus * np.exp(-strength)
    return np.asarray(2.0 * np.arctan2(upper, lower))


def integrated_increment(a: FloatArray, b: FloatArray) -> FloatArray:
    """Increment of d' = sum_n A_n cos(n d) - B_n sin(n d), d(0) = 0, by order 8.

    Every target's steps are doubled until its result changes by less than 1e-10 rad;
    the finer result is returned.

    Args:
        a: A_n = g a_n, shape (N, targets).
        b: B_n = g b_n, shape (N, targets).

    Returns:
        Shape (targets,) [rad].

    Raises:
        UndecidedError: a target does not settle.

    Example:
        >>> still = integrated_increment(np.zeros((2, 1)), np.ones((2, 1)))
        >>> still.tolist()
        [0.0]
    """
    lipschitz = drive_strength(a, b, np.ones(a.shape[1]))
    counts = np.maximum(_FEWEST, np.ceil(_PER_DRIVE * lipschitz)).astype(np.int64)
    result = _solve(a, b, counts)
    open_lanes = np.arange(a.shape[1])
    for _ in range(_DOUBLINGS):
        counts = 2 * counts
        finer = _solve(a[:, open_lanes], b[:, open_lanes], counts)
        change = np.abs(finer - result[open_lanes])
        result[open_lanes] = finer
        # rounding grows with the number of steps and the size of the increment
        unsettled = change > TOLERANCE_RAD * (1.0 + np.abs(finer))
        open_lanes, counts = open_lanes[unsettled], counts[unsettled]
        if not len(open_lanes):
            return result
    worst = float(lipschitz[open_lanes].max())
    raise UndecidedError(
        f"The flow of {len(open_lanes)} targets does not settle to "
        f"{TOLERANCE_RAD:g} rad (largest drive {worst:.3g} rad)."
    )


def _solve(a: FloatArray, b: FloatArray, counts: IntArray) -> FloatArray:
    if not a.shape[1]:
        return np.zeros(0)
    order, starts, steps = blocks(counts)
    contiguous = np.ascontiguousarray(a), np.ascontiguousarray(b)
    return np.asarray(order8_forward(*contiguous, order, starts, steps))
