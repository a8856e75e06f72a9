"""Pair cells of a lock stage as decks in one simulator: phase difference, read-out.

One deck holds one pair; decks run side by side in processes of their own. The pair is
its own reference, so no free run is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from oscc.arrays import FloatArray, IntArray
from oscc.device.card import Card
from oscc.device.lock_cell import QUALITY
from oscc.device.lock_readout import decide, read_crossings
from oscc.device.piecewise import omega
from oscc.errors import ToolError
from oscc.files import write_atomic
from oscc.ir.lock import LockReading
from oscc_backends.artefact import LockProblem
from oscc_backends.lock_spice import build_deck, deck_name
from oscc_netlists.circuit import ideal_elements, largest_count
from oscc_netlists.lock import NODES, SUPPLY, LockDeck
from oscc_netlists.settings import Settings, default_settings
from oscc_sims.crossings import upward
from oscc_sims.process import Children, side_by_side
from oscc_sims.rawfile import Plot
from oscc_sims.simulator import Simulator, SimulatorFault, open_simulator

DEFAULT_TIMEOUT_S = 300.0
FAR_PERIODS = 0.25
"""Largest distance of a mean period from the card's, over it: beyond is a fault."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What all decks of a run share.

    Args:
        card: Device card.
        problem: The pair cells of the stage.
        simulator: What runs the decks.
        settings: How it steps.
        finer: Whether the run is the one at half the step.
        quality: Q of the tanks.
        program: Digest of the program, for the headers.
        timeout_s: Time limit of one deck.
        folder: Folder that takes the decks, or None; failed ones go beside it.
        stem: Safe name of the stage for files; found from its name where empty.
    """

    card: Card
    problem: LockProblem
    simulator: Simulator
    settings: Settings
    finer: bool = False
    quality: float = QUALITY
    program: str = ""
    timeout_s: float = DEFAULT_TIMEOUT_S
    folder: Path | None = None
    stem: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class CellRun:
    """What one deck gave.

    Args:
        psi_rad: Phase difference at the last crossing of the dwell.
        passed: Whether it ever was beyond pi/2.
        read_s: Time of that crossing.
        supply_J: From the supply into both oscillators over the dwell.
        ideal: Ideal elements of the deck by letter.
    """

    psi_rad: float
    passed: bool
    read_s: float
    supply_J: float
    ideal: Mapping[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class LockSpiceRun:
    """Read-out of some cells of a lock stage in a simulator.

    Args:
        cells: Which cells, in the order of the stage's targets, shape (M,).
        reading: Their read-out.
        finer: The same at half the step, None without a convergence run.
        supply_J: Supply energy of each cell over the dwell, shape (M,).
        ideal: Ideal elements by letter.
        decks: How many decks were run.
    """

    cells: IntArray
    reading: LockReading
    finer: LockReading | None
    supply_J: FloatArray
    ideal: Mapping[str, int]
    decks: int

    @property
    def change(self) -> FloatArray:
        """What half the step changes in the coherence of each cell, shape (M,).

        Raises:
            ToolError: no convergence run was made.
        """
        if self.finer is None:
            raise ToolError("No run at half the step was made; ask for `gate`.")
        return np.asarray(self.finer.coherence - self.reading.coherence)

    def arrays(self, stage: str) -> dict[str, npt.NDArray[Any]]:
        """Observables: read-out, `cells`, `supply_J`, `raw.half_step_coherence`."""
        out = self.reading.arrays(stage)
        out[f"{stage}.cells"] = self.cells
        out[f"{stage}.supply_J"] = self.supply_J
        if self.finer is not None:
            out[f"{stage}.raw.half_step_coherence"] = self.finer.coherence
            out[f"{stage}.raw.half_step_psi_rad"] = self.finer.psi_rad
        return out


def run(
    card: Card,
    problem: LockProblem,
    cells: Sequence[int] | IntArray,
    dialect: str,
    *,
    gate: bool = False,
    jobs: int = 1,
    simulator: Simulator | None = None,
    settings: Settings | None = None,
    quality: float = QUALITY,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    decks_dir: Path | None = None,
    stem: str = "",
    program: str = "",
) -> LockSpiceRun:
    """Some cells of a lock stage in a simulator.

    Args:
        card: Device card.
        problem: The pair cells of the stage.
        cells: Rows of the cells to run, shape (M,).
        dialect: `ngspice` or `gnucap`.
        gate: Also run every cell with finer settings.
        jobs: Decks that run side by side.
        simulator: What runs the decks; the program of the dialect without it.
        settings: How it steps; the defaults of the dialect without it.
        quality: Q of the tanks.
        timeout_s: Time limit of one deck, [s].
        decks_dir: Folder that takes every deck; failed ones go to `failed` beside it.
        stem: Safe name of the stage for files.
        program: Digest of the program, for the headers.

    Raises:
        RequestError: no such cell, or one that the card cannot do.
        ToolError: the simulator is missing, or any deck failed.
    """
    tool = simulator or open_simulator(dialect)
    plain = settings or default_settings(dialect)
    kinds = {False: plain, True: plain.finer()} if gate else {False: plain}
    rows = np.asarray(cells, dtype=np.int64).reshape(-1)
    rest = (quality, program, timeout_s, decks_dir, stem)
    benches = [
        Bench(card, problem, tool, kind, finer, *rest) for finer, kind in kinds.items()
    ]
    seen = run_all([(bench, int(row)) for bench in benches for row in rows], jobs)
    first, last = seen[: rows.size], seen[rows.size :]
    return LockSpiceRun(
        cells=rows,
        reading=_reading(card, problem, first),
        finer=_reading(card, problem, last) if gate else None,
        supply_J=np.array([one.supply_J for one in first]),
        ideal=largest_count(one.ideal for one in first),
        decks=len(seen),
    )


def _reading(card: Card, problem: LockProblem, seen: Sequence[CellRun]) -> LockReading:
    time = omega(card) * np.array([one.read_s for one in seen])
    return decide(
        np.array([one.psi_rad for one in seen]),
        np.array([one.passed for one in seen], dtype=np.bool_),
        problem.lock_rad,
        read_rad=problem.rate * time,
    )


def run_all(work: Sequence[tuple[Bench, int]], jobs: int) -> list[CellRun]:
    """Every deck, some side by side; the first failure stops the rest.

    Raises:
        ToolError: a deck failed.
    """
    pieces = [partial(_run_with, bench, row) for bench, row in work]
    return side_by_side(pieces, jobs)


def _run_with(bench: Bench, row: int, children: Children) -> CellRun:
    return run_one(bench, children, row)


def run_one(bench: Bench, children: Children, row: int) -> CellRun:
    """One pair from its deck to its phase difference.

    Raises:
        RequestError: a cell that the card cannot do.
        ToolError: it gave no number; deck and log are kept beside the decks.
    """
    deck = build_deck(
        bench.card,
        bench.problem,
        row,
        bench.settings,
        quality=bench.quality,
        program=bench.program,
    )
    name = deck_name(deck, stem=bench.stem, finer=bench.finer)
    if bench.folder is not None:
        write_atomic(bench.folder / name, deck.text)
    try:
        plot = bench.simulator.run(children, deck, bench.timeout_s)
        return read_cell(deck, plot)
    except SimulatorFault as fault:
        raise _failure(bench, deck, name, fault) from fault


def read_cell(deck: LockDeck, plot: Plot) -> CellRun:
    """Phase difference and supply energy of a pair from its waveforms.

    Raises:
        SimulatorFault: crossings are missing, or periods are far from the card's.
    """
    time, period = plot.column("time"), _period_s(deck)
    first, second = (
        upward(time, plot.column(f"v({node})"), deck.level_V) for node in NODES
    )
    found = read_crossings(first, second, deck.end_s)
    if found is None:
        raise SimulatorFault(
            f"the oscillators crossed {first.size} and {second.size} times: too few "
            "to be read at the end of the dwell"
        )
    for number, times in enumerate((first, second), start=1):
        off = float(np.abs(np.diff(times) / period - 1.0).max(initial=0.0))
        if off > FAR_PERIODS:
            raise SimulatorFault(
                f"a period of oscillator {number} is off by {off:.2g} of the card's: "
                "a false switching"
            )
    psi, passed, at = found
    supply = _supply_J(deck, plot)
    return CellRun(psi, passed, at, supply, ideal_elements(deck.circuit))


def _period_s(deck: LockDeck) -> float:
    return 2.0 * np.pi / omega(deck.cell.card)


def _supply_J(deck: LockDeck, plot: Plot) -> float:
    """Energy from the supply over the dwell: trapezoid over the time points."""
    time, kept = np.unique(plot.column("time"), return_index=True)
    power = -deck.cell.card.vdd_V * plot.column(f"i({SUPPLY})")[kept]
    inside = time < deck.end_s
    last = float(np.interp(deck.end_s, time, power))
    grid = np.append(time[inside], deck.end_s)
    return float(np.trapezoid(np.append(power[inside], last), grid))


def _failure(
    bench: Bench, deck: LockDeck, name: str, fault: SimulatorFault
) -> ToolError:
    kept = ""
    if bench.folder is not None:
        place = bench.folder.parent / "failed" / name.removesuffix(".cir")
        write_atomic(place / "deck.cir", deck.text)
        write_atomic(place / "log.txt", f"{fault.reason}\n{fault.log}\n")
        kept = f" Deck and log: {place}"
    facts = deck.facts
    place_of = f"{facts['stage']}/{facts['head']}/{facts['token']}/{facts['partner']}"
    at = "" if fault.reached_s is None else f" at {fault.reached_s * 1e6:.4g} us"
    return ToolError(
        f"{bench.simulator.name} failed{at} for {place_of}: {fault.reason}. "
        f"No coherence is reported.{kept}"
    )
