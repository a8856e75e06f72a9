"""Plan of a stage: which dwells run, in which order, for how long."""

from __future__ import annotations

import numpy as np
import pytest

from oscc.ir.plan import Dwell, dwells, total_periods
from oscc.testing.tiny import tiny_stage


def test_plain_is_one_dwell_a_substep() -> None:
    stage = tiny_stage(scheme="plain", substeps=2, dwell_periods=5)
    assert dwells(stage) == (Dwell(0, 0, 5, 0.5), Dwell(0, 1, 5, 0.5))
    assert total_periods(stage) == 10


def test_extrapolated_runs_each_substep_short_and_long() -> None:
    stage = tiny_stage(scheme="extrapolated", substeps=2, dwell_periods=5)
    assert [(d.substep, d.periods) for d in dwells(stage)] == [
        (0, 5),
        (0, 10),
        (1, 5),
        (1, 10),
    ]
    assert total_periods(stage) == 3 * 2 * 5


@pytest.mark.parametrize("scheme", ["plain", "extrapolated", "corrected"])
@pytest.mark.parametrize("update", ["flow", "probe"])
def test_gains_of_a_run_compose_to_the_whole(scheme: str, update: str) -> None:
    stage = tiny_stage(scheme=scheme, substeps=3, update=update, probe_epsilon=0.02)
    plan = dwells(stage)
    short = [d for d in plan if d.periods == stage.dwell_periods]
    wanted = [1.0] if update == "flow" else [0.02, -0.02]
    sums = [sum(d.gain for d in short if d.run == run) for run in range(len(wanted))]
    assert np.allclose(sums, wanted, rtol=4 * np.finfo(float).eps)


def test_a_probe_takes_twice_the_periods() -> None:
    flow = tiny_stage(scheme="extrapolated", substeps=2, dwell_periods=5)
    probe = tiny_stage(
        scheme="extrapolated", substeps=2, dwell_periods=5, update="probe"
    )
    assert total_periods(probe) == 2 * total_periods(flow)
