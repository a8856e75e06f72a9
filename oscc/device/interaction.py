"""Native pair interaction: what a plain resistor or capacitor between nodes does.

A source node at phase theta = phi + delta sends (v_source - v_target) / R through a
resistor, or C_c d(v_source - v_target)/dt through a capacitor. Averaged over a period,
the target's phase then moves at the rate H(delta) times the conductance or capacitance.
Derivation: docs/reference/physics.md.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from oscc.arrays import ComplexArray, FloatArray
from oscc.checks import require_choice
from oscc.device.card import Card
from oscc.device.piecewise import omega, waveform_series
from oscc.device.ppv import ppv_series

KINDS = ("resistive", "capacitive")
ORDERS = 512
"""Harmonics kept in `interaction`; coefficients fall as 1/n^3 (n^2 if capacitive)."""


def interaction_series(card: Card, n: npt.ArrayLike, kind: str) -> ComplexArray:
    """Two-sided coefficients of the pair interaction, source part.

        H_n = conj(Gamma_n) v_n                  resistive, [rad V/C]: times S is rad/s
        H_n = i n omega conj(Gamma_n) v_n        capacitive, [rad V/(C s)]: times F

    Args:
        n: Orders, any sign, shape (...).
        kind: `resistive` or `capacitive`.

    Raises:
        RequestError: an unknown kind.

    Example:
        >>> from oscc.device import load_card
        >>> h = interaction_series(load_card("vo2-two-state-20k"), [1, 2], "resistive")
        >>> round(float(abs(h[1] / h[0])), 3)
        0.412
    """
    require_choice("kind", kind, KINDS)
    order = np.asarray(n, dtype=np.float64)
    series = np.conj(ppv_series(card, order)) * waveform_series(card, order)
    if kind == "capacitive":
        series = 1j * order * omega(card) * series
    return np.asarray(series, dtype=np.complex128)


def interaction(
    card: Card, delta_rad: npt.ArrayLike, kind: str, *, orders: int = ORDERS
) -> FloatArray:
    """Pair interaction with its self term: H(delta) - H(0).

        H(delta) = sum_n H_n e^{i n delta},  delta = theta_source - phi_target

    The target's own voltage sits at the other end of the element, hence - H(0): two
    equal nodes exchange nothing.

    Args:
        delta_rad: Source phase minus target phase, [rad], shape (...).
        kind: `resistive` (rate per siemens) or `capacitive` (rate per farad).
        orders: Harmonics kept.

    Returns:
        Phase velocity of the target per unit of coupling, shape (...).

    Raises:
        RequestError: an unknown kind.

    Example:
        >>> from oscc.device import load_card
        >>> float(interaction(load_card("vo2-two-state-6k"), 0.0, "resistive"))
        0.0
    """
    delta = np.asarray(delta_rad, dtype=np.float64)
    order = np.arange(1, orders + 1)
    series = interaction_series(card, order, kind)
    waves = np.exp(1j * np.multiply.outer(delta, order)) - 1.0
    return np.asarray(2.0 * np.real(waves @ series), dtype=np.float64)


def frustration_rad(card: Card, kind: str) -> float:
    """Frustration offset alpha of the first harmonic of the native interaction, [rad].

    The first harmonic of H is |2 H_1| cos(delta + arg H_1) = |2 H_1| sin(delta + alpha)
    with alpha = arg H_1 + pi/2 in the form of the pair equation.

    Raises:
        RequestError: an unknown kind.

    Example:
        >>> from oscc.device import load_card
        >>> round(frustration_rad(load_card("vo2-two-state-20k"), "resistive"), 2)
        0.6
    """
    first = complex(interaction_series(card, 1, kind))
    return float(np.angle(1j * first))
