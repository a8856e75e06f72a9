"""Lock stages in the exact circuit: two oscillators and two tanks a cell, event-driven.

Both nodes start at V_MIT, insulating, the tanks at rest. The dwell lasts P periods of
the card; psi is read from the crossings of V_IMT, at the last one of oscillator 1 in
the dwell. Cells of equal detuning are the same circuit and run once.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from oscc.arrays import BoolArray, FloatArray
from oscc.checks import require_finite
from oscc.device.card import Card
from oscc.device.lock_cell import QUALITY, LockCell, largest_current_A, lock_cell
from oscc.device.lock_readout import decide, read_crossings
from oscc.device.ppv import slowest_current_A
from oscc.errors import UndecidedError
from oscc.ir.lock import UNDECIDED, LockReading
from oscc_backends.artefact import LockProblem
from oscc_sims.circuit_dwell import ENERGY_PARTS
from oscc_sims.lock_kernel import TWO_PI, Track, run_cells
from oscc_sims.lock_network import network_of

CHUNK = 64
_SPARE = 8  # crossings kept beyond those that detuning and pull can make of a dwell


@dataclass(frozen=True, slots=True, eq=False)
class LockTrack:
    """Crossings of lock cells.

    Attributes:
        crossing: Upward crossings of both oscillators in base phase w0 t, NaN where
            there are none, shape (M, 2, N) [rad].
        energy_J: Energies of both oscillators together over the dwell, by
            `circuit_dwell.ENERGY_PARTS`, shape (M, 5); None if not asked for.
        evaluations: Evaluations of a voltage, in all.
    """

    crossing: FloatArray
    energy_J: FloatArray | None
    evaluations: int


@dataclass(frozen=True, slots=True, eq=False)
class LockRun:
    """Read-out of a lock stage in the circuit, with the energies behind it.

    Attributes:
        reading: `locked`, `coherence`, `margin`, `psi_rad`, each of shape (M,).
        energy_J: By `circuit_dwell.ENERGY_PARTS`, shape (M, 5), or None.
        injection_ratio: Bound of the injected current over the slowest node current.
        evaluations: Evaluations of a voltage, in all.
    """

    reading: LockReading
    energy_J: FloatArray | None
    injection_ratio: float
    evaluations: int


def follow(
    cell: LockCell,
    ratio: FloatArray,
    periods: float,
    *,
    threads: int = 1,
    energy: bool = False,
    where: str = "",
) -> LockTrack:
    """Exact run of many cells, until both oscillators have crossed after the dwell.

    Args:
        cell: Element values.
        ratio: x of every cell, shape (M,).
        periods: Dwell in free periods of the card, > 0.
        threads: Worker threads; the result does not depend on it.
        energy: Also integrate the energies in closed form.
        where: Place for messages.

    Raises:
        RequestError: a cell is detuned beyond the trim of the card.
        UndecidedError: a cell could not be followed.

    Example:
        >>> from oscc.device import load_card
        >>> cell = lock_cell(load_card("vo2-two-state-5k5"))
        >>> seen = follow(cell, np.zeros(1), 5)
        >>> bool(np.ptp(seen.crossing[0, :, :5], axis=0).max() < 1e-12)
        True
    """
    x = np.asarray(ratio, dtype=np.float64)
    require_finite("ratio", x, where=where)
    fastest = 1.0 + cell.rate * (1.0 + 0.5 * float(np.abs(x).max(initial=0.0)))
    room = int(fastest * periods) + _SPARE
    crossing = np.full((x.size, 2, room), np.nan)
    energies = np.zeros((x.size, 5 if energy else 0))
    ups = np.zeros((x.size, 2), dtype=np.int64)
    steps = np.zeros(x.size, dtype=np.int64)
    end = TWO_PI * periods

    def run(first: int) -> None:
        part = slice(first, first + CHUNK)
        net = network_of(cell, x[part], where=where)
        track = Track(crossing[part], ups[part], energies[part], steps[part])
        run_cells(np.arange(len(net.modes)), cell.card.v_mit_V, end, net, track)

    with ThreadPoolExecutor(max(1, threads)) as pool:
        list(pool.map(run, range(0, x.size, CHUNK)))
    lost = ups[:, 0] < 0
    if lost.any():
        raise UndecidedError(
            f"{where + ': ' if where else ''}{int(lost.sum())} of {x.size} cells could "
            f"not be followed to the end of the dwell, first cell {int(lost.argmax())}."
        )
    return LockTrack(crossing, energies if energy else None, int(steps.sum()))


def solve(
    card: Card,
    problem: LockProblem,
    *,
    threads: int = 1,
    energy: bool = False,
    quality: float = QUALITY,
) -> LockRun:
    """Every cell of a lock stage at the end of its dwell.

    Args:
        card: Device card of both oscillators of every cell.
        problem: The pair cells.
        threads: Worker threads; the result does not depend on it.
        energy: Also integrate the energies in closed form.
        quality: Q of the tanks.

    Raises:
        RequestError: the coupling needs more current than the card allows, or a cell
            is detuned beyond the trim of the card.
        UndecidedError: a cell could not be followed.

    Example:
        >>> from oscc.device import load_card
        >>> from oscc.testing.flat import cells_stage
        >>> from oscc_backends.lock import problem
        >>> cells = problem(cells_stage((0.6, 1.2), dwell_periods=100))
        >>> solve(load_card("vo2-two-state-5k5"), cells).reading.locked.tolist()
        [1, 0]
    """
    where = f"stage {problem.stage}"
    cell = lock_cell(card, problem.rate, quality=quality)
    every, place = np.unique(problem.ratio, return_inverse=True)
    seen = follow(
        cell, every, problem.periods, threads=threads, energy=energy, where=where
    )
    reading = read_track(problem, seen.crossing[place], where)
    return LockRun(
        reading,
        None if seen.energy_J is None else seen.energy_J[place],
        largest_current_A(cell) / slowest_current_A(card),
        seen.evaluations,
    )


def arrays(stage: str, run: LockRun) -> dict[str, npt.NDArray[Any]]:
    """Observables of a lock stage: its read-out and its energies, each (M,)."""
    out: dict[str, npt.NDArray[Any]] = run.reading.arrays(stage)
    if run.energy_J is not None:
        for column, part in enumerate(ENERGY_PARTS):
            out[f"{stage}.{part}"] = np.ascontiguousarray(run.energy_J[:, column])
    return out


def facts(problem: LockProblem, run: LockRun) -> dict[str, Any]:
    """Figures of a run that repeat exactly."""
    return {
        "cells": int(problem.ratio.size),
        "undecided": int((run.reading.locked == UNDECIDED).sum()),
        "periods_in_all": problem.periods,
        "injection_ratio": float(run.injection_ratio),
    }


def read_track(problem: LockProblem, crossing: FloatArray, where: str) -> LockReading:
    """Read-out of every cell from its crossings.

    Args:
        crossing: In base phase, NaN where there are none, shape (M, 2, N) [rad].
        where: Place for messages.

    Raises:
        UndecidedError: a cell lacks crossings.
    """
    psi, time = np.empty(len(crossing)), np.empty(len(crossing))
    passed: BoolArray = np.zeros(len(crossing), dtype=np.bool_)
    end = TWO_PI * problem.periods
    for row, pair in enumerate(crossing):
        first, second = (times[np.isfinite(times)] for times in pair)
        found = read_crossings(first, second, end)
        if found is None:
            raise UndecidedError(f"{where}: cell {row} lacks crossings to be read.")
        psi[row], passed[row], time[row] = found
    return decide(psi, passed, problem.lock_rad, read_rad=problem.rate * time)
