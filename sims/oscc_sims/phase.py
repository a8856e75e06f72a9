"""Engine `phase`: the update of each stage in exact phase dynamics (level 2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from oscc.arrays import FloatArray
from oscc.errors import UndecidedError
from oscc.observables import Observables
from oscc_backends.artefact import LockProblem, PhaseArtefact, ScalarProblem
from oscc_sims import correlate_phase, extrapolation, lock_phase, mobius

# An integrator that leaves more than this per step is not offered as exact: the level
# above is judged at 1e-6 rad.
_LARGEST_CHANGE = 1e-9


def flow(problem: ScalarProblem, factor: float = 1.0) -> FloatArray:
    """Increment of every target, shape (M,) [rad].

    One harmonic without detuning by closed form, all else by extrapolation.

    Args:
        problem: Targets of one stage.
        factor: On drive and detuning alike, such as the +epsilon of a probe.

    Raises:
        UndecidedError: the integrator did not reach its accuracy.
    """
    drive, detuning = factor * problem.drive, factor * problem.detuning_rad
    if problem.harmonics.tolist() == [1] and not detuning.any():
        return mobius.increment(problem.phi0_rad, drive[:, 0])
    moved, left = extrapolation.increment(
        problem.phi0_rad, drive, problem.harmonics, detuning
    )
    if not left < _LARGEST_CHANGE:
        raise UndecidedError(
            f"stage {problem.stage}: the flow is only known to {left:.2g} rad a step; "
            f"its largest drive is {np.abs(drive).max():.3g} rad."
        )
    return moved


def solve(problem: ScalarProblem) -> FloatArray:
    """Phase of every target at the end of the stage, shape (M,) [rad].

    A probe takes half the difference of two flows, scaled by 1/epsilon.
    """
    if problem.update == "flow":
        return problem.phi0_rad + flow(problem)
    plus = flow(problem, problem.probe_epsilon)
    minus = flow(problem, -problem.probe_epsilon)
    out: FloatArray = problem.phi0_rad + (plus - minus) / (2 * problem.probe_epsilon)
    return out


class PhaseEngine:
    """Engine of level 2; it needs nothing but numpy and numba."""

    name = "phase"

    def available(self) -> tuple[bool, str]:
        """Whether the engine can run, with its version or the reason why not."""
        return True, "built in"

    def run(self, artefact: PhaseArtefact) -> Observables:
        """Solve every problem of an artefact.

        Raises:
            UndecidedError: a flow did not reach its accuracy.
        """
        arrays: dict[str, Any] = {}
        for problem in artefact.problems:
            if isinstance(problem, LockProblem):
                arrays |= lock_phase.solve(problem).arrays(problem.stage)
                continue
            shape = problem.grid
            arrays[f"{problem.stage}.phase"] = solve(problem).reshape(shape)
        for one in artefact.correlations:
            arrays[f"{one.name}.correlation"] = correlate_phase.solve(one)
        return Observables(self.name, artefact.program, arrays, {})
