"""The dwell of pair cells."""

from __future__ import annotations

import numpy as np
import pytest

from oscc.device import load_card
from oscc.errors import RequestError
from oscc.ladder.locks import lock_ratio
from oscc.passes import PassOptions
from oscc.passes.locks import choose_locks, shortest_dwell, undecided_share
from oscc.testing.flat import cells_stage
from oscc.testing.tiny import tiny_program

PULL = 2 * np.pi * 0.02 * 100


def options(periods: int | None = None) -> PassOptions:
    return PassOptions(load_card("vo2-two-state-5k5"), None, periods=periods)


def program(x):
    return tiny_program(cells_stage(x, gain_rad=PULL, dwell_periods=100))


def test_far_cells_keep_the_shortest_dwell() -> None:
    made = choose_locks(program(np.linspace(0, 0.9, 50)), options())
    assert made.stages[0].dwell_periods == 100
    (entry,) = made.provenance["passes"]
    assert (entry["name"], entry["coupling"]) == ("choose_locks", pytest.approx(0.02))
    assert entry["stages"][0]["undecided_share"] == 0.0


def test_cells_near_the_edge_get_longer_dwells_until_few_are_open() -> None:
    x = np.concatenate([np.linspace(0, 0.9, 50), np.full(5, 0.975)])
    made = choose_locks(program(x), options())
    stage = made.stages[0]
    ratio, pull = lock_ratio(stage)
    assert stage.dwell_periods > 100
    assert pull == pytest.approx(PULL * stage.dwell_periods / 100)
    np.testing.assert_allclose(ratio, x, atol=1e-12)  # the cells are the same
    assert undecided_share(ratio, pull) == 0.0
    assert choose_locks(made, options()).stages[0].dwell_periods == stage.dwell_periods


def test_asked_periods_are_taken() -> None:
    made = choose_locks(program(np.full(9, 0.975)), options(60))
    assert made.stages[0].dwell_periods == 60
    assert made.provenance["passes"][0]["stages"][0]["undecided_share"] == 1.0


def test_cells_on_the_edge_itself_have_no_dwell() -> None:
    with pytest.raises(RequestError, match="too near the edge"):
        shortest_dwell([np.full(9, 1.00001)], 0.02)


def test_other_stages_are_left_alone() -> None:
    made = tiny_program()
    assert choose_locks(made, options()) is made
