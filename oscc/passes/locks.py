"""Pass `choose_locks`: the dwell of pair cells, long enough to decide nearly all.

A cell whose x lies between what the dwell K t has settled and what it has seen slip is
undecided. Every stage of a program gets the same dwell: the shortest of a grid that
leaves at most a small share of the cells of each stage open.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from oscc.arrays import FloatArray
from oscc.device.lock_cell import RATE
from oscc.device.lock_law import x_settled, x_slipped
from oscc.errors import RequestError
from oscc.ir.program import Program
from oscc.ladder.locks import MOST_UNDECIDED, lock_ratio
from oscc.passes.options import PassOptions
from oscc.passes.record import record

_SHARE = 0.8 * MOST_UNDECIDED  # the circuit's own edge is a little elsewhere
_PERIODS = (100, 120, 150, 200, 250, 300, 400, 500, 700, 1000, 1500, 2000)
"""At the usual coupling `RATE`; at half of it a dwell takes twice as many."""


def undecided_share(ratio: FloatArray, pull_rad: float) -> float:
    """Share of cells that a dwell leaves open.

    Args:
        ratio: x of every cell, shape (pairs,).
        pull_rad: K t of the dwell [rad].

    Example:
        >>> undecided_share(np.array([0.5, 0.99, 1.01, 1.2]), 12.6)
        0.5
    """
    low, high = x_settled(pull_rad), x_slipped(pull_rad)
    return float(np.mean((ratio > low) & (ratio < high)))


def shortest_dwell(ratios: Sequence[FloatArray], coupling: float) -> int:
    """Periods P of the shortest dwell that decides nearly all cells of every stage.

    Args:
        ratios: x of every cell, by stage.
        coupling: K / omega0.

    Raises:
        RequestError: no dwell of the grid does.
    """
    grid = [max(1, round(periods * RATE / coupling)) for periods in _PERIODS]
    for periods in grid:
        pull = 2 * np.pi * coupling * periods
        if all(undecided_share(x, pull) <= _SHARE for x in ratios):
            return periods
    raise RequestError(
        f"More than {100 * _SHARE:.0f} % of the cells are too near the edge of their "
        f"lock range to be decided in {grid[-1]} periods. Give --periods, and take "
        "an undecided verdict."
    )


def choose_locks(program: Program, options: PassOptions) -> Program:
    """Give the pair cells of a program their dwell; other stages are left alone.

    Raises:
        RequestError: no dwell decides nearly all cells.
    """
    of_cells = [stage for stage in program.stages if stage.readout == "coherence"]
    if not of_cells:
        return program
    ratios = [lock_ratio(stage)[0] for stage in of_cells]
    coupling = _coupling(program)
    periods = options.periods or shortest_dwell(ratios, coupling)
    stages = []
    for stage in program.stages:
        if stage.readout == "coherence":
            scale = periods / stage.dwell_periods
            stage = dataclasses.replace(
                stage,
                gain_rad=stage.gain_rad * scale,
                detuning_rad=stage.detuning_rad * scale,
                dwell_periods=periods,
            )
        stages.append(stage)
    rows: list[dict[str, Any]] = [
        {
            "stage": stage.name,
            "cells": stage.targets,
            "undecided_share": undecided_share(ratio, 2 * np.pi * coupling * periods),
        }
        for stage, ratio in zip(of_cells, ratios, strict=True)
    ]
    numbers = {"coupling": coupling, "periods": periods, "stages": rows}
    return record(program.replace(stages=tuple(stages)), "choose_locks", numbers)


def _coupling(program: Program) -> float:
    """K / omega0 of the cells, which all stages share."""
    stage = next(s for s in program.stages if s.readout == "coherence")
    _, pull = lock_ratio(stage)
    return pull / (2 * np.pi * stage.dwell_periods)
