"""Closed loop of pair cells: the cells of a block on what engines read in the last one.

The host forms detunings from the vectors that the loop has brought, so the pairs that
get a cell are the loop's own. What is reported, for the judge, are the program's pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from oscc.arrays import FloatArray
from oscc.device.card_file import card_from_mapping
from oscc.device.lock_cell import largest_ratio, lock_rate
from oscc.ir.lock import SLIPPING, UNDECIDED
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc.ladder.locks import decided_cells, lock_ratio
from oscc.lock_trace import LockTrace, forward_with_locks
from oscc.lower.ssa import LockPlan, coherence_of_pairs, lock_stage
from oscc.observables import Observables
from oscc.verbs.closed_loop import agreement_of, require_own, require_whole
from oscc.verbs.stage_run import run_cells

if TYPE_CHECKING:
    from oscc.checkpoint import LoadedCheckpoint
    from oscc.device.card import Card


@dataclass(slots=True, eq=False)
class LockClosedLoop:
    """A program's model with the coherence of its pairs from an engine.

    Args:
        program: Says how cells are run; blocks it lacks, and tokens that it does not
            compute, stay digital.
        model: The checkpoint that the program was compiled from.
        threads: Worker threads; no result depends on it.

    Raises:
        RequestError: the checkpoint is another one.
    """

    program: Program
    model: LoadedCheckpoint
    threads: int = 1
    logits: dict[str, FloatArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_own(self.program, self.model)

    def run(self, engine: str) -> Observables:
        """Coherence of the program's pairs with the engine in the loop.

        A pair that has come too near its edge is reported as undecided, one that has
        no cell any more as slipping: the closed form proves it unlocked.

        Raises:
            RequestError: the engine cannot run in the loop.
            UndecidedError: the engine could not reach its accuracy.
        """
        require_whole(engine)
        arrays: dict[str, Any] = {}
        known = {stage.name: stage for stage in self.program.stages}

        def step(number: int, layer: LockTrace) -> FloatArray:
            stage = known.get(layer.name)
            if stage is None:
                return layer.coherence
            coherence, locked = self._block(stage, layer, engine)
            assert stage.index is not None
            place = tuple(stage.index.T)
            arrays[f"{stage.name}.coherence"] = coherence[place]
            arrays[f"{stage.name}.locked"] = locked[place]
            return coherence

        tokens = self.program.tokens[None]
        model = cast("Any", self.model.model)
        self.logits[engine] = forward_with_locks(model, tokens, step)[0]
        return Observables(engine, self.program.digest(), arrays, {"loop": "closed"})

    def _block(
        self, known: Stage, layer: LockTrace, engine: str
    ) -> tuple[FloatArray, FloatArray]:
        """Coherence of every pair, and whether it locked, shape (H, T, T) each."""
        card = card_from_mapping(self.program.device, "the program's device card")
        fresh = lock_stage(layer, _plan(known, card))
        if fresh is None or fresh.index is None:
            none = np.zeros((0, 3), dtype=np.int64)
            coherence = coherence_of_pairs(layer, none, np.zeros(0))
            locked = np.full_like(coherence, SLIPPING)
        else:
            found = run_cells(fresh, engine, card, threads=self.threads)
            coherence = coherence_of_pairs(layer, fresh.index, found.coherence)
            every = np.arange(fresh.targets)
            decided = decided_cells(fresh, every, found.locked)
            read = np.where(decided, found.locked, UNDECIDED)
            locked = coherence_of_pairs(layer, fresh.index, read)
        # tokens that the program does not compute were computed before
        coherence[:, : known.begins] = layer.coherence[:, : known.begins]
        return coherence, locked

    def agreement(self, engine: str) -> dict[str, Any]:
        """How the whole model on an engine agrees with the digital one."""
        model = cast("Any", self.model.model)
        digital = forward_with_locks(model, self.program.tokens[None])[0]
        return agreement_of(self.program, engine, digital, self.logits[engine])


def _plan(stage: Stage, card: Card) -> LockPlan:
    """Coupling and dwell of a stage; every pair up to its largest x gets a cell."""
    ratio, pull = lock_ratio(stage)
    native = stage.lock_mode == "native"
    coupling = lock_rate(pull, stage.dwell_periods)
    return LockPlan(
        coupling=coupling,
        periods=stage.dwell_periods,
        limit=max(LockPlan().limit, float(ratio.max())),
        mode=stage.lock_mode,
        reach=largest_ratio(card, coupling) if native else np.inf,
    )
