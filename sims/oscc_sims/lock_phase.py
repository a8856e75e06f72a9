"""Lock stages in exact phase dynamics, by the closed form of the law.

    dpsi/ds = x - sin psi,   s = K t

psi only grows, or only falls, on its way from 0, so that it ever passed pi/2 if it is
beyond it at the end.
"""

from __future__ import annotations

import numpy as np

from oscc.device.lock_law import least_coherence, phase_difference_rad
from oscc.ir.lock import LOCKED, SLIPPING, UNDECIDED, LockReading
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
    slips = np.abs(psi) > 0.5 * np.pi
    coherence = np.where(slips, 0.0, np.cos(psi))
    held = coherence >= least_coherence(problem.lock_rad)
    locked = np.where(slips, SLIPPING, np.where(held, LOCKED, UNDECIDED))
    margin = 1.0 - np.abs(problem.ratio)
    return LockReading(locked.astype(np.int8), coherence, margin, psi)
