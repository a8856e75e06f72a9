"""What is read of lock cells: the types alone, for every engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from oscc.arrays import FloatArray

LOCKED, SLIPPING, UNDECIDED = 1, 0, -1
"""What `LockReading.locked` holds."""


@dataclass(frozen=True, slots=True, eq=False)
class LockReading:
    """What was read of lock cells, arrays of shape (M,).

    Attributes:
        locked: 0 where psi passed pi/2, so that the pair slips; else 1 where the cosine
            is at least the least one of the dwell, `least_coherence`; else -1,
            undecided. int8.
        coherence: cos psi at the end; 0 where psi ever passed pi/2. Of an undecided
            cell it is an upper bound of the settled one.
        margin: 1 - |x|, with x the detuning over the lock range that the law
            dpsi/ds = x - sin psi needs to bring psi to where it is when it is read.
            Above zero the pair locks with that share of its lock range to spare, below
            zero it slips. The phase engine returns what was programmed; of a circuit it
            is a measurement, with the circuit's own law error in it.
        psi_rad: Phase difference when it is read, unwrapped.
    """

    locked: npt.NDArray[np.int8]
    coherence: FloatArray
    margin: FloatArray
    psi_rad: FloatArray

    def arrays(self, stage: str) -> dict[str, npt.NDArray[Any]]:
        """Observables of a stage: `locked`, `coherence`, `margin`, `raw.psi_rad`."""
        return {
            f"{stage}.locked": self.locked,
            f"{stage}.coherence": self.coherence,
            f"{stage}.margin": self.margin,
            f"{stage}.raw.psi_rad": self.psi_rad,
        }
