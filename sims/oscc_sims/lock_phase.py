"""Lock stages in exact phase dynamics, by the closed form of the law.

    dpsi/ds = x - sin psi,   s = K t

psi only grows, or only falls, on its way from 0, so that it ever passed pi/2 if it is
beyond it at the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from oscc.device.lock_law import phase_difference_rad
from oscc.device.lock_readout import LockReading, decide
from oscc_backends.artefact import LockProblem


def solve(problem: LockProblem) -> LockReading:
    """Every cell at the end of the dwell; its margin is 1 - |x| as programmed.

    Example:
        >>> from oscc.testing.flat import cells_stage
        >>> from oscc_backends.lock import problem
        >>> solve(problem(cells_stage((0.0, 0.6, 1.2)))).locked.tolist()
        [1, 1, 0]
    """
    psi = phase_difference_rad(problem.ratio, problem.lock_rad)
    return decide(psi, np.abs(psi) > 0.5 * np.pi, problem.lock_rad)


def lock_arrays(stage: str, seen: LockReading) -> dict[str, npt.NDArray[Any]]:
    """Observables of a lock stage: `locked`, `coherence`, `margin`, `raw.psi_rad`."""
    return {
        f"{stage}.locked": seen.locked,
        f"{stage}.coherence": seen.coherence,
        f"{stage}.margin": seen.margin,
        f"{stage}.raw.psi_rad": seen.psi_rad,
    }
