"""The convergence gate: half the step may move a target by a third of the tolerance."""

from __future__ import annotations

import numpy as np
import pytest

from oscc.ir import Program
from oscc.ladder.convergence import gate, run_twice
from oscc.observables import Observables
from oscc.testing.tiny import tiny_program, tiny_stage

NAME = "layer.0.coupling"


def run(
    program: Program, moved: object, stages: tuple[str, ...] = (NAME,)
) -> Observables:
    """A simulator's run of two targets, with what half the step changed."""
    change = np.array(moved, dtype=float)
    arrays = {}
    for name in stages:
        ends = np.arange(change.size, dtype=float).reshape(change.shape)
        arrays |= {
            f"{name}.phase": np.zeros(len(change)),
            f"{name}.index": np.array([[1, 2], [3, 0]])[: len(change)],
            f"{name}.raw.end_rad": ends,
            f"{name}.raw.half_step_rad": ends + change,
        }
    return Observables("ngspice", program.digest(), arrays, {})


def test_the_change_of_a_target_is_the_rms_over_its_dwells() -> None:
    program = tiny_program()
    found = gate(program, run(program, [[0.3, -0.4], [0.1, 0.1]]), tolerance_rad=9.0)
    assert found is not None
    assert found.change_rad == pytest.approx(np.sqrt(0.125))
    assert (found.engine, found.targets, found.passed) == ("ngspice", 2, True)
    assert found.unconverged == ()


@pytest.mark.parametrize(("change", "passed"), [(0.00099, True), (0.00101, False)])
def test_a_third_of_the_tolerance_is_allowed(change: float, passed: bool) -> None:
    program = tiny_program()
    found = gate(program, run(program, [[0.0], [change]]), tolerance_rad=0.003)
    assert found is not None
    assert found.passed is passed


def test_targets_that_moved_are_named() -> None:
    program = tiny_program()
    found = gate(program, run(program, [[0.0], [0.002]]), tolerance_rad=0.003)
    assert found is not None
    assert found.unconverged == ((NAME, 3, 0),)
    assert found.sentence == (
        "halving the step moves 1 of 2 targets by up to 2.00 mrad, most "
        f"{NAME} token 3 coordinate 0"
    )
    assert found.to_json() == {
        "engine": "ngspice",
        "targets": 2,
        "change_rad": pytest.approx(0.002),
        "passed": False,
        "unconverged": [[NAME, 3, 0]],
    }


def test_the_target_that_moved_most_comes_first() -> None:
    program = tiny_program()
    found = gate(program, run(program, [[0.004], [-0.005]]), tolerance_rad=0.003)
    assert found is not None
    assert [place[1] for place in found.unconverged] == [3, 1]


def test_a_run_at_one_step_is_no_gate() -> None:
    program = tiny_program()
    once = run(program, [[0.0]])
    arrays = {k: v for k, v in once.arrays.items() if "half" not in k}
    bare = Observables("ngspice", program.digest(), arrays, {})
    assert not run_twice(bare)
    assert gate(program, bare, tolerance_rad=1.0) is None


def test_one_stage_at_one_step_spoils_the_gate() -> None:
    stages = (tiny_stage(), tiny_stage(1, name="layer.1.coupling"))
    program = tiny_program(*stages)
    both = run(program, [[0.0]], (NAME, "layer.1.coupling"))
    assert run_twice(both)
    arrays = dict(both.arrays)
    del arrays["layer.1.coupling.raw.half_step_rad"]
    half = Observables("ngspice", program.digest(), arrays, {})
    assert gate(program, half, tolerance_rad=1.0) is None
