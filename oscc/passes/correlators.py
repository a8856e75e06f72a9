"""Tanks of correlations: the least quality whose leakage is within the accuracy.

    leakage    e_tu = sum_j w_j sum_{n >= 2} r_n cos(n D_j),   its rms over all outputs
    transient  e_tu <= 2 exp(-pi N / Q) sum_j |w_j|

The leakage is at most half of the accuracy and the bound of the transient a quarter. A
score that is off by e changes its weight by the factor exp(e), so the accuracy of a
phase in rad is asked of a score in nat.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from oscc.arrays import FloatArray
from oscc.device.card import Card
from oscc.device.correlator import leakage, settling_periods
from oscc.errors import RequestError
from oscc.ir.correlation import Correlation
from oscc.ir.program import Program
from oscc.passes.options import PassOptions
from oscc.passes.record import record

QUALITIES = (2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 30.0)
_LEAK_SHARE, _TRANSIENT_SHARE = 0.5, 0.25
_TERMS = 8  # harmonics of the prediction; r_9 is below 1e-4 of r_2


def _products(query: Any, key: Any) -> Any:
    """Product over coordinates; no BLAS, whose sums depend on the threads."""
    return np.einsum("tj,uj->tu", query, key)


def _power_sums(one: Correlation, order: int) -> FloatArray:
    """sum_j w_j cos(n D_j) of every output, shape (outputs,), [nat]."""
    query = one.query_gain * np.exp(1j * order * one.query_rad)
    key = np.conj(one.key_gain * np.exp(1j * order * one.key_rad))
    columns = [one.columns(head) for head in range(one.heads)]
    sums = [_products(query[:, c], key[:, c]).real[one.visible] for c in columns]
    return np.concatenate(sums)


def predicted_leakage(one: Correlation, card: Card, quality: float) -> float:
    """Rms error of the outputs by the harmonics that pass the tanks, [nat]."""
    ratio = leakage(card, quality, _TERMS)
    total = sum(ratio[n - 1] * _power_sums(one, n) for n in range(2, _TERMS + 1))
    return float(np.sqrt(np.mean(np.square(total))))


def transient_weight(one: Correlation) -> float:
    """Rms over the outputs of 2 sum_j |w_j|, [nat]."""
    query, key = np.abs(one.query_gain), np.abs(one.key_gain)
    columns = [one.columns(head) for head in range(one.heads)]
    sums = [_products(query[:, c], key[:, c])[one.visible] for c in columns]
    return 2.0 * float(np.sqrt(np.mean(np.square(np.concatenate(sums)))))


def tuned(
    one: Correlation, card: Card, accuracy: float
) -> tuple[Correlation, dict[str, Any]]:
    """The correlation with its tanks and settling time, and what they leave.

    Args:
        one: Scores or logits.
        card: Device card.
        accuracy: Wanted rms error of an output [nat].

    Raises:
        RequestError: no quality of the grid reaches it.
    """
    for quality in QUALITIES:
        leak = predicted_leakage(one, card, quality)
        if leak <= _LEAK_SHARE * accuracy:
            break
    else:
        raise RequestError(
            f"{one.name}: harmonics of card {card.name} leave {leak:.2g} nat rms even "
            f"with tanks of quality {QUALITIES[-1]:g}; {accuracy:g} were asked. "
            "Ask for less (--accuracy-mrad) or leave --score to the host."
        )
    weight = transient_weight(one)
    left = min(_TRANSIENT_SHARE * accuracy / weight, 1.0) if weight else 1.0
    settle = settling_periods(quality, left)
    chosen = dataclasses.replace(one, quality=quality, settle_periods=settle)
    return chosen, {
        "correlation": one.name,
        "quality": quality,
        "settle_periods": settle,
        "periods": one.periods,
        "leakage_rms_nat": leak,
        "transient_bound_nat": weight * math.exp(-math.pi * settle / quality),
    }


def choose_correlators(program: Program, options: PassOptions) -> Program:
    """Give every correlation its tanks; a program without any is left alone.

    Raises:
        RequestError: harmonics leave more than the accuracy whatever the tank.
    """
    if not program.correlations:
        return program
    found = [
        tuned(one, options.card, program.accuracy_rad) for one in program.correlations
    ]
    changed = program.replace(correlations=tuple(one for one, _ in found))
    numbers = {"correlations": [numbers for _, numbers in found]}
    return record(changed, "choose_correlators", numbers)
