"""legalise: the card's limit in one sentence, with the target that breaks it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from oscc.device import load_card
from oscc.errors import RequestError
from oscc.ir import Stage
from oscc.passes import PIPELINE, PassOptions, choose_dwell, legalise, run
from oscc.passes.correlators import choose_correlators
from oscc.passes.legalise import largest_injection
from oscc.passes.locks import choose_locks
from oscc.testing.tiny import tiny_program, tiny_stage
from oscc_backends import circuit
from oscc_sims.circuit import solve

CARD = load_card("vo2-two-state-6k")


def options(**changes: Any) -> PassOptions:
    return PassOptions(**({"card": CARD, "trial": None} | changes))


@pytest.mark.parametrize("scheme", ["plain", "extrapolated", "corrected"])
@pytest.mark.parametrize("update", ["flow", "probe"])
def test_the_ratio_is_the_one_that_the_engine_finds(scheme: str, update: str) -> None:
    stage = tiny_stage(
        2, scheme=scheme, update=update, substeps=2, dwell_periods=20, gain_rad=3.0
    )
    ratio, worst = largest_injection(stage, options())
    _, runs = solve(CARD, circuit.problem(stage))
    found = np.max([r.injection_ratio for r in runs], axis=0)
    assert ratio == pytest.approx(found.max(), rel=1e-9)
    assert worst == int(found.argmax())


def test_detuning_counts() -> None:
    stage = tiny_stage(2, gain_rad=0.0, dwell_periods=20)
    detuned = replace(stage, detuning_rad=np.full(stage.phi0_rad.shape, 2.0))
    assert largest_injection(stage, options())[0] == 0.0
    assert largest_injection(detuned, options())[0] > 0.0


def strong() -> Stage:
    return tiny_stage(2, gain_rad=40.0, scheme="plain", substeps=2, dwell_periods=4)


def test_a_target_beyond_the_limit_is_named() -> None:
    stage = strong()
    ratio, worst = largest_injection(stage, options())
    assert ratio > 0.8
    token, coordinate = divmod(worst, 4)
    enough = int(np.ceil(4 * ratio / 0.8))
    legalise(tiny_program(replace(stage, dwell_periods=enough)), options())
    with pytest.raises(RequestError) as caught:
        legalise(tiny_program(stage), options())
    assert str(caught.value) == (
        f"stage layer.0.coupling / token {token} / coordinate {coordinate}: "
        f"2 substeps of 4 periods need {ratio / 0.8:.3g}x the largest injection of "
        f"card vo2-two-state-6k. Ask for {enough} periods or more, or for more "
        "substeps: the current falls as one over both."
    )


def test_it_changes_nothing_and_records_the_share() -> None:
    program = tiny_program()
    legal = legalise(program, options(injection_limit=0.5))
    assert legal == program
    (row,) = legal.provenance["passes"][-1]["stages"]
    assert row["share_of_limit"] == pytest.approx(row["injection_ratio"] / 0.5)
    again = legalise(legal, options(injection_limit=0.5))
    assert again == legal
    assert again.provenance["passes"][0] == again.provenance["passes"][1]


def test_the_pipeline_is_in_order_and_tells_of_each_pass() -> None:
    steps = (choose_locks, choose_dwell, choose_correlators, legalise)
    assert steps == PIPELINE
    seen = []
    fixed = options(scheme="plain", substeps=2, periods=30)
    program = run(tiny_program(), fixed, after=lambda name, _: seen.append(name))
    assert seen == [step.__name__ for step in steps]
    # a program without pair cells or correlations has nothing to tell of theirs
    told = [p["name"] for p in program.provenance["passes"]]
    assert told == ["choose_dwell", "legalise"]
