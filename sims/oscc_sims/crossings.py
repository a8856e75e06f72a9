"""Upward crossings of a level, by inverse interpolation through four points."""

from __future__ import annotations

import numpy as np

from oscc.arrays import FloatArray


def upward(time: FloatArray, value: FloatArray, level: float) -> FloatArray:
    """Times at which a sampled waveform crosses a level upwards.

    Inverse cubic interpolation through the two points on either side; linear where
    those do not rise together (a kink).

    Args:
        time: Rising, equal times allowed, shape (points,), [s].
        value: Shape (points,).
        level: Level, in the unit of the values.

    Returns:
        Times, shape (crossings,), [s].

    Example:
        >>> t = np.linspace(0.0, 1.0, 11)
        >>> upward(t, t**2, 0.25).round(3)
        array([0.5])
    """
    below = value[:-1] < level
    places = np.nonzero(below & (value[1:] >= level))[0]
    return np.array([_one(time, value, level, int(k)) for k in places], dtype=float)


def _one(time: FloatArray, value: FloatArray, level: float, place: int) -> float:
    near = slice(max(place - 1, 0), min(place + 3, value.size))
    t, v = time[near], value[near]
    if (np.diff(v) <= 0).any() or (np.diff(t) <= 0).any():
        t, v = time[place : place + 2], value[place : place + 2]
    begin = float(time[place])
    out = 0.0
    for i in range(t.size):
        others = np.arange(t.size) != i
        weight = np.prod((level - v[others]) / (v[i] - v[others]))
        out += (float(t[i]) - begin) * float(weight)
    return begin + out
