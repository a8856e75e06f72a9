"""Bits per character of a model whose pairs lock, with the cells in the loop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from oscc.arrays import BoolArray, FloatArray, IntArray
from oscc.corpus import Symbols
from oscc.device.card import Card
from oscc.device.card_file import load_card
from oscc.ir.stage import Stage
from oscc.ladder.locks import decided_cells, lock_ratio
from oscc.lock_trace import LockTrace, forward_with_locks, trace_locks
from oscc.lower.program import require_scored_by
from oscc.lower.ssa import LockPlan, coherence_of_pairs, lock_stage
from oscc.passes.locks import shortest_dwell
from oscc.verbs.compile import default_device
from oscc.verbs.compile_cells import lock_plan, require_lock_mode
from oscc.verbs.evaluate_scores import Growth
from oscc.verbs.evaluate_spice import SpiceSample
from oscc.verbs.lock_levels import LockLevels
from oscc.verbs.stage_run import CellReadings, run_cells

if TYPE_CHECKING:
    from oscc.checkpoint import LoadedCheckpoint
    from oscc.verbs.evaluate import EvaluateOptions


@dataclass(slots=True, eq=False)
class CellTally:
    """Errors of the cells of one block against the closed form, over windows."""

    squares: float = 0.0
    decided: int = 0
    cells: int = 0
    flips: int = 0
    windows: int = 0

    def note(self, error: FloatArray, decided: BoolArray, flipped: BoolArray) -> None:
        """Add the cells of one window."""
        self.squares += float((error[decided] ** 2).sum())
        self.decided += int(decided.sum())
        self.cells += error.size
        self.flips += int((flipped & decided).sum())
        self.windows += 1


class LockLoop:
    """A model whose coherences come from an engine, block by block."""

    def __init__(
        self, model: LoadedCheckpoint, engine: str, options: EvaluateOptions
    ) -> None:
        request = options.request
        self.model, self.engine, self.options = model, engine, options
        card = request.device or default_device(model.config.family)
        self.card: Card = load_card(card)
        require_scored_by(model.config.family, request.score)
        require_lock_mode(model.config, request.lock_mode)
        plan = lock_plan(request, self.card)
        self.plan: LockPlan = plan._replace(step=options.lock_step)
        self.tallies: dict[int, CellTally] = {}
        self.sample: SpiceSample | None = None
        self.growth: Growth | None = None
        self._levels: LockLevels | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """What is compared, digital first."""
        return ("digital", *dict.fromkeys(("phase", self.engine)))

    def choose_schemes(self, training: Sequence[Symbols]) -> None:
        """One dwell for all blocks, on all calibration windows together."""
        if self.options.request.periods is not None:
            return
        ratios: dict[int, list[FloatArray]] = {}
        model = cast("Any", self.model.model)
        for window in training:
            for number, layer in enumerate(trace_locks(model, window[:-1]).layers):
                stage = lock_stage(layer, self.plan)
                if stage is not None:
                    ratios.setdefault(number, []).append(lock_ratio(stage)[0])
        joined = [np.concatenate(parts) for parts in ratios.values()]
        periods = shortest_dwell(joined, self.plan.coupling)
        self.plan = self.plan._replace(periods=periods)

    def forward(self, tokens: IntArray, column: str) -> FloatArray:
        """Logits of a batch of windows, shape (B, T, V)."""
        model, growth = cast("Any", self.model.model), self.growth
        if growth is not None:
            growth.begin(column)
        elif column == "digital":
            return forward_with_locks(model, tokens)

        def step(number: int, layer: LockTrace) -> FloatArray:
            if growth is not None and column == "digital":
                return growth.keep(layer.name, layer.coherence)
            coherence = self._block(number, layer, column)
            if growth is not None and column == self.engine:
                growth.compare(layer.name, coherence, angle=False)
            return coherence

        return forward_with_locks(model, tokens, step)

    def _block(self, number: int, layer: LockTrace, engine: str) -> FloatArray:
        stage = lock_stage(layer, self.plan)
        if engine == "circuit" and self.sample is not None:
            self.sample.keep(layer.name, stage)
        if stage is None or stage.index is None:
            none = np.zeros((0, 3), dtype=np.int64)
            return coherence_of_pairs(layer, none, np.zeros(0))
        found = self._ran(stage, engine)
        if engine == self.engine:
            assert stage.digital_coherence is not None
            every = np.arange(stage.targets)
            decided = decided_cells(stage, every, found.locked)
            flipped = (found.locked > 0) != (stage.digital_coherence > 0)
            error = found.coherence - stage.digital_coherence
            tally = self.tallies.setdefault(number, CellTally())
            tally.note(error, decided, flipped)
        return coherence_of_pairs(layer, stage.index, found.coherence)

    def _ran(self, stage: Stage, engine: str) -> CellReadings:
        """Readings of a stage; of detunings that are set in steps each is run once."""
        threads = self.options.request.threads
        if self.plan.step == 0.0:
            return run_cells(stage, engine, self.card, threads=threads)
        if self._levels is None or self._levels.plan != self.plan:
            self._levels = LockLevels(self.plan, self.card, threads=threads)
        return self._levels.read(stage, engine)

    def _growth(self, number: int) -> float | None:
        return None if self.growth is None else self.growth.rms(f"layer.{number}.locks")

    def content(self) -> dict[str, Any]:
        """Dwell, and errors by layer."""
        return {
            "periods_per_stage": self.plan.periods
            if self.engine == "circuit"
            else None,
            "lock_coupling": self.plan.coupling,
            "lock_step": self.plan.step,
            "layers": [
                {
                    "stage": f"layer.{number}.locks",
                    "rms_rad": None,
                    "rms_coherence": math.sqrt(tally.squares / max(tally.decided, 1)),
                    "slips": tally.flips,
                    "cells": tally.cells,
                    "undecided": tally.cells - tally.decided,
                    "rms_coherence_to_model": self._growth(number),
                }
                for number, tally in sorted(self.tallies.items())
            ],
            "schemes": [],
        }
