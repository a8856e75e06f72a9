"""Trial targets: the program's own targets with each start phase moved somewhat.

No trial is a target under test, but each lies near one: it keeps the drive and starts
near where that target starts, relative to its field.

The rms error of a stage is made by the few targets that start next to a repeller, and
goes with one over their distance from it. So that distance is multiplied by a random
factor near one, which keeps the rare small ones as rare and as small as they are; an
angle added to it would move all of them away (docs/decisions/0004-trial-distances.md).
A start taken from another target would leave the rare ones to chance, which decides
where a text is short (docs/decisions/0005-trial-own-starts.md).
"""

from __future__ import annotations

import numpy as np

from oscc.arrays import ComplexArray, FloatArray
from oscc.ir.interpret import field
from oscc.ir.stage import Stage
from oscc.passes.options import Targets
from oscc.phases import wrap
from oscc.seeds import stream

_SPREAD = 0.3
_LEAST_RAD = 1e-4


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
    drive, detuning = stage_drive(stage), stage.detuning_rad.ravel()
    random = stream(seed, f"dwell trial {stage.name}")
    chosen = random.permutation(stage.targets)[: min(count, stage.targets)]
    angle = np.angle(drive[chosen, 0])
    relative = wrap(stage.phi0_rad.ravel()[chosen] - angle)
    fresh = [angle + _moved(relative, random) for _ in range(draws)]
    return Targets(
        drive=np.tile(drive[chosen], (draws, 1)),
        harmonics=np.array(stage.harmonics, dtype=np.int64),
        phi0_rad=np.concatenate(fresh),
        detuning_rad=np.tile(detuning[chosen], draws) if detuning.any() else None,
    )


def _moved(relative: FloatArray, random: np.random.Generator) -> FloatArray:
    """Start phases relative to the field, each somewhat nearer to or further from rest.

    With one harmonic the flow multiplies tan(relative / 2) by exp(-drive), so a factor
    on the tangent is a shift in time: it keeps the sign and the order of size of the
    distance from the attractor and from the repeller. The small angle moves those that
    lie on one of them.
    """
    rest = np.where(np.abs(relative) > np.pi / 2, np.sign(relative) * np.pi, 0.0)
    factor = np.exp(random.normal(0.0, _SPREAD, relative.size))
    near = 2.0 * np.arctan(np.tan(0.5 * (relative - rest)) * factor)
    small = random.normal(0.0, _LEAST_RAD, relative.size)
    return np.asarray(rest + near + small, dtype=np.float64)
