"""The correlator: what tanks, mixers and whole periods make of two oscillators.

Each node drives, through a buffer, a parallel L-C tank tuned to the carrier,

    u(s)/V(s) = (s w0/Q) / (s^2 + s w0/Q + w0^2),   H_n = 1 / (1 + j Q (n - 1/n))

and a mixer multiplies two tanks. Over whole periods, once the tanks have settled,

    <u_a u_b> = 2 sum_{n >= 1} |v_n H_n|^2 cos(n D),   D = theta_a - theta_b

which, divided by 2 |v_1|^2, is cos D + sum_{n >= 2} r_n cos(n D): the leakage r_n of
the waveform's harmonics is the error that no dwell removes. A tank starts at rest and
its transient falls as exp(-pi N / Q) over N periods.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from oscc.arrays import ComplexArray, FloatArray
from oscc.device.card import Card
from oscc.device.piecewise import waveform_series

ORDERS = 40
"""Harmonics that are summed; the last is below 1e-6 of the first at Q >= 2."""


def tank_response(quality: float, n: npt.ArrayLike) -> ComplexArray:
    """H_n of a tuned tank at orders n >= 1, shape of n.

    Example:
        >>> complex(tank_response(5.0, 1))
        (1+0j)
    """
    order = np.asarray(n, dtype=np.float64)
    out = 1.0 / (1.0 + 1j * quality * (order - 1.0 / order))
    return np.asarray(out, dtype=np.complex128)


def leakage(card: Card, quality: float, orders: int = ORDERS) -> FloatArray:
    """r_n = |v_n H_n / v_1|^2 of harmonics 1 to `orders`, shape (orders,); r_1 = 1.

    Example:
        >>> from oscc.device import load_card
        >>> [float(r) for r in leakage(load_card("vo2-two-state-6k"), 5.0, 2).round(4)]
        [1.0, 0.0004]
    """
    n = np.arange(1, orders + 1)
    passed = np.abs(waveform_series(card, n) * tank_response(quality, n)) ** 2
    out: FloatArray = passed / np.abs(waveform_series(card, 1)) ** 2
    return out


def settling_periods(quality: float, left: float) -> int:
    """Whole periods after which a transient is below a share of its start.

        exp(-pi N / Q) <= left

    Args:
        quality: Q of the tank.
        left: Share that may be left, between 0 and 1.

    Example:
        >>> settling_periods(5.0, 1e-3)
        11
    """
    return max(0, math.ceil(-quality / math.pi * math.log(left)))
