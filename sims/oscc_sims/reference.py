"""Engine `reference`: the scalar equations, one by one, in plain scipy.

Slow and obviously right; fast engines of level 2 are tested against it.

    dphi/dtau = detuning + sum_n |drive_n| sin(arg drive_n - n phi)
"""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np

from oscc.arrays import FloatArray
from oscc.device.lock_readout import decide
from oscc.errors import UndecidedError
from oscc.ir.lock import LockReading
from oscc.observables import Observables
from oscc_backends.artefact import LockProblem, PhaseArtefact, ScalarProblem

_RTOL, _ATOL = 1e-12, 1e-12


def increment(problem: ScalarProblem, target: int, factor: float = 1.0) -> float:
    """Phase increment of one target over its dwell [rad].

    Args:
        problem: Targets of one stage.
        target: Row of the target.
        factor: On drive and detuning alike, such as the +epsilon of a probe.

    Raises:
        UndecidedError: the integrator did not reach the end of the dwell.
    """
    from scipy.integrate import solve_ivp

    start = float(problem.phi0_rad[target])
    detuning = factor * float(problem.detuning_rad[target])
    terms = [
        (int(n), *cmath.polar(factor * complex(drive)))
        for n, drive in zip(problem.harmonics, problem.drive[target], strict=True)
    ]

    def slope(_: float, moved: FloatArray) -> list[float]:
        phi = start + moved[0]
        pull = sum(size * math.sin(angle - n * phi) for n, size, angle in terms)
        return [detuning + pull]

    found = solve_ivp(slope, (0.0, 1.0), [0.0], method="DOP853", rtol=_RTOL, atol=_ATOL)
    if not found.success or found.t[-1] != 1.0:
        raise UndecidedError(
            f"stage {problem.stage} / target {target}: stopped at {found.t[-1]:.3g} "
            f"of the dwell ({found.message})."
        )
    return float(found.y[0, -1])


def solve(problem: ScalarProblem) -> FloatArray:
    """Phase of every target at the end of the stage, shape (M,) [rad]."""
    out = np.array(problem.phi0_rad)
    for target in range(out.size):
        if problem.update == "flow":
            out[target] += increment(problem, target)
            continue
        size = problem.probe_epsilon
        both = [increment(problem, target, sign * size) for sign in (1.0, -1.0)]
        out[target] += (both[0] - both[1]) / (2.0 * size)
    return out


def solve_locks(problem: LockProblem) -> LockReading:
    """Every pair cell, one by one; the flag is an event of the integrator.

    Raises:
        UndecidedError: the integrator did not reach the end of the dwell.
    """
    from scipy.integrate import solve_ivp

    psi, passed = np.zeros(problem.ratio.size), np.zeros(problem.ratio.size, bool)
    for cell, ratio in enumerate(problem.ratio):
        found = solve_ivp(
            lambda _, y, x=ratio: x - np.sin(y),
            (0.0, problem.lock_rad),
            [0.0],
            method="DOP853",
            rtol=_RTOL,
            atol=_ATOL,
            events=lambda _, y: abs(y[0]) - np.pi / 2,
        )
        if not found.success:
            raise UndecidedError(f"stage {problem.stage} / cell {cell}: not followed.")
        psi[cell], passed[cell] = found.y[0, -1], found.t_events[0].size > 0
    return decide(psi, passed, problem.lock_rad)


class ReferenceEngine:
    """Engine of level 2 that takes its time.

    Example:
        >>> ReferenceEngine().available()
        (True, 'built in')
    """

    name = "reference"

    def available(self) -> tuple[bool, str]:
        """Always there."""
        return True, "built in"

    def run(self, artefact: PhaseArtefact) -> Observables:
        """Solve every target of an artefact.

        Raises:
            UndecidedError: an integrator did not reach the end of a dwell.
        """
        arrays: dict[str, Any] = {}
        for problem in artefact.problems:
            if isinstance(problem, LockProblem):
                arrays |= solve_locks(problem).arrays(problem.stage)
                continue
            shape = problem.grid
            arrays[f"{problem.stage}.phase"] = solve(problem).reshape(shape)
        return Observables(self.name, artefact.program, arrays, {})
