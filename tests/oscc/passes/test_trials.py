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
    """The factor does not move them here; the small angle does."""
    stage = still(4, 2)
    trial = trial_targets(stage, 0, count=8, draws=50)
    off = circular_distance(trial.phi0_rad, np.angle(trial.drive[:, 0]))
    # quartiles of the size of a normal angle of 1e-4 rad are .32e-4 and 1.15e-4
    assert 0.2e-4 < np.quantile(off, 0.25) < 0.45e-4
    assert 0.9e-4 < np.quantile(off, 0.75) < 1.4e-4


@pytest.mark.parametrize("distance", [0.001, 0.03, 1.0])
def test_rare_starts_next_to_a_repeller_stay_as_near(distance: float) -> None:
    """All but one start near their attractor; that one stays so in every draw."""
    stage = one_harmonic(20, 1)
    angle = np.angle(stage_drive(stage)[:, 0]).reshape(stage.phi0_rad.shape)
    away = np.full((20, 1), 0.3)
    away[7] = np.pi - distance
    trial = trial_targets(replace(stage, phi0_rad=angle + away), 0, count=20, draws=200)
    relative = circular_distance(trial.phi0_rad, np.angle(trial.drive[:, 0]))
    near = np.pi - relative[(trial.drive == stage_drive(stage)[7]).all(axis=1)]
    assert near.size == 200
    # the tangent of half the distance is log-normal around that of the target
    log = np.log(np.tan(near / 2) / np.tan(distance / 2))
    assert abs(np.median(log)) < 0.1
    assert np.std(log) == pytest.approx(0.3, rel=0.2)


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


def test_a_trial_starts_near_its_own_target() -> None:
    """A layer that stays away from its repellers keeps away from them in the trials."""
    stage = one_harmonic(12, 1)
    drive = stage_drive(stage)
    trial = trial_targets(stage, 2, count=12, draws=30)
    own = [int(np.flatnonzero((drive == one).all(axis=1))[0]) for one in trial.drive]
    moved = circular_distance(stage.phi0_rad.ravel()[own], trial.phi0_rad)
    # the factor moves an angle by spread * sin(angle), at most .3 a sigma
    assert moved.max() < 5 * 0.3
    assert np.median(moved) < 0.3
