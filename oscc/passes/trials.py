"""Trial targets: the program's own drives with start phases of other targets.

Nothing is ever fitted to the targets under test. A trial target keeps the drive of a
target and takes the start phase, relative to the field, of another target whose drive
is of like strength.
"""

from __future__ import annotations

import numpy as np

from oscc.arrays import ComplexArray, FloatArray
from oscc.ir.interpret import field
from oscc.ir.stage import Stage
from oscc.passes.options import Targets
from oscc.phases import wrap
from oscc.seeds import stream

# Donors come from the tenth of the targets that is nearest in drive strength.
_NEIGHBOURS = 0.1


def stage_drive(stage: Stage) -> ComplexArray:
    """Drive g C_n of every target, shape (T*K, N) [rad]."""
    real, imaginary = field(stage)
    scaled = stage.gain_rad * (real + 1j * imaginary)
    out: ComplexArray = np.ascontiguousarray(scaled.reshape(len(real), -1).T)
    return out


def trial_targets(stage: Stage, seed: int, *, count: int, draws: int) -> Targets:
    """Targets to try a scheme on.

    Args:
        stage: Stage whose drives are used.
        seed: Seed of the program.
        count: Targets drawn, at most all of them.
        draws: Fresh start phases for each.
    """
    drive, start = stage_drive(stage), stage.phi0_rad.ravel()
    random = stream(seed, f"dwell trial {stage.name}")
    total = start.size
    chosen = random.permutation(total)[: min(count, total)]
    rank = np.empty(total, dtype=np.int64)
    order = np.argsort(np.abs(drive).sum(axis=1), kind="stable")
    rank[order] = np.arange(total)
    relative = wrap(start - np.angle(drive[:, 0]))
    reach = max(1, int(_NEIGHBOURS * total / 2))
    fresh: list[FloatArray] = []
    for _ in range(draws):
        step = random.integers(1, reach + 1, chosen.size)
        sign = random.choice([-1, 1], chosen.size)
        donor = order[np.abs(rank[chosen] + sign * step) % total]
        fresh.append(np.angle(drive[chosen, 0]) + relative[donor])
    return Targets(
        drive=np.tile(drive[chosen], (draws, 1)),
        harmonics=np.array(stage.harmonics, dtype=np.int64),
        phi0_rad=np.concatenate(fresh),
    )
