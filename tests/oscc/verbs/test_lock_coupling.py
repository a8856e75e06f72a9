"""The coupling of pair cells is the strongest that keeps the law to the accuracy."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oscc
from oscc.device import load_card
from oscc.errors import RequestError
from oscc.ladder.locks import lock_ratio
from oscc.testing.locks import lock_checkpoint
from oscc.verbs.lock_coupling import COUPLINGS, choose_coupling, law_error

CARD = load_card("vo2-two-state-5k5")
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "lock.md"


@pytest.mark.parametrize(
    ("accuracy", "rate"), [(0.013, 0.04), (0.01, 0.02), (0.006, 0.01), (0.0044, 0.005)]
)
def test_more_accuracy_takes_a_weaker_coupling(accuracy: float, rate: float) -> None:
    found = choose_coupling(CARD, accuracy, 1.05)
    assert found.rate == rate
    assert found.law_error is not None
    assert found.law_error <= 0.5 * accuracy
    stronger = [one for one in COUPLINGS if one > rate]
    assert all(law_error(CARD, one) > 0.5 * accuracy for one in stronger)


def test_an_accuracy_that_no_coupling_gives_is_refused_with_one_that_does() -> None:
    with pytest.raises(RequestError, match=r"K/w0 0\.005") as caught:
        choose_coupling(CARD, 0.003, 1.05)
    found = re.search(r"Ask for ([\d.]+) mrad", str(caught.value))
    assert found is not None
    assert choose_coupling(CARD, 1e-3 * float(found[1]), 1.05).rate == 0.005


def test_a_card_whose_law_is_none_is_refused() -> None:
    with pytest.raises(RequestError, match="no coupling of pair cells"):
        choose_coupling(load_card("vo2-two-state-20k"), 0.01, 1.05)


def test_the_trim_has_to_reach_the_margin() -> None:
    """At K/w0 .04 the trim reaches 1.46 lock ranges: beyond that, a weaker one."""
    assert choose_coupling(CARD, 0.02, 1.4).rate == 0.04
    assert choose_coupling(CARD, 0.02, 1.6).rate == 0.02
    assert CARD.trim is not None
    stiff = dataclasses.replace(
        CARD, trim=dataclasses.replace(CARD.trim, range_relative=1e-3)
    )
    with pytest.raises(RequestError, match=r"does not reach 1\.05 lock ranges"):
        choose_coupling(stiff, 0.02, 1.05)


def rates(program: Any) -> list[float]:
    return [lock_ratio(s)[1] / (2 * np.pi * s.dwell_periods) for s in program.stages]


def test_compile_chooses_and_records_it() -> None:
    text = "import os, sys"
    coarse, usual = (
        oscc.compile(lock_checkpoint(), text, accuracy_mrad=a) for a in (13.0, 10.0)
    )
    np.testing.assert_allclose(rates(coarse), 0.04, rtol=1e-9)
    np.testing.assert_allclose(rates(usual), 0.02, rtol=1e-9)
    for one, other in zip(coarse.stages, usual.stages, strict=True):
        assert 2 * one.dwell_periods == other.dwell_periods
    entry = usual.provenance["passes"][0]
    assert entry["name"] == "choose_coupling"
    assert entry["coupling"] == 0.02
    assert entry["law_error"] <= entry["allowed"] == 0.005
    given = oscc.compile(lock_checkpoint(), text, lock_coupling=0.03)
    np.testing.assert_allclose(rates(given), 0.03, rtol=1e-9)
    assert given.provenance["passes"][0]["name"] == "choose_locks"


def test_the_page_holds_the_law_errors() -> None:
    rows = re.findall(r"^\| `(vo2[^`]*)` \| (.*) \|$", PAGE.read_text("utf-8"), re.M)
    assert len(rows) == 3
    for name, cells in rows:
        for rate, shown in zip(COUPLINGS, cells.split(" | "), strict=True):
            assert f"{law_error(load_card(name), rate):.2g}" == f"0{shown}"
