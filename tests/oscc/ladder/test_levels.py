"""Comparison and judgement of levels, on errors that are known beforehand."""

from __future__ import annotations

import numpy as np
import pytest

from oscc.arrays import FloatArray
from oscc.errors import RequestError, UndecidedError
from oscc.ir import Program, Stage
from oscc.ladder.levels import (
    LevelResult,
    StageErrors,
    compare,
    compare_dwells,
    drive_strength,
    judge,
)
from oscc.observables import Observables
from oscc.testing.tiny import tiny_program, tiny_stage
from oscc_backends import phase

NAME = "layer.0.coupling"


def errors_of(values: object, stage: str = NAME) -> StageErrors:
    error = np.array(values, dtype=float)
    count = error.shape[0]
    index = np.stack([np.arange(count), 2 * np.arange(count)], axis=1)
    return StageErrors(stage, index, error, 0.5 + np.arange(count))


def verdict(*errors: StageErrors, tolerance: float = 0.01) -> LevelResult:
    return judge(
        errors,
        level="circuit",
        engine="circuit",
        reference="phase",
        tolerance_rad=tolerance,
    )


def test_figures_are_those_of_the_absolute_error() -> None:
    found = verdict(errors_of([0.003, -0.004, 0.0, 0.0]))
    assert found.rms_rad == pytest.approx(0.0025, rel=1e-12)
    assert found.median_rad == pytest.approx(0.0015, rel=1e-12)
    assert found.max_rad == 0.004
    assert found.p99_rad == pytest.approx(0.004 - 0.03 * 0.001, rel=1e-12)
    assert (found.targets, found.slips) == (4, 0)
    assert found.passed is True
    assert found.reason == ""


def test_the_worst_place_is_named_with_its_signed_error_and_drive() -> None:
    found = verdict(errors_of([0.003, -0.004, 0.001]), errors_of([0.002], "other"))
    assert found.worst == {
        "stage": NAME,
        "token": 1,
        "coordinate": 2,
        "error_rad": -0.004,
        "drive": 1.5,
    }
    far = verdict(errors_of([0.003]), errors_of([0.0, 0.0, -0.1], "other"))
    assert far.worst is not None
    assert (far.worst["stage"], far.worst["token"]) == ("other", 2)


def test_the_worst_dwell_of_many_is_found() -> None:
    found = verdict(errors_of([[0.0, 0.001], [-0.005, 0.002], [0.0, 0.0]]))
    assert found.worst is not None
    assert (found.worst["token"], found.worst["error_rad"]) == (1, -0.005)
    assert found.targets == 3


def test_rms_over_stages_counts_targets_not_stages() -> None:
    found = verdict(errors_of([0.0] * 3), errors_of([0.02], "other"))
    assert found.rms_rad == pytest.approx(0.01, rel=1e-12)


@pytest.mark.parametrize(
    ("rms", "passed", "reason"),
    [
        (0.01, True, ""),
        (0.0100001, False, "10 mrad rms, 10 asked"),
        (0.03, False, "30 mrad rms, 10 asked"),
    ],
)
def test_the_tolerance_is_met_at_its_value(
    rms: float, passed: bool, reason: str
) -> None:
    found = verdict(errors_of([rms, -rms]))
    assert found.passed is passed
    assert found.reason == reason


def test_one_slip_fails_whatever_the_rms() -> None:
    turned = errors_of([0.0] * 999 + [2.0 * np.pi])
    found = verdict(turned, tolerance=1.0)
    assert found.rms_rad is not None
    assert found.rms_rad < 1.0
    assert found.passed is False
    assert found.slips == 1
    assert found.reason == ("1 of 1000 read-outs slipped by more than a quarter turn")


def test_a_slip_begins_above_a_quarter_turn() -> None:
    assert verdict(errors_of([np.pi / 2]), tolerance=9.0).slips == 0
    assert verdict(errors_of([np.nextafter(np.pi / 2, 9)]), tolerance=9.0).slips == 1


