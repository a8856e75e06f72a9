"""Decks of pair cells: what each is of, and whom each element hears."""

from __future__ import annotations

import numpy as np
import pytest

from oscc.device import load_card
from oscc.errors import RequestError
from oscc.testing.flat import cells_stage
from oscc_backends.lock import problem
from oscc_backends.lock_spice import build_deck, deck_name, index_row, origin_entry
from oscc_netlists.dialects import DIALECTS
from oscc_netlists.lock import LockDeck
from oscc_netlists.settings import default_settings

CARD = load_card("vo2-two-state-5k5")
PLACE = np.array([[1, 7, 3], [0, 2, 1]])
CELLS = problem(
    cells_stage(
        (0.6, -1.2),
        gain_rad=12.6,
        dwell_periods=100,
        index=PLACE,
        source_index=PLACE,
    )
)


def deck(row: int = 0, dialect: str = "gnucap") -> LockDeck:
    return build_deck(CARD, CELLS, row, default_settings(dialect), program="abc")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_header_says_what_the_deck_is_of(dialect: str) -> None:
    text = deck(0, dialect).text
    for line in ("program: abc", "stage: layer.0.locks", "head: 1", "token: 7"):
        assert f"* {line}\n" in text
    assert "* partner: 3\n" in text
    assert "* periods: 100\n" in text
    assert "program" not in build_deck(CARD, CELLS, 0, default_settings(dialect)).facts


def test_every_weight_names_whom_it_hears() -> None:
    entry = origin_entry(deck())
    assert (entry["head"], entry["token"], entry["partner"]) == (1, 7, 3)
    assert entry["coordinate"] is None
    assert entry["fidelity"] == "oscillators"
    roles = {name: value["role"] for name, value in entry["elements"].items()}
    assert set(roles) == {e.name for e in deck().circuit.elements()}
    assert set(roles.values()) == {"target", "shaper", "weight"}
    # oscillator 1 is the token's: it hears the partner
    assert entry["elements"]["g_1_2"]["sources"] == [3]
    assert entry["elements"]["g_2_1"]["sources"] == [7]


def test_names_and_rows_of_the_index() -> None:
    assert deck_name(deck()) == "layer_0_locks_h1_t7_p3.cir"
    assert deck_name(deck(1), stem="a", finer=True) == "a_h0_t2_p1_finer.cir"
    row = index_row(deck(1), "gnucap/x.cir")
    assert (row["file"], row["dialect"], row["cell"]) == ("gnucap/x.cir", "gnucap", 1)
    assert row["ratio"] == pytest.approx(-1.2)
    assert row["ideal_elements"] == {"E": 2, "G": 2}


def test_cells_that_are_not_there_or_cannot_be_built_are_refused() -> None:
    with pytest.raises(RequestError, match=r"layer\.0\.locks has no cell 2"):
        deck(2)
    short = problem(cells_stage((0.6,), gain_rad=12.6, dwell_periods=10))
    with pytest.raises(RequestError, match=r"locks / cell 0: .*Use more periods"):
        build_deck(CARD, short, 0, default_settings("gnucap"))
    far = problem(cells_stage((0.6, 4.0), gain_rad=12.6, dwell_periods=100))
    with pytest.raises(RequestError, match=r"locks / cell 1: .*detuned by 4"):
        build_deck(CARD, far, 1, default_settings("gnucap"))
