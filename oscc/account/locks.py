"""Closed-form energy of a stage of pair cells, by cause.

A cell is two oscillators that pull each other through tuned tanks for one dwell of P
periods; with h hold, s settle, r read periods, and E0 the energy of a free period:

    target_oscillators = 2 cells (P + s) E0
    couplers           = 2 cells Vdd I_peak (P + s) T0
    read_out           = cells (read_out + 2 r E0)
    programming        = cells (2 (phase_word + h E_hold) + detuning_word)

The supply power of a cell does not depend on its capacitor (energy a period and period
are both in proportion to it), so detuning costs nothing. There is no bank of sources
and no reference: the two of a cell are read against each other. Where one oscillator a
token visits its partners in rounds, a pair costs the same, and the rounds take their
time one after the other. What a cell replaces is one square root: S = J sqrt(1 - x^2)
of an x that the host has formed.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oscc.account.assumptions import Assumption
from oscc.account.pairs import PairCounts
from oscc.account.stages import StageEnergy, hold_energy_per_period_J
from oscc.device import Card
from oscc.device.cycle_energy import energy_per_period_J
from oscc.device.lock_cell import lock_cell, peak_current_A
from oscc.device.piecewise import period_s
from oscc.ir.plan import total_periods
from oscc.ir.rounds import oscillators, rounds
from oscc.ir.stage import Stage
from oscc.ladder.locks import lock_ratio

OSCILLATORS = 2


def lock_stage_energy(
    stage: Stage, card: Card, known: Mapping[str, Assumption]
) -> StageEnergy:
    """Energy of a stage of pair cells by cause; see the equations of the module.

    Args:
        stage: Stage of read-out `coherence`.
        card: Device card.
        known: Assumptions by name, those of pair cells among them.

    Example:
        >>> from oscc.account.assumptions import assumptions
        >>> from oscc.device import load_card
        >>> from oscc.testing.flat import cells_stage
        >>> card = load_card("vo2-two-state-5k5")
        >>> stage = cells_stage(dwell_periods=100)
        >>> found = lock_stage_energy(stage, card, assumptions(card, ("cells",)))
        >>> round(found.causes_J["target_oscillators"] / stage.targets * 1e9)
        196
    """
    value = {name: entry.value for name, entry in known.items()}
    cells, periods = stage.targets, total_periods(stage)
    free = energy_per_period_J(card).supply_J
    running = periods + value["settle_periods"]
    _, pull = lock_ratio(stage)
    rate = pull / (2 * np.pi * periods)
    peak = peak_current_A(lock_cell(card, rate)) * value["bias_over_peak"]
    write = value["phase_word_J"]
    write += value["hold_periods"] * hold_energy_per_period_J(card)
    couplers = OSCILLATORS * cells * card.vdd_V * peak * running * period_s(card)
    causes = {
        "source_oscillators": 0.0,
        "target_oscillators": OSCILLATORS * cells * running * free,
        "couplers": couplers,
        "read_out": cells
        * (value["read_out_J"] + OSCILLATORS * value["read_periods"] * free),
        "programming": cells * (OSCILLATORS * write + value["detuning_word_J"]),
    }
    turnaround = value["hold_periods"] + value["read_periods"]
    turns = rounds(stage)
    return StageEnergy(
        stage=stage.name,
        counts=PairCounts(cells, cells, cells, oscillators(stage), 0),
        periods=turns * periods,
        dwells=turns,
        duration_s=turns * (running + turnaround) * period_s(card),
        causes_J=causes,
        pair_J=float(sum(causes.values())),
    )
