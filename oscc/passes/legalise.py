"""Pass `legalise`: refuse what the device card cannot do.

The phase equation is exact while the injected current stays below the smallest
charging current of the node, so the ratio of the two is held under a limit. The pass
changes nothing, so applying it twice equals applying it once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oscc.arrays import FloatArray
from oscc.device.averaging import second_order_currents
from oscc.device.coupler import injection_A, injection_ratio
from oscc.device.lock_cell import (
    capacitors_F,
    largest_current_A,
    lock_cell,
    lock_rate,
)
from oscc.device.ppv import slowest_current_A
from oscc.errors import RequestError
from oscc.ir.plan import Dwell, dwells
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc.ladder.locks import lock_ratio
from oscc.passes.options import PassOptions
from oscc.passes.record import record
from oscc.passes.trials import stage_drive


def largest_injection(stage: Stage, options: PassOptions) -> tuple[float, int]:
    """Largest injection ratio of a stage, and the flat index of its target.

    The short dwells have the largest currents. Second-order currents add up with
    another sign in each run of a probe, so every run is looked at.
    """
    runs = {dwell.run: dwell for dwell in reversed(dwells(stage))}
    found = [_ratio(stage, options, dwell) for dwell in runs.values()]
    ratio = np.max(found, axis=0)
    worst = int(np.argmax(ratio))
    return float(ratio[worst]), worst


def _ratio(stage: Stage, options: PassOptions, dwell: Dwell) -> FloatArray:
    """Injection ratio of every target in one dwell, shape (T*K,)."""
    current = injection_A(
        options.card,
        dwell.gain * stage_drive(stage),
        np.array(stage.harmonics),
        dwell.periods,
        detuning_rad=dwell.gain * stage.detuning_rad.ravel(),
    )
    if stage.scheme == "corrected":
        current = second_order_currents(options.card, current)
    return injection_ratio(options.card, current)


def largest_of_cells(stage: Stage, options: PassOptions) -> float:
    """Largest injection ratio of a stage of pair cells, which all cells share.

    Raises:
        RequestError: the card cannot carry the coupling, or its trim does not reach
            the detuning of a cell.
    """
    _, pull = lock_ratio(stage)
    rate = lock_rate(pull, stage.dwell_periods)
    cell, ratio = lock_cell(options.card, rate), stage.detuning_rad / pull
    capacitors_F(options.card, rate, ratio, where=f"stage {stage.name}")
    return largest_current_A(cell) / slowest_current_A(options.card)


def legalise(program: Program, options: PassOptions) -> Program:
    """Check the largest injection of every stage against the card.

    Raises:
        RequestError: a target needs more current than the limit allows, or a pair cell
            more detuning than the card's trim.
    """
    rows = []
    for stage in program.stages:
        if stage.readout == "coherence":
            rows.append(_row(stage, largest_of_cells(stage, options), options))
            continue
        ratio, worst = largest_injection(stage, options)
        if ratio > options.injection_limit:
            token, coordinate = stage.target_index[worst]
            times = ratio / options.injection_limit
            enough = math.ceil(times * stage.dwell_periods)
            raise RequestError(
                f"stage {stage.name} / token {token} / coordinate {coordinate}: "
                f"{stage.substeps} substeps of {stage.dwell_periods} periods need "
                f"{times:.3g}x the largest injection of card {options.card.name}. Ask "
                f"for {enough} periods or more, or for more substeps: the current "
                "falls as one over both."
            )
        rows.append(_row(stage, ratio, options))
    return record(
        program, "legalise", {"limit": options.injection_limit, "stages": rows}
    )


def _row(stage: Stage, ratio: float, options: PassOptions) -> dict[str, Any]:
    return {
        "stage": stage.name,
        "injection_ratio": ratio,
        "share_of_limit": ratio / options.injection_limit,
    }
