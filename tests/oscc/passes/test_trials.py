"""Trial targets: the program's own drives, never its own (drive, start) pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oscc.ir import Stage
from oscc.passes.trials import stage_drive, trial_targets
from oscc.phases import circular_distance
from oscc.testing.tiny import tiny_stage
from oscc_backends import phase


def one_harmonic(tokens: int, coordinates: int, **changes: object) -> Stage:
    return tiny_stage(
        tokens=tokens,
        coordinates=coordinates,
        heads=1,
        harmonics=(1,),
        routes=("present",),
        **changes,  # type: ignore[arg-type]
    )


def still(tokens: int, coordinates: int) -> Stage:
    """Every target starts on its own field, as token 0 of Kuramoto attention does."""
    stage = one_harmonic(tokens, coordinates)
    start = np.angle(stage_drive(stage)[:, 0]).reshape(stage.phi0_rad.shape)
    return replace(stage, phi0_rad=start)


CASES = [
    tiny_stage(3, tokens=6),
    one_harmonic(5, 3),
    one_harmonic(2, 1),
    one_harmonic(1, 4),
    one_harmonic(1, 1),
    still(1, 3),
    still(4, 2),
]


@pytest.mark.parametrize("stage", CASES)
def test_no_trial_is_a_target_under_test(stage: Stage) -> None:
    drive, start = stage_drive(stage), stage.phi0_rad.ravel()
    trial = trial_targets(stage, 0, count=10_000, draws=5)
    for k in range(trial.phi0_rad.size):
        same = (drive == trial.drive[k]).all(axis=1)
        assert same.any()
        apart = circular_distance(start[same], trial.phi0_rad[k])
        assert (apart > 0.0).all()


def test_starts_that_all_lie_on_their_fields_are_moved_off_them() -> None:
    """All donors are alike here, so that the random angle alone tells them apart."""
    stage = still(4, 2)
    trial = trial_targets(stage, 0, count=8, draws=50)
    off = circular_distance(trial.phi0_rad, np.angle(trial.drive[:, 0]))
    # quartiles of the size of a normal angle of .02 rad are .0064 and .023
    assert 0.004 < np.quantile(off, 0.25) < 0.009
    assert 0.018 < np.quantile(off, 0.75) < 0.028


def test_drives_are_those_of_the_backend() -> None:
    stage = tiny_stage(3, tokens=6)
    assert np.abs(stage_drive(stage) - phase.drive(stage)).max() < 1e-12


@pytest.mark.parametrize(
    ("count", "draws", "size"), [(7, 1, 7), (7, 3, 21), (99, 2, 48)]
)
def test_count_and_draws(count: int, draws: int, size: int) -> None:
    trial = trial_targets(tiny_stage(3, tokens=6), 0, count=count, draws=draws)
    assert trial.drive.shape == (size, 2)
    assert trial.phi0_rad.shape == (size,)
    assert trial.harmonics.tolist() == [1, 2]


def test_draws_of_one_target_differ() -> None:
    trial = trial_targets(tiny_stage(3, tokens=6), 0, count=5, draws=2)
    assert (trial.drive[:5] == trial.drive[5:]).all()
    assert (trial.phi0_rad[:5] != trial.phi0_rad[5:]).all()


def test_the_seed_decides_and_nothing_else() -> None:
    stage = tiny_stage(3, tokens=6)
    one = trial_targets(stage, 0, count=9, draws=2)
    two = trial_targets(replace(stage, substeps=9, scheme="plain"), 0, count=9, draws=2)
    other = trial_targets(stage, 1, count=9, draws=2)
    assert one.phi0_rad.tolist() == two.phi0_rad.tolist()
    assert one.phi0_rad.tolist() != other.phi0_rad.tolist()


def test_starts_keep_the_distance_from_the_field_of_like_targets() -> None:
    """Relative to its field, a trial starts near where some target of the same
    coordinate starts; a layer that stays away from its repellers keeps away.
    """
    stage = one_harmonic(12, 1)
    own = stage.phi0_rad.ravel() - np.angle(stage_drive(stage)[:, 0])
    trial = trial_targets(stage, 2, count=12, draws=3)
    relative = trial.phi0_rad - np.angle(trial.drive[:, 0])
    nearest = [circular_distance(own, r).min() for r in relative]
    assert max(nearest) < 5 * 0.02  # five sigma of the random angle
