"""Closed-form energy of one stage, by cause.

For D dwells of P_d periods, with h hold, s settle, r read periods:

    source_oscillators = sources (sum P_d + D (s + r)) E0
    target_oscillators = targets (sum P_d + D s) E0
    couplers           = Vdd sum_d |gain_d| sum_targets |g| sum_n strength_n / |Gamma_n|
    read_out           = targets D (read_out + r E0)
                         + reference (sum P_d + D (s + r)) E0
    programming        = cells D (phase_word + h E_hold) + weights written
    E_hold             = Vdd (Vdd - V_MIT) / R_s T0

Every dwell is written and read anew: sources, targets and the reference alike. Where
earlier tokens are sources alone, as in decoding, a share q of the bank is, and

    sources written    = q D sources + (1 - q) new          in the place of D sources
    source_oscillators + (1 - q) sources D h E0             they run on through writes

with `new` the sources of the tokens that are computed: a token's phases enter the bank
once a layer. The
bank of sources is one physical bank that all targets of the stage share, so its cells
count once, and they all run for as long as any target needs them. A class A
transconductor draws its peak current from the supply; as its current falls as 1/P, the
energy of a dwell does not depend on P. Derivation: docs/reference/energy.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from oscc.account.assumptions import Assumption
from oscc.account.pairs import (
    PairCounts,
    count_pairs,
    field_by_harmonic,
    strength_by_harmonic,
    weight_strength,
)
from oscc.arrays import FloatArray
from oscc.device import Card
from oscc.device.cycle_energy import energy_per_period_J
from oscc.device.piecewise import period_s, waveform_series
from oscc.device.ppv import ppv_series
from oscc.ir.plan import dwells, total_periods
from oscc.ir.stage import Stage

HARDWARE_CAUSES = (
    "source_oscillators",
    "target_oscillators",
    "couplers",
    "read_out",
    "programming",
)


@dataclass(frozen=True, slots=True)
class StageEnergy:
    """Energy of one stage.

    Args:
        stage: Name.
        counts: Pairs, terms, cells.
        periods: Carrier periods of all dwells.
        dwells: Number of dwells, each with a write and a read of every target.
        duration_s: Time from the first write to the last read.
        causes_J: Energy by cause, without the host.
        pair_J: Part of couplers and programming that grows with the number of pairs.
    """

    stage: str
    counts: PairCounts
    periods: int
    dwells: int
    duration_s: float
    causes_J: Mapping[str, float]
    pair_J: float


def hold_energy_per_period_J(card: Card) -> float:
    """Supply energy of a cell that is held at V_MIT for one period.

        E_hold = Vdd (Vdd - V_MIT) / R_s T0

    A held cell draws more than a running one (`energy_per_period_J`).

    Example:
        >>> from oscc.device import load_card
        >>> round(hold_energy_per_period_J(load_card("vo2-two-state-6k")) * 1e9, 3)
        1.021
    """
    current = (card.vdd_V - card.v_mit_V) / card.r_series_ohm
    return card.vdd_V * current * period_s(card)


def class_a_energy_J(card: Card, strength: FloatArray, stage: Stage) -> FloatArray:
    """Supply energy of the transconductors of each target over one dwell of full gain.

        E = Vdd |g| sum_n strength_n / |Gamma_n| + Vdd |Omega| / Gamma_0

    Args:
        strength: Strength by harmonic, shape (N, ...): the sum over pairs of |c_n|
            where every pair has an element, |C_n| where the sum is formed before.

    Returns:
        Shape of the targets, [J].

    Source: bias equal to the peak current |I_n| = |g| strength_n / (P T0 |Gamma_n|).

    Example:
        >>> from oscc.device import load_card
        >>> from oscc.testing.energy import two_token_stage
        >>> card, stage = load_card("vo2-two-state-20k"), two_token_stage()
        >>> e = class_a_energy_J(card, strength_by_harmonic(stage), stage)
        >>> round(float(e[0, 0]) * 1e12)
        193
    """
    response = np.abs(ppv_series(card, np.array(stage.harmonics)))
    injected = np.einsum("n...,n->...", strength, 1.0 / response)
    trim = np.abs(stage.detuning_rad) / abs(ppv_series(card, 0).real)
    out: FloatArray = card.vdd_V * (np.abs(stage.gain_rad) * injected + trim)
    return out


def second_order_energy_J(stage: Stage, card: Card) -> float:
    """Supply energy of the second-order currents of the scheme `corrected`.

        E = sum_dwells sum_targets Vdd sum_q |I_q - I_q,first| P T0

    The field is summed before, on the host; no pair has an element of its own.

    Example:
        >>> from oscc.device import load_card
        >>> from oscc.testing.energy import two_token_stage
        >>> second_order_energy_J(two_token_stage(), load_card("vo2-two-state-6k"))
        0.0
    """
    if stage.scheme != "corrected":
        return 0.0
    from oscc.device.averaging import second_order_currents
    from oscc.device.coupler import injection_A
    from oscc.ir.interpret import field

    real, imaginary = field(stage)
    both = np.asarray(stage.gain_rad * (real + 1j * imaginary), dtype=np.complex128)
    pull = both.reshape(len(stage.harmonics), -1).T
    total = 0.0
    for dwell in dwells(stage):
        first = injection_A(card, dwell.gain * pull, stage.harmonics, dwell.periods)
        added = second_order_currents(card, first)
        added[:, : first.shape[1]] -= first
        seconds = dwell.periods * period_s(card)
        total += card.vdd_V * seconds * float(np.abs(added).sum())
    return total


def _couplers(
    stage: Stage, card: Card, known: Mapping[str, Assumption]
) -> tuple[float, float]:
    """Energy of all couplers of a stage, and the part that each pair adds."""
    bias = known["bias_over_peak"].value
    factor = bias * sum(abs(dwell.gain) for dwell in dwells(stage))
    by_pair = stage.fidelity in ("pairwise", "passive")
    strength = strength_by_harmonic(stage) if by_pair else field_by_harmonic(stage)
    injected = factor * float(class_a_energy_J(card, strength, stage).sum())
    second = bias * second_order_energy_J(stage, card)
    if stage.fidelity != "oscillators":
        return injected + second, injected
    settle = known["settle_periods"].value * len(dwells(stage))
    seconds = (total_periods(stage) + settle) * period_s(card)
    rows = weight_strength(stage)
    swing = (card.v_imt_V - card.v_mit_V) / 2.0
    weights = known["weight_S"].value * swing * float(rows.sum())
    orders = stage.harmonics
    # One channel more, kept at zero, takes out the next harmonic of the waveform.
    channels = orders if len(orders) == 1 else (*orders, orders[-1] + 1)
    peaks = 2.0 * np.abs(waveform_series(card, np.array(channels))).sum()
    shapers = known["shaper_S"].value * float(peaks * rows.sum())
    power = bias * card.vdd_V * seconds
    return injected + second + power * (weights + shapers), power * weights


def _words(stage: Stage, counts: PairCounts) -> tuple[int, int]:
    """Weight words written once a window, and words written at every dwell."""
    if stage.fidelity == "summed":
        return 0, 2 * counts.targets * len(stage.harmonics)
    once = counts.pair_routes if stage.fidelity == "oscillators" else counts.pair_terms
    return once, counts.targets


def stage_energy(
    stage: Stage, card: Card, known: Mapping[str, Assumption]
) -> StageEnergy:
    """Closed-form energy of a stage by cause; see the equations of the module.

    Example:
        >>> from oscc.account.assumptions import assumptions
        >>> from oscc.device import load_card
        >>> from oscc.testing.energy import two_token_stage
        >>> card = load_card("vo2-two-state-6k")
        >>> found = stage_energy(two_token_stage(), card, assumptions(card, ()))
        >>> round(found.causes_J["target_oscillators"] * 1e9, 1)
        36.1
    """
    if stage.readout == "coherence":
        from oscc.account.locks import lock_stage_energy

        return lock_stage_energy(stage, card, known)
    return _of_phases(stage, card, known)


def _of_phases(
    stage: Stage, card: Card, known: Mapping[str, Assumption]
) -> StageEnergy:
    counts, plan, value = count_pairs(stage), len(dwells(stage)), _values(known)
    free = energy_per_period_J(card).supply_J
    held = hold_energy_per_period_J(card)
    sources = 0 if stage.fidelity == "summed" else counts.sources
    reference = value["reference_oscillators"]
    coupled = total_periods(stage) + plan * value["settle_periods"]
    running = coupled + plan * value["read_periods"]
    refreshed = value["source_refresh"] if stage.begins and sources else 1.0
    cells = sources * refreshed + counts.targets + reference
    written = plan * cells + (1 - refreshed) * _new_sources(stage)
    idle = (1 - refreshed) * plan * value["hold_periods"]
    couplers, pair_couplers = _couplers(stage, card, known)
    once, every = _words(stage, counts)
    pair_writes = once * value["weight_write_J"]
    write = value["phase_word_J"] + value["hold_periods"] * held
    causes = {
        "source_oscillators": sources * (running + idle) * free,
        "target_oscillators": counts.targets * coupled * free,
        "couplers": couplers,
        "read_out": counts.targets
        * plan
        * (value["read_out_J"] + value["read_periods"] * free)
        + reference * running * free,
        "programming": written * write
        + pair_writes
        + every * plan * value["weight_write_J"],
    }
    return StageEnergy(
        stage=stage.name,
        counts=counts,
        periods=total_periods(stage),
        dwells=plan,
        duration_s=(running + plan * value["hold_periods"]) * period_s(card),
        causes_J=causes,
        pair_J=pair_couplers + pair_writes,
    )


def _new_sources(stage: Stage) -> int:
    """Source oscillators of the tokens that the stage computes."""
    if stage.flat:
        assert stage.source_index is not None
        column = 0 if stage.readout == "phase" else 1
        return int((stage.source_index[:, column] >= stage.begins).sum())
    return int(stage.theta_rad[stage.begins :].size)


def _values(known: Mapping[str, Assumption]) -> dict[str, float]:
    return {name: entry.value for name, entry in known.items()}
