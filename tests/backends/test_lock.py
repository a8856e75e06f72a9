"""Backend of lock stages: what a cell is, and what is no lock stage."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oscc.errors import RequestError
from oscc.ir import Edges
from oscc.testing.flat import cells_stage, modes_stage
from oscc.testing.tiny import tiny_program, tiny_stage
from oscc_backends import circuit, lock, phase
from oscc_backends.artefact import LockProblem, ScalarProblem


def test_a_cell_is_known_by_its_ratio() -> None:
    ratio = np.array([0.0, 0.6, -1.04, 1.2])
    stage = cells_stage(ratio, gain_rad=12.6, dwell_periods=100)
    found = lock.problem(stage)
    np.testing.assert_allclose(found.ratio, ratio, atol=1e-15)
    assert found.lock_rad == 12.6
    assert found.periods == 100
    assert found.rate == pytest.approx(12.6 / (2 * np.pi * 100))
    assert np.array_equal(found.index, stage.index)


def test_gain_and_strength_make_one_coupling() -> None:
    """As lowered: strengths differ, gains make up for it, to rounding."""
    gamma = np.array([0.37, 3.1, 1e-3])
    row = np.arange(3)
    edges = Edges(row, row, np.ones(3, np.int64), gamma, np.zeros(3))
    stage = cells_stage(gain_rad=12.6, couplings=(edges,))
    gain = 12.6 / gamma
    made = cells_stage(
        gain_rad=12.6,
        couplings=(edges,),
        **{"phi0_rad": stage.phi0_rad + 0.3, "theta_rad": stage.theta_rad + 0.3},
    )
    found = lock.problem(_with(made, gain_rad=gain))
    assert found.lock_rad == pytest.approx(12.6, rel=1e-12)
    np.testing.assert_allclose(found.ratio, [0.0, 0.6, 1.2], rtol=1e-12)


def _with(stage: Any, **changes: Any) -> Any:
    fields = {name: getattr(stage, name) for name in stage.__slots__}
    return type(stage)(**(fields | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scheme": "extrapolated"}, "one plain dwell"),
        ({"substeps": 2}, "one plain dwell"),
        ({"update": "probe"}, "one plain dwell"),
        ({"phi0_rad": [0, 0.1, 0]}, r"1 of 3 cells have a start apart.*cell 1"),
        ({"gain_rad": [1, 1, -1]}, r"not above zero.*first cell 2"),
        ({"gain_rad": [0, 1, 1]}, r"not above zero.*first cell 0"),
        ({"gain_rad": [1, 1, 1.1]}, r"another coupling than 1 rad.*cell 2"),
    ],
)
def test_what_is_no_lock_stage_is_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(RequestError, match=rf"stage layer\.0\.locks: .*{message}"):
        lock.problem(_with(cells_stage(), **changes))


def test_edges_must_be_one_a_cell() -> None:
    two = np.array([0, 1, 1, 2])
    source = np.array([0, 1, 2, 2])
    edges = Edges(two, source, np.ones(4, np.int64), np.ones(4), np.zeros(4))
    with pytest.raises(RequestError, match="4 edges for 3 cells"):
        lock.problem(cells_stage(couplings=(edges,)))
    row = np.arange(3)
    turned = Edges(row, row, np.ones(3, np.int64), np.ones(3), np.array([0, 0, 0.1]))
    with pytest.raises(RequestError, match=r"frustration.*first cell 2"):
        lock.problem(cells_stage(couplings=(turned,)))
    with pytest.raises(RequestError, match="reads phases"):
        lock.problem(modes_stage())


@pytest.mark.parametrize("backend", [phase, circuit])
def test_a_mixed_program_keeps_its_order(backend: Any) -> None:
    program = tiny_program(tiny_stage(), cells_stage())
    kinds = [type(p) for p in backend.build(program).problems]
    assert kinds == [ScalarProblem, LockProblem]
    one = backend.build(program, stages=["layer.0.locks"])
    assert [p.stage for p in one.problems] == ["layer.0.locks"]
