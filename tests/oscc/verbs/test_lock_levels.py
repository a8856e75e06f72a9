"""Readings by detuning: each is run once, and reads as its cell alone would."""

from __future__ import annotations

import numpy as np
import pytest

from oscc.device import load_card
from oscc.errors import RequestError
from oscc.ir.stage import Stage
from oscc.lower.ssa import LockPlan
from oscc.testing.flat import cells_stage
from oscc.verbs.lock_levels import LockLevels
from oscc.verbs.stage_run import run_cells

CARD = load_card("vo2-two-state-5k5")
PERIODS = 60
PLAN = LockPlan(periods=PERIODS)


def cells(ratios: tuple[float, ...]) -> Stage:
    return cells_stage(ratios, gain_rad=PLAN.pull_rad, dwell_periods=PERIODS)


@pytest.mark.parametrize("engine", ["phase", "circuit"])
def test_cells_read_what_they_read_alone(engine: str) -> None:
    levels = LockLevels(PLAN, CARD)
    for ratios in ((0.3, 0.9, 0.3, 1.4), (0.9, 0.0, 1.01), (1.4, 0.3)):
        stage = cells(ratios)
        found, alone = levels.read(stage, engine), run_cells(stage, engine, CARD)
        np.testing.assert_allclose(found.coherence, alone.coherence, atol=1e-9)
        np.testing.assert_array_equal(found.locked, alone.locked)
    assert levels.runs(engine) == 5


def test_order_and_company_change_no_bit() -> None:
    """The same windows in another order, in other batches, give the same bytes."""
    one, other = LockLevels(PLAN, CARD), LockLevels(PLAN, CARD, threads=2)
    first, second = cells((0.2, 0.8, 1.1)), cells((0.8, 0.5))
    ahead = [one.read(stage, "circuit").coherence for stage in (first, second)]
    back = [other.read(stage, "circuit").coherence for stage in (second, first)]
    np.testing.assert_array_equal(ahead[0], back[1])
    np.testing.assert_array_equal(ahead[1], back[0])


def test_engines_are_kept_apart() -> None:
    levels, stage = LockLevels(PLAN, CARD), cells((0.6, 1.3))
    phase, circuit = (levels.read(stage, name) for name in ("phase", "circuit"))
    assert phase.coherence[0] != circuit.coherence[0]
    assert (levels.runs("phase"), levels.runs("circuit")) == (2, 2)
    assert levels.runs("ir") == 0


def test_cells_of_another_plan_are_refused() -> None:
    levels = LockLevels(PLAN, CARD)
    for stage in (
        cells_stage((0.5,), gain_rad=PLAN.pull_rad, dwell_periods=PERIODS + 1),
        cells_stage((0.5,), gain_rad=1.01 * PLAN.pull_rad, dwell_periods=PERIODS),
    ):
        with pytest.raises(RequestError, match="are kept here"):
            levels.read(stage, "phase")
