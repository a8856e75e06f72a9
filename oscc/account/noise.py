"""Noise that decides how small a cell may be: thermal jitter, threshold noise.

    var = sum_dwells w^2 P [sum_s z_s^2 (C kT (1 - e^{-2 L_s/tau_s}) + (C sigma)^2)]

with z_s the phase response just before state s ends. w is the weight of a dwell in the
result: 1 for `plain` and `corrected`; 2 over the 2P periods and -1 over the P periods
for `extrapolated`, hence 9 P for each substep; 1/(2 epsilon) in both runs of a probe.
An undriven phase is meant: at an attractor the pull takes part of the noise out again,
near a repeller it makes it grow. The phase difference of a pair cell that locks keeps
the noise of as many periods as its lock forgets in.

Source: docs/reference/energy.md; Monte Carlo of 4000 runs at 1 pF, 1 V, P = 20 gave
7.24 +- 0.08 mrad, this form 7.26.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oscc.device import Card
from oscc.device.piecewise import segments
from oscc.device.ppv import ppv_at_switching
from oscc.ir.plan import dwells
from oscc.ir.program import Program
from oscc.ir.stage import Stage

BOLTZMANN_J_PER_K = 1.380649e-23

THRESHOLD_NOTE = (
    "independent error of every switching, as a fraction of V_IMT; the published "
    "cycle-to-cycle spread of a similar device is below 0.025 (an upper bound)"
)


def thermal_variance_per_period(card: Card, temperature_K: float = 300.0) -> float:
    """Phase variance that one free period adds by thermal noise, [rad^2].

    Example:
        >>> from oscc.device import load_card
        >>> v = thermal_variance_per_period(load_card("vo2-two-state-20k"))
        >>> round((20 * v) ** 0.5 * 1e3, 4)
        0.1453
    """
    piece, response = segments(card), ppv_at_switching(card)
    kept = 1.0 - np.exp(-2.0 * piece.length_s / piece.tau_s)
    charge = card.c_F * BOLTZMANN_J_PER_K * temperature_K
    return float(charge * (response**2 * kept).sum())


def threshold_variance_per_period(card: Card) -> float:
    """Phase variance that one free period adds per squared threshold noise.

    Returns:
        [rad^2/V^2], for an independent error of both thresholds at every switching.

    Example:
        >>> from oscc.device import load_card
        >>> card = load_card("vo2-two-state-20k")
        >>> jitter = (20 * threshold_variance_per_period(card)) ** 0.5
        >>> round(1e-3 * card.v_imt_V * jitter * 1e3)
        61
    """
    return float(((ppv_at_switching(card) * card.c_F) ** 2).sum())


def noise_periods(stage: Stage) -> float:
    """Periods of one free oscillator that would carry the noise of the whole stage.

    Example:
        >>> from oscc.testing.energy import two_token_stage
        >>> noise_periods(two_token_stage(scheme="extrapolated", dwell_periods=4))
        36.0
    """
    if stage.readout == "coherence":
        return _lock_periods(stage)
    total = 0.0
    for dwell in dwells(stage):
        weight = 1.0
        if stage.scheme == "extrapolated":
            weight = -1.0 if dwell.periods == stage.dwell_periods else 2.0
        if stage.update == "probe":
            weight /= 2.0 * stage.probe_epsilon
        total += weight**2 * dwell.periods
    return total


def _lock_periods(stage: Stage) -> float:
    """Periods after which a lock forgets its noise, of the loosest decided cell.

    d psi' = -K sqrt(1 - x^2) psi' dt + noise of both oscillators
    var psi = s / (2 pi (K/omega0) sqrt(1 - x^2)),  s per period of one oscillator
    """
    from oscc.device.lock_law import x_settled
    from oscc.ladder.locks import lock_ratio

    ratio, pull = lock_ratio(stage)
    held = ratio[ratio <= x_settled(pull)]
    loosest = float(held.max(initial=0.0))
    a_period = pull / stage.dwell_periods  # 2 pi K/omega0
    return 1.0 / (a_period * math.sqrt((1.0 - loosest) * (1.0 + loosest)))


def noise_of(program: Program, card: Card, temperature_K: float) -> dict[str, Any]:
    """Thermal jitter of the noisiest stage, largest threshold noise that passes.

    The threshold noise alone may fill what the thermal jitter leaves of the wanted
    accuracy; None where it leaves nothing.

    Example:
        >>> from oscc.device import load_card
        >>> from oscc.testing.energy import two_token_program
        >>> card = load_card("vo2-two-state-6k")
        >>> found = noise_of(two_token_program(), card, 300.0)
        >>> bool(found["thermal_jitter_rad"] < 1e-3)
        True
    """
    periods = max(noise_periods(stage) for stage in program.stages)
    thermal = periods * thermal_variance_per_period(card, temperature_K)
    left = program.accuracy_rad**2 - thermal
    passes = None
    if left > 0:
        passes = math.sqrt(left / (periods * threshold_variance_per_period(card)))
    return {
        "thermal_jitter_rad": math.sqrt(thermal),
        "accuracy_rad": program.accuracy_rad,
        "threshold_noise_max_V": passes,
        "threshold_noise_max_relative": None
        if passes is None
        else passes / card.v_imt_V,
        "note": THRESHOLD_NOTE,
    }
