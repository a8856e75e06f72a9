"""Break-even: how small a cell must be to cost no more than digital arithmetic.

At fixed resistors and voltages every time scales with the capacitor, and with it the
energy of oscillators, holds and couplers; conversions and words written do not:

    hardware(C) = fixed + slope C  =  digital      at      C = (digital - fixed) / slope

Thermal jitter grows as 1/sqrt(C), so a cell that is cheap enough may be too noisy.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from oscc.account.assumptions import Assumption
from oscc.account.correlations import all_energies
from oscc.account.noise import noise_periods, thermal_variance_per_period
from oscc.device import Card
from oscc.ir.program import Program


def _hardware(program: Program, card: Card, known: Mapping[str, Assumption]) -> float:
    return math.fsum(
        value
        for stage in all_energies(program, card, known)
        for value in stage.causes_J.values()
    )


def break_even(
    program: Program,
    card: Card,
    known: Mapping[str, Assumption],
    digital: Mapping[str, float],
    host_J: float,
) -> dict[str, dict[str, Any]]:
    """Capacitor at which hardware costs as much as digital, by precision.

    Args:
        digital: Energy of the coupling by precision, [J].
        host_J: Host work that only the hardware needs, [J].

    Returns:
        `c_F`, `thermal_jitter_rad` there, `quiet_enough` (jitter within the accuracy);
        all None where words and conversions alone cost more than digital.

    Example:
        >>> from oscc.account.assumptions import assumptions
        >>> from oscc.device import load_card
        >>> from oscc.testing.energy import two_token_program
        >>> card = load_card("vo2-two-state-6k")
        >>> known = assumptions(card, ())
        >>> found = break_even(two_token_program(), card, known, {"fp32": 1e-9}, 0.0)
        >>> found["fp32"]["c_F"] < card.c_F
        True
    """
    # A larger capacitor keeps the cell below any frequency limit of its card.
    double = dataclasses.replace(card, c_F=2.0 * card.c_F)
    once, twice = (_hardware(program, one, known) for one in (card, double))
    slope = (twice - once) / card.c_F
    fixed = 2.0 * once - twice + host_J
    periods = max(noise_periods(stage) for stage in program.stages)
    temperature = known["temperature_K"].value
    thermal = periods * thermal_variance_per_period(card, temperature)
    out: dict[str, dict[str, Any]] = {}
    for name, wanted in digital.items():
        out[name] = {"c_F": None, "thermal_jitter_rad": None, "quiet_enough": None}
        if wanted > fixed:
            c_F = (wanted - fixed) / slope
            jitter = math.sqrt(thermal * card.c_F / c_F)
            out[name] = {
                "c_F": c_F,
                "thermal_jitter_rad": jitter,
                "quiet_enough": jitter <= program.accuracy_rad,
            }
    return out
