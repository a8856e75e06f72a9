"""Closed-form energy of a correlation, by cause.

Both banks run for N periods, settling and integral, with h hold periods:

    source_oscillators = keys N E0
    target_oscillators = queries N E0
    couplers           = Vdd N T0 mixer_S 2 |v_1| sum_mixers |a b| / max |a b|
    read_out           = outputs integrator_read
    programming        = (queries + keys) (phase_word + h E_hold + weight_write)

A mixer is a class A transconductor whose peak current follows the product of its two
gates; the largest of the correlation has the strength one. Buffers, tanks and
integrators are ideal in the engine and are named among what is omitted. What a
correlation replaces is two multiply-accumulates a mixer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from oscc.account.assumptions import Assumption
from oscc.account.pairs import PairCounts
from oscc.account.stages import StageEnergy, hold_energy_per_period_J, stage_energy
from oscc.device import Card
from oscc.device.cycle_energy import energy_per_period_J
from oscc.device.piecewise import period_s, waveform_series
from oscc.ir.correlation import Correlation
from oscc.ir.program import Program


def mixer_strength(one: Correlation) -> float:
    """Sum over all mixers of |a b|, over the largest of them; 0 if all are 0.

    Example:
        >>> ones, zero = np.ones((1, 2)), np.zeros((1, 2))
        >>> both = Correlation("c", zero, zero, ones, ones, np.full((1, 1, 1), 2.0))
        >>> mixer_strength(both)
        2.0
    """
    query, key = np.abs(one.query_gain), np.abs(one.key_gain)
    total = largest = 0.0
    for row, sees in zip(query, one.visible, strict=True):
        products = row * key[sees]
        total += float(products.sum())
        largest = max(largest, float(products.max(initial=0.0)))
    return total / largest if largest else 0.0


def correlation_energy(
    one: Correlation, card: Card, known: Mapping[str, Assumption]
) -> StageEnergy:
    """Energy of a correlation by cause; see the equations of the module.

    Args:
        one: Scores or logits.
        card: Device card.
        known: Assumptions by name, those of correlations among them.
    """
    value = {name: entry.value for name, entry in known.items()}
    periods, queries, keys = one.periods_in_all, one.query_rad.size, one.key_rad.size
    free = energy_per_period_J(card).supply_J
    swing = 2.0 * float(np.abs(waveform_series(card, 1)))
    peak = value["mixer_S"] * swing * value["bias_over_peak"]
    mixers = card.vdd_V * periods * period_s(card) * peak * mixer_strength(one)
    write = value["phase_word_J"] + value["weight_write_J"]
    write += value["hold_periods"] * hold_energy_per_period_J(card)
    causes = {
        "source_oscillators": keys * periods * free,
        "target_oscillators": queries * periods * free,
        "couplers": mixers,
        "read_out": one.outputs * value["integrator_read_J"],
        "programming": (queries + keys) * write,
    }
    return StageEnergy(
        stage=one.name,
        counts=PairCounts(0, 0, 0, queries, keys),
        periods=periods,
        dwells=1,
        duration_s=(periods + value["hold_periods"]) * period_s(card),
        causes_J=causes,
        pair_J=0.0,
    )


def all_energies(
    program: Program, card: Card, known: Mapping[str, Assumption]
) -> list[StageEnergy]:
    """Energy of every stage, and after them of every correlation."""
    stages = [stage_energy(stage, card, known) for stage in program.stages]
    formed = [correlation_energy(one, card, known) for one in program.correlations]
    return stages + formed


def correlations_spent(
    program: Program, card: Card, known: Mapping[str, Assumption]
) -> dict[str, float]:
    """Energy of all correlations, of an output, of a digital product they replace.

    Empty where the host forms scores and logits.
    """
    formed = program.correlations
    if not formed:
        return {}
    energy = math.fsum(
        part
        for one in formed
        for part in correlation_energy(one, card, known).causes_J.values()
    )
    outputs, macs = sum(c.outputs for c in formed), sum(c.macs for c in formed)
    return {
        "energy_J": energy,
        "outputs": outputs,
        "multiply_accumulates": macs,
        "per_output_J": energy / outputs,
        "per_mac_J": energy / macs,
    }
