"""The sample for decks: strata of drive, three special places, distinct tokens."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oscc.arrays import IntArray
from oscc.ir import Stage
from oscc.ladder.levels import drive_strength
from oscc.ladder.sample import stratified
from oscc.seeds import stream
from oscc.testing.tiny import tiny_stage


def drawn(stage: Stage, count: int, seed: int = 0) -> IntArray:
    return stratified(stage, count, stream(seed, "sample"))


def special_stage(seed: int) -> Stage:
    """Rare special places: one negative gain, one increment above 2 rad."""
    stage = tiny_stage(seed, tokens=20, coordinates=6, gain_rad=3.0)
    gain = np.abs(stage.gain_rad)
    gain[7, 2] *= -1.0
    moved = np.full(gain.shape, 0.5)
    moved[11, 4] = -2.5
    return replace(stage, gain_rad=gain, digital_rad=stage.phi0_rad + moved)


@given(st.integers(0, 10_000), st.integers(3, 30))
def test_the_three_special_places_are_in_every_sample(seed: int, count: int) -> None:
    stage = special_stage(3)
    index = drawn(stage, count, seed)
    places = {(int(t), int(j)) for t, j in index}
    assert (7, 2) in places
    assert (11, 4) in places
    drive = drive_strength(stage)
    strong = drive[index[:, 0], index[:, 1]] > np.quantile(drive, 0.95)
    assert strong.any()


@given(st.integers(0, 10_000), st.integers(1, 130))
def test_targets_are_distinct_ascending_and_as_many_as_asked(
    seed: int, count: int
) -> None:
    index = drawn(special_stage(3), count, seed)
    assert index.shape == (min(count, 120), 2)
    flat = index[:, 0] * 6 + index[:, 1]
    assert (np.diff(flat) > 0).all()
    assert index.dtype == np.int64


@given(st.integers(0, 10_000))
def test_tokens_are_not_repeated_while_there_are_others(seed: int) -> None:
    index = drawn(special_stage(3), 12, seed)
    assert len(set(index[:, 0].tolist())) == 12


@given(st.integers(0, 10_000))
def test_drives_are_spread_over_their_range(seed: int) -> None:
    """Five bands of drive besides the special places: none stays empty."""
    stage = special_stage(3)
    drive = drive_strength(stage)
    index = drawn(stage, 8, seed)
    rank = np.searchsorted(np.sort(drive.ravel()), drive[index[:, 0], index[:, 1]])
    assert {int(r) // 24 for r in rank} == {0, 1, 2, 3, 4}


def test_the_seed_decides() -> None:
    stage = special_stage(3)
    assert drawn(stage, 8).tolist() == drawn(stage, 8).tolist()
    assert any(
        drawn(stage, 8).tolist() != drawn(stage, 8, seed).tolist() for seed in (1, 2)
    )


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_targets_are_special_ones_first(count: int) -> None:
    index = drawn(special_stage(3), count)
    assert len(index) == count
    drive = drive_strength(special_stage(3))
    strong = drive[index[:, 0], index[:, 1]] > np.quantile(drive, 0.95)
    assert strong.any()


def test_a_stage_without_special_places_still_gives_its_targets() -> None:
    stage = tiny_stage(2, tokens=1, coordinates=1, heads=1)
    still = replace(stage, gain_rad=[[1.0]])
    assert drawn(still, 8).tolist() == [[0, 0]]


def test_none_asked_for_is_an_empty_list() -> None:
    assert drawn(special_stage(3), 0).shape == (0, 2)
