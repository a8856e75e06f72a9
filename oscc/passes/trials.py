"""Trial targets: the program's own drives with start phases of other targets.

Nothing is ever fitted to the targets under test. A trial target keeps the drive of a
target and takes the start phase, relative to its field, of another token in the same
coordinate whose drive is of like strength. Donors from other coordinates would put
starts on a repeller that the layer never visits.

The rms error of a stage is made by the few targets that start next to a repeller, and
goes with one over their distance from it. So that distance is multiplied by a random
factor near one, which keeps the rare small ones as rare and as small as they are; an
angle added to it would move all of them away (docs/decisions/0004-trial-distances.md).
"""

from __future__ import annotations

import numpy as np

from oscc.arrays import ComplexArray, FloatArray, IntArray
from oscc.ir.interpret import field
from oscc.ir.stage import Stage
from oscc.passes.options import Targets
from oscc.phases import wrap
from oscc.seeds import stream

_REACH = 3
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
    drive, shape = stage_drive(stage), stage.phi0_rad.shape
    random = stream(seed, f"dwell trial {stage.name}")
    chosen = random.permutation(stage.targets)[: min(count, stage.targets)]
    strength = np.abs(drive).sum(axis=1).reshape(shape)
    relative = wrap(stage.phi0_rad.ravel() - np.angle(drive[:, 0]))
    fresh: list[FloatArray] = []
    for _ in range(draws):
        donor = _donors(strength, random).ravel()[chosen]
        start = _moved(relative[donor], random)
        fresh.append(np.angle(drive[chosen, 0]) + start)
    return Targets(
        drive=np.tile(drive[chosen], (draws, 1)),
        harmonics=np.array(stage.harmonics, dtype=np.int64),
        phi0_rad=np.concatenate(fresh),
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


def _donors(strength: FloatArray, random: np.random.Generator) -> IntArray:
    """Flat index of a donor of every target, (T, K): same coordinate, another token.

    A single token has no other; its donors are its other coordinates.
    """
    tokens, coordinates = strength.shape
    if tokens == 1:
        return (_neighbours(strength.T, random)).T
    near = _neighbours(strength, random) * coordinates + np.arange(coordinates)
    return np.asarray(near, dtype=np.int64)


def _neighbours(strength: FloatArray, random: np.random.Generator) -> IntArray:
    """Row of a neighbour in rank, up to `_REACH` places away, within each column."""
    rows = strength.shape[0]
    order = np.argsort(strength, axis=0, kind="stable")
    rank = np.argsort(order, axis=0, kind="stable")
    step = random.integers(1, _REACH + 1, strength.shape)
    step = step * random.choice([-1, 1], strength.shape)
    near = np.clip(rank + step, 0, rows - 1)
    # at either end of the ranks, clipping may lead back to the target itself
    near = np.where(near == rank, np.clip(rank - step, 0, rows - 1), near)
    return np.asarray(np.take_along_axis(order, near, axis=0), dtype=np.int64)
