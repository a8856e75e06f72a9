"""How the frequency follows the parameters, how noise moves the phase."""

from __future__ import annotations

import numpy as np

from oscc.device.card import UNITS, Card
from oscc.device.piecewise import segments
from oscc.device.ppv import ppv_at_switching

BOLTZMANN_J_K = 1.380649e-23
"""Boltzmann constant, exact in the SI of 2019."""

_STEP = 1e-30


def frequency_sensitivity(card: Card) -> dict[str, float]:
    """Relative change of frequency per relative change of each parameter.

        s_x = d ln f / d ln x

    Returns:
        s_x by parameter name.

    Source: derivative of the closed-form period by a complex step, exact to rounding
    (Squire and Trapp 1998).

    Example:
        >>> from oscc.device import load_card
        >>> round(frequency_sensitivity(load_card("vo2-two-state-20k"))["c_F"], 12)
        -1.0
    """
    out = {}
    for name in UNITS:
        values = {key: complex(getattr(card, key)) for key in UNITS}
        values[name] *= complex(1.0, _STEP)
        period = _period(values)
        out[name] = -period.imag / _STEP / period.real
    return out


def _period(values: dict[str, complex]) -> complex:
    total = 0.0 + 0.0j
    thresholds = values["v_imt_V"], values["v_mit_V"]
    for resistance, (first, last) in (
        (values["r_met_ohm"], thresholds),
        (values["r_ins_ohm"], thresholds[::-1]),
    ):
        conductance = 1.0 / values["r_series_ohm"] + 1.0 / resistance
        level = values["vdd_V"] / values["r_series_ohm"] / conductance
        ratio = (level - first) / (level - last)
        total += values["c_F"] / conductance * complex(np.log(ratio))
    return total


def jitter_variance_rad2(
    card: Card,
    periods: float,
    *,
    temperature_K: float = 300.0,
    threshold_V: float = 0.0,
) -> float:
    """Variance of the phase of a free oscillator after some periods, [rad^2].

        var = P sum_s ppv_s^2 [C k T (1 - e^{-2 L_s / tau_s}) + (C sigma)^2]

    with ppv_s the phase response at the end of each state: Johnson noise of the series
    resistor and the device, and an independent threshold noise at every switching.

    Args:
        periods: Number P of periods.
        temperature_K: Temperature of the resistors.
        threshold_V: Standard deviation sigma of each threshold, at each switching.

    Source: docs/reference/physics.md.

    Example:
        >>> from oscc.device import load_card
        >>> card = load_card("vo2-two-state-20k")
        >>> round(jitter_variance_rad2(card, 20) ** 0.5 * 1e3, 3)   # mrad
        0.145
    """
    piece, response = segments(card), ppv_at_switching(card)
    settled = 1.0 - np.exp(-2.0 * piece.length_s / piece.tau_s)
    thermal = card.c_F * BOLTZMANN_J_K * temperature_K * settled
    threshold = (card.c_F * threshold_V) ** 2
    return float(periods * (response**2 * (thermal + threshold)).sum())
