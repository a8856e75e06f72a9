"""Convergence gate: half the step and a tenth of the tolerance move nothing.

Scatter of the period is no measure: a simulator whose switching locks to its own step
grid has a small scatter and a large bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oscc.ir.program import Program
from oscc.observables import Observables

SHARE = 1.0 / 3.0
"""Of the tolerance: largest change at half the step that counts as converged."""


@dataclass(frozen=True, slots=True)
class Convergence:
    """Change of a simulator's read-outs when its step is halved.

    Args:
        engine: Simulator.
        targets: Targets that were run twice.
        change_rad: Largest rms change of a target over its dwells [rad].
        passed: Whether that is at most a third of the tolerance.
        unconverged: Targets above it, the one that moved most first, as (stage, token,
            coordinate); pair cells as (stage, token, partner).
        change_coherence: The largest change of pair cells, in the place of the angle.
    """

    engine: str
    targets: int
    change_rad: float | None
    passed: bool
    unconverged: tuple[tuple[str, int, int], ...] = ()
    change_coherence: float | None = None

    @property
    def sentence(self) -> str:
        """What moved, by how much, and which moved most."""
        said = (
            f"halving the step moves {len(self.unconverged)} of {self.targets} targets "
            f"by up to {self.change}"
        )
        if not self.unconverged:
            return said
        stage, token, other = self.unconverged[0]
        place = f"pair {token},{other}"
        if self.change_rad is not None:
            place = f"token {token} coordinate {other}"
        return f"{said}, most {stage} {place}"

    @property
    def change(self) -> str:
        """The largest change, with its unit."""
        from oscc.units import si_text

        if self.change_rad is None:
            return f"{self.change_coherence or 0.0:.3g} in cos"
        return si_text(self.change_rad, "rad")

    def to_json(self) -> dict[str, Any]:
        """The entry of verify.json."""
        cells = {"change_coherence": self.change_coherence}
        return (cells if self.change_rad is None else {}) | {
            "engine": self.engine,
            "targets": self.targets,
            "change_rad": self.change_rad,
            "passed": self.passed,
            "unconverged": [list(place) for place in self.unconverged],
        }


def run_twice(seen: Observables) -> bool:
    """Whether every stage of a run was also run at half the step."""
    return bool(seen.stages) and all(
        f"{name}.raw.half_step_rad" in seen.arrays for name in seen.stages
    )


def gate(
    program: Program, seen: Observables, *, tolerance_rad: float
) -> Convergence | None:
    """Gate of a simulator's run, None if any stage of it was not run twice."""
    if not run_twice(seen):
        return None
    places: list[tuple[float, str, int, int]] = []
    total, largest = 0, 0.0
    for stage in program.stages:
        if stage.name not in seen.stages:
            continue
        half = seen.arrays[f"{stage.name}.raw.half_step_rad"]
        moved = half - seen.arrays[f"{stage.name}.raw.end_rad"]
        change = np.sqrt(np.mean(moved**2, axis=1))
        index = seen.index(stage.name, stage.grid, stage.begins)
        total += change.size
        largest = max(largest, float(change.max()))
        places += [
            (float(change[k]), stage.name, int(index[k, 0]), int(index[k, 1]))
            for k in np.flatnonzero(change > SHARE * tolerance_rad)
        ]
    return Convergence(
        seen.engine, total, largest, not places, most_moved_first(places)
    )


def most_moved_first(
    places: Sequence[tuple[float, str, int, int]],
) -> tuple[tuple[str, int, int], ...]:
    """The places of (change, stage, token, coordinate), the largest change first."""
    return tuple(place[1:] for place in sorted(places, key=lambda p: -p[0]))
