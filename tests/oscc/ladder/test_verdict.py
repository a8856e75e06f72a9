"""Verdicts: exit status, words for a person, strict JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from oscc.files import dump_json
from oscc.ladder.convergence import Convergence
from oscc.ladder.levels import LevelResult
from oscc.ladder.verdict import Verdict


def level(
    passed: bool | None, name: str = "circuit", *, blame: int = 0, reason: str = ""
) -> LevelResult:
    figures: dict[str, Any] = {
        "targets": 16,
        "rms_rad": 0.002,
        "median_rad": 0.001,
        "p99_rad": 0.003,
        "max_rad": 0.004,
        "worst": {
            "stage": "layer.0.coupling",
            "token": 3,
            "coordinate": 1,
            "error_rad": -0.004,
            "drive": 2.5,
        },
    }
    if passed is None:
        figures = {}
    return LevelResult(
        level=name,
        engine=name,
        reference="phase",
        tolerance_rad=0.01,
        passed=passed,
        reason=reason,
        blame=blame,
        **figures,
    )


def verdict(*levels: LevelResult, **changes: Any) -> Verdict:
    return Verdict("d" * 64, levels, {}, **changes)


MOVED = Convergence("ngspice", 4, 0.004, False, (("layer.0.coupling", 3, 1),))
SETTLED = Convergence("ngspice", 4, 0.0001, True)


@pytest.mark.parametrize(
    ("levels", "convergence", "status"),
    [
        ([level(True)], (), 0),
        ([level(True), level(True)], (SETTLED,), 0),
        ([level(True)], (MOVED,), 4),
        ([level(True), level(False)], (), 1),
        ([level(False), level(None, blame=3)], (), 1),
        ([level(True), level(None, blame=3)], (), 3),
        ([level(None, blame=4), level(None, blame=3)], (), 3),
        ([level(True), level(None, blame=4)], (), 4),
        ([level(False)], (MOVED,), 1),
    ],
)
def test_exit_status(
    levels: list[LevelResult], convergence: tuple[Convergence, ...], status: int
) -> None:
    found = verdict(*levels, convergence=convergence)
    assert found.exit_status == status
    assert found.passed is (status == 0)


def lines(found: Verdict) -> list[str]:
    return str(found).splitlines()


def test_a_pass_ends_in_the_word_pass() -> None:
    assert lines(verdict(level(True)))[-1] == "PASS"


def test_a_fail_names_level_and_reason() -> None:
    text = lines(verdict(level(True), level(False, reason="30 mrad rms, 10 asked")))
    assert text[-1] == "FAIL   circuit against phase: 30 mrad rms, 10 asked"
    assert " FAIL " in text[2]


def test_what_could_not_run_is_inconclusive() -> None:
    lost = level(None, "spice", blame=3, reason="ngspice is not found")
    text = lines(verdict(level(True), lost))
    assert text[-1] == "INCONCLUSIVE   spice (spice): ngspice is not found"
    assert "undecided" in text[2]


def test_what_did_not_converge_is_inconclusive() -> None:
    text = lines(verdict(level(True), convergence=(MOVED,)))
    assert text[-1] == (
        "INCONCLUSIVE   ngspice: halving the step moves 1 of 4 targets by up to "
        "4.00 mrad, most layer.0.coupling token 3 coordinate 1"
    )
    assert text[-2] == "halving the step moves ngspice by at most 4.00 mrad: " + (
        "not converged"
    )


def test_a_failure_is_said_before_what_is_undecided() -> None:
    lost = level(None, "spice", blame=3, reason="gone")
    assert lines(verdict(lost, level(False, reason="r")))[-1].startswith("FAIL ")


def test_the_table_has_figures_with_prefixes_and_the_worst_place() -> None:
    head, row, *_ = lines(verdict(level(True)))
    assert head.split() == [
        *("level", "engine", "against", "targets", "rms", "max", "tolerance"),
        *("verdict", "worst"),
    ]
    assert "2.00 mrad" in row
    assert "4.00 mrad" in row
    assert "10.0 mrad" in row
    assert row.endswith("layer.0.coupling token 3 coordinate 1")


def test_the_gap_is_listed_largest_first() -> None:
    causes = {
        "averaging": {"rms_rad": 0.001, "max_rad": 0.01},
        "euler_gap": {"rms_rad": 0.5, "max_rad": 1.0},
    }
    text = str(Verdict("d", (level(True),), causes))
    assert "gap by cause (rms): euler_gap 500 mrad, averaging 1.00 mrad" in text


def test_notes_of_the_program_are_repeated() -> None:
    assert "note: changed as asked" in str(
        verdict(level(True), notes=("changed as asked",))
    )


KEYS = {
    *("format", "program", "passed", "loop", "fidelity", "ideal_elements", "levels"),
    *("causes", "convergence", "model"),
}


def test_json_is_strict_and_holds_the_keys_of_the_contract() -> None:
    found = verdict(
        level(True), level(None, blame=4, reason="x"), convergence=(MOVED,)
    ).to_json()
    assert set(found) >= KEYS
    assert found["format"] == "oscc.verify/1"
    assert found["model"] is None
    again = json.loads(dump_json(found), parse_constant=pytest.fail)
    assert again == json.loads(json.dumps(found))
    assert again["levels"][1]["rms_rad"] is None
    assert again["levels"][1]["passed"] is None
