"""Engine `null`: right shapes without content, every phase where it started."""

from __future__ import annotations

from typing import Any

import numpy as np

from oscc.ir.lock import LockReading
from oscc.observables import Observables
from oscc_backends.artefact import LockProblem, PhaseArtefact


class NullEngine:
    """Engine that moves nothing, to test what stands around an engine.

    Example:
        >>> NullEngine().available()
        (True, 'built in')
    """

    name = "null"

    def available(self) -> tuple[bool, str]:
        """Always there."""
        return True, "built in"

    def run(self, artefact: PhaseArtefact) -> Observables:
        """Start phases of every stage, in place of those at its end."""
        arrays: dict[str, Any] = {}
        for problem in artefact.problems:
            if isinstance(problem, LockProblem):
                one = np.ones(problem.ratio.size)
                still = LockReading(one.astype(np.int8), one, one, 0 * one)
                arrays |= still.arrays(problem.stage)
                continue
            shape = problem.grid
            arrays[f"{problem.stage}.phase"] = problem.phi0_rad.reshape(shape)
        return Observables(self.name, artefact.program, arrays, {})
