"""Readings of pair cells by detuning, kept over a whole evaluation.

All cells of an evaluation share one coupling and one dwell, so that two of the same
detuning are one circuit. Detunings are set in steps: there are few of them, however
many windows run. Each is run once, by itself or with others alike: its reading does
not depend on the company.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from oscc.arrays import FloatArray, IntArray
from oscc.device.card import Card
from oscc.errors import RequestError
from oscc.ir.stage import Stage
from oscc.lower.ssa import LockPlan
from oscc.verbs.stage_run import CellReadings, read_cells

if TYPE_CHECKING:
    from oscc_backends.artefact import LockProblem

SPREAD = 1e-9  # of the pull: the rounding of gain times strength, and room


@dataclass(slots=True, eq=False)
class _Table:
    """Detunings that were run, ascending [rad], and what their cells read."""

    detuning_rad: FloatArray = field(default_factory=lambda: np.zeros(0))
    coherence: FloatArray = field(default_factory=lambda: np.zeros(0))
    locked: FloatArray = field(default_factory=lambda: np.zeros(0))

    def missing(self, wanted: FloatArray) -> FloatArray:
        """Those of some detunings that have not been run, ascending."""
        return np.setdiff1d(wanted, self.detuning_rad)

    def add(self, detuning_rad: FloatArray, read: CellReadings) -> None:
        """Take new readings in."""
        every = np.concatenate([self.detuning_rad, detuning_rad])
        order = np.argsort(every)
        self.detuning_rad = every[order]
        self.coherence = np.concatenate([self.coherence, read.coherence])[order]
        self.locked = np.concatenate([self.locked, read.locked])[order]

    def read(self, wanted: FloatArray) -> CellReadings:
        """Readings at detunings that have all been run."""
        place: IntArray = np.searchsorted(self.detuning_rad, wanted)
        return CellReadings(self.coherence[place], self.locked[place])


class LockLevels:
    """Cells of one plan on one card, each detuning run once an engine.

    Args:
        plan: Coupling and dwell of all cells.
        card: Device card.
        threads: Worker threads; no reading depends on it.

    Example:
        >>> from oscc.device import load_card
        >>> from oscc.testing.flat import cells_stage
        >>> plan = LockPlan(periods=100)
        >>> stage = cells_stage(
        ...     (0.6, 0.6, 1.2), gain_rad=plan.pull_rad, dwell_periods=100
        ... )
        >>> levels = LockLevels(plan, load_card("vo2-two-state-5k5"))
        >>> levels.read(stage, "circuit").locked.tolist()
        [1.0, 1.0, 0.0]
        >>> levels.runs("circuit")
        2
    """

    def __init__(self, plan: LockPlan, card: Card, *, threads: int = 1) -> None:
        self.plan, self.card, self.threads = plan, card, threads
        self._tables: dict[str, _Table] = {}

    def runs(self, engine: str) -> int:
        """How many circuits an engine has run."""
        found = self._tables.get(engine)
        return 0 if found is None else found.detuning_rad.size

    def read(self, stage: Stage, engine: str) -> CellReadings:
        """Reading of every cell of a stage of this plan.

        Args:
            stage: Stage of pair cells, lowered with the plan.
            engine: `phase` or `circuit`.

        Raises:
            RequestError: the stage is none of pair cells, or of another plan.
            UndecidedError: a cell could not be followed.
        """
        from oscc_backends import lock

        self._require_own(lock.problem(stage))
        table = self._tables.setdefault(engine, _Table())
        new = table.missing(stage.detuning_rad)
        if new.size:
            problem = self._problem(stage.name, new)
            table.add(new, read_cells(problem, engine, self.card, threads=self.threads))
        return table.read(stage.detuning_rad)

    def _require_own(self, problem: LockProblem) -> None:
        near = math.isclose(problem.lock_rad, self.plan.pull_rad, rel_tol=SPREAD)
        if not near or problem.periods != self.plan.periods:
            raise RequestError(
                f"stage {problem.stage}: its cells pull {problem.lock_rad:.6g} rad in "
                f"{problem.periods} periods, but {self.plan.pull_rad:.6g} rad in "
                f"{self.plan.periods} are kept here."
            )

    def _problem(self, stage: str, detuning_rad: FloatArray) -> LockProblem:
        """One cell of each detuning; the plan's own pull, whatever the rounding."""
        from oscc_backends.artefact import LockProblem

        pull = self.plan.pull_rad
        return LockProblem(
            stage=stage,
            ratio=detuning_rad / pull,
            lock_rad=pull,
            periods=self.plan.periods,
            index=np.zeros((detuning_rad.size, 3), dtype=np.int64),
        )