def test_nothing_simulated_is_no_pass() -> None:
    with pytest.raises(UndecidedError, match="no target was simulated"):
        verdict()
    with pytest.raises(UndecidedError, match="no target was simulated"):
        verdict(errors_of(np.zeros((0,))))


def test_json_holds_the_keys_of_the_contract_alone() -> None:
    assert set(verdict(errors_of([0.0])).to_json()) == {
        *("level", "engine", "reference", "targets", "rms_rad", "median_rad"),
        *("p99_rad", "max_rad", "slips", "tolerance_rad", "passed", "reason", "worst"),
    }


def shifted(program: Program, change: FloatArray, **arrays: FloatArray) -> Observables:
    """Observables that are off the digital layer by a known amount."""
    stage = program.stages[0]
    content = {f"{NAME}.phase": stage.digital_rad + change}
    named = {f"{NAME}.{key}": value for key, value in arrays.items()}
    return Observables("circuit", program.digest(), content | named, {})


def digital(stage: Stage) -> FloatArray:
    return stage.digital_rad


def test_compare_takes_level_minus_reference_target_by_target() -> None:
    program = tiny_program()
    change = np.arange(16.0).reshape(4, 4) - 8.0
    (found,) = compare(program, shifted(program, change), digital)
    assert np.abs(found.error_rad - change.ravel()).max() < 1e-13
    assert found.index[7].tolist() == [1, 3]
    assert found.drive.tolist() == drive_strength(program.stages[0]).ravel().tolist()


def test_errors_of_whole_turns_stay_errors() -> None:
    """Unwrapped phases are compared, so a lost turn shows."""
    program = tiny_program()
    change = np.zeros((4, 4))
    change[2, 1] = 2.0 * np.pi
    (found,) = compare(program, shifted(program, change), digital)
    assert verdict(found).slips == 1


def test_compare_of_a_sample_uses_its_index() -> None:
    program = tiny_program()
    stage = program.stages[0]
    index = np.array([[0, 3], [2, 1]])
    phases = stage.digital_rad[index[:, 0], index[:, 1]] + [0.1, -0.2]
    seen = Observables(
        "ngspice",
        program.digest(),
        {f"{NAME}.phase": phases, f"{NAME}.index": index},
        {},
    )
    (found,) = compare(program, seen, digital)
    assert np.abs(found.error_rad - [0.1, -0.2]).max() < 1e-13
    assert found.index.tolist() == index.tolist()


def test_dwells_are_compared_row_by_row_with_the_circuit() -> None:
    program = tiny_program()
    random = np.random.default_rng(0)
    ends = random.standard_normal((16, 3))
    above = shifted(program, np.zeros((4, 4)), **{"raw.end_rad": ends})
    index = np.array([[1, 2], [3, 0]])
    off = np.array([[0.1, 0.2, 0.3], [-0.1, 0.0, 0.5]])
    seen = Observables(
        "ngspice",
        program.digest(),
        {
            f"{NAME}.phase": np.zeros(2),
            f"{NAME}.index": index,
            f"{NAME}.raw.end_rad": ends[[6, 12]] + off,
        },
        {},
    )
    (found,) = compare_dwells(program, seen, above)
    assert np.abs(found.error_rad - off).max() < 1e-15
    assert found.index.tolist() == index.tolist()


def test_runs_without_read_outs_of_dwells_are_refused() -> None:
    program = tiny_program()
    bare = shifted(program, np.zeros((4, 4)))
    with pytest.raises(RequestError, match=r"the runs hold no `layer\.0"):
        compare_dwells(program, bare, bare)


def test_drive_strength_adds_the_sizes_of_the_harmonics() -> None:
    stage = tiny_stage(3, gain_rad=6.0)
    wanted = np.abs(phase.drive(stage)).sum(axis=1).reshape(4, 4)
    assert np.abs(drive_strength(stage) - wanted).max() < 1e-12
