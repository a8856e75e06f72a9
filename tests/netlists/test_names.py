"""Names, comments and numbers of decks: nothing a user can supply becomes a command."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oscc.errors import RequestError
from oscc_netlists.names import (
    NAME,
    require_name,
    require_node,
    safe_comment,
    safe_name,
    unique_names,
)
from oscc_netlists.numbers import number, read_number


@pytest.mark.parametrize(
    "name",
    ["", "Q", "gnd", "GND!", "0", "1n", "a b", "a.b", "a\n.end", "ü", "time", "a>b"],
)
def test_names_that_a_simulator_reads_otherwise_are_refused(name: str) -> None:
    with pytest.raises(RequestError, match="lower case"):
        require_name(name)


def test_ground_is_a_node_but_no_name() -> None:
    assert require_node("0") == "0"
    with pytest.raises(RequestError):
        require_name("0")


def test_layers_that_differ_by_case_stay_different() -> None:
    names = unique_names(["Q", "q", "gnd", "GND!", "0", "q_2"])
    assert len(set(names.values())) == 6
    assert "gnd" not in names.values()


@given(st.lists(st.text(max_size=30), max_size=12))
def test_any_texts_get_unique_safe_names(words: list[str]) -> None:
    names = unique_names(words)
    assert set(names) == set(words)
    assert len(set(names.values())) == len(names)
    for name in names.values():
        require_name(name)


@given(st.text(max_size=300))
def test_safe_names_are_names(word: str) -> None:
    assert NAME.fullmatch(safe_name(word))


@given(st.text(max_size=60))
def test_a_comment_is_one_plain_line(text: str) -> None:
    found = safe_comment(text)
    assert len(found.splitlines()) <= 1
    assert not set(found) & set("\n\r>!`\\")
    assert found.isascii()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_numbers_must_be_finite(value: float) -> None:
    with pytest.raises(RequestError, match="finite"):
        number(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_read_back_to_the_same_bits(value: float) -> None:
    text = number(np.float64(value))
    assert "np" not in text
    assert read_number(text) == value


@pytest.mark.parametrize("text", ["1M", "1F", "1meg", "1k", "nan", "inf", "0x1", "1,5"])
def test_unit_letters_are_refused(text: str) -> None:
    with pytest.raises(RequestError, match="plain number"):
        read_number(text)
