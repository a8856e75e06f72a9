"""Convergence gate: half the step and a tenth of the tolerance move nothing.

Scatter of the period is no measure: a simulator whose switching locks to its own step
grid has a small scatter and a large bias.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from oscc.ir.program import Program
from oscc.observables import Observables

_SHARE = 1.0 / 3.0


@dataclass(frozen=True, slots=True)
class Convergence:
    """Change of a simulator's read-outs when its step is halved.

    Args:
        engine: Simulator.
        targets: Targets that were run twice.
        change_rad: Largest rms change of a target over its dwells [rad].
        passed: Whether that is at most a third of the tolerance.
        unconverged: Targets above it, as (stage, token, coordinate).
    """

    engine: str
    targets: int
    change_rad: float
    passed: bool
    unconverged: tuple[tuple[str, int, int], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The entry of verify.json."""
        return {
            "engine": self.engine,
            "targets": self.targets,
            "change_rad": self.change_rad,
            "passed": self.passed,
            "unconverged": [list(place) for place in self.unconverged],
        }


def gate(
    program: Program, seen: Observables, *, tolerance_rad: float
) -> Convergence | None:
    """Gate of a simulator's run, None if it was not run twice."""
    places: list[tuple[str, int, int]] = []
    total, largest = 0, 0.0
    for stage in program.stages:
        half = seen.arrays.get(f"{stage.name}.raw.half_step_rad")
        if half is None:
            continue
        moved = half - seen.arrays[f"{stage.name}.raw.end_rad"]
        change = np.sqrt(np.mean(moved**2, axis=1))
        index = seen.index(stage.name, stage.phi0_rad.shape)
        total += change.size
        largest = max(largest, float(change.max()))
        places += [
            (stage.name, int(index[k, 0]), int(index[k, 1]))
            for k in np.flatnonzero(change > _SHARE * tolerance_rad)
        ]
    if not total:
        return None
    return Convergence(seen.engine, total, largest, not places, tuple(places))
