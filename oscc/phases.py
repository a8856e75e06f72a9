"""Arithmetic of angles: wrapping, circular distance, order parameter."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from oscc.arrays import FloatArray

TURN = 2.0 * np.pi


def wrap(phase: npt.ArrayLike) -> FloatArray:
    """Angle in (-pi, pi] that differs by whole turns.

    Example:
        >>> float(wrap(3 * np.pi))
        3.141592653589793
    """
    angle = np.asarray(phase, dtype=np.float64)
    return np.asarray(np.pi - np.mod(np.pi - angle, TURN), dtype=np.float64)


def circular_distance(left: npt.ArrayLike, right: npt.ArrayLike) -> FloatArray:
    """Shortest angle between two phases, in [0, pi].

    Example:
        >>> round(float(circular_distance(3.13, -3.13)), 4)
        0.0232
    """
    return np.abs(wrap(np.asarray(left, float) - np.asarray(right, float)))


def order_parameter(phase: npt.ArrayLike, axis: int = -1) -> npt.NDArray[np.complex128]:
    """Complex mean of e^{i phase} along an axis; its modulus is R.

    Source: Kuramoto 1975.

    Example:
        >>> round(float(abs(order_parameter([0.0, np.pi]))), 12)
        0.0
    """
    return np.asarray(np.exp(1j * np.asarray(phase, float)).mean(axis=axis))
