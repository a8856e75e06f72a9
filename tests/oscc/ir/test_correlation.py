"""Correlations as values: what is refused, and the way to the file and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oscc.errors import RequestError
from oscc.ir.codec import decode, encode
from oscc.ir.correlation import Correlation
from oscc.ir.interpret import interpret_correlation
from oscc.testing.tiny import tiny_program


def bank(**changes: Any) -> Correlation:
    random = np.random.default_rng(3)
    values: dict[str, Any] = {
        "name": "layer.0.score",
        "query_rad": random.uniform(-3, 3, (3, 4)),
        "key_rad": random.uniform(-3, 3, (5, 4)),
        "query_gain": random.normal(size=(3, 4)),
        "key_gain": random.normal(size=(5, 4)),
        "digital": np.zeros((2, 3, 5)),
        "first_token": 2,
    }
    return Correlation(**(values | changes))


def test_counts_follow_the_visible_pairs() -> None:
    one = bank()
    assert one.visible.sum(axis=1).tolist() == [3, 4, 5]
    assert (one.outputs, one.mixers, one.macs) == (24, 48, 96)
    assert bank(causal=False).outputs == 30


def test_the_interpreter_adds_up_the_phasors_of_a_head() -> None:
    one = bank()
    query = one.query_gain * np.exp(1j * one.query_rad)
    key = one.key_gain * np.exp(1j * one.key_rad)
    found = interpret_correlation(one)
    for head, columns in enumerate((slice(0, 2), slice(2, 4))):
        whole = (query[:, columns] @ key[:, columns].conj().T).real
        np.testing.assert_allclose(found[head], np.where(one.visible, whole, 0))


def test_file_and_back_keep_every_bit_and_the_digest() -> None:
    program = tiny_program(correlations=(bank(quality=8.0, settle_periods=3),))
    again = decode(encode(program))
    assert again == program
    assert encode(again) == encode(program)
    assert again.correlations[0].quality == 8.0
    assert program.digest() != tiny_program().digest()
    assert program.digest() != tiny_program(correlations=(bank(),)).digest()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"key_rad": np.zeros((5, 3))}, "key_rad"),
        ({"query_gain": np.zeros((3, 3))}, "query_gain"),
        ({"digital": np.zeros((3, 3, 5))}, "do not part into 3 heads"),
        ({"digital": np.ones((2, 3, 5))}, "later key"),
        ({"quality": 0.0}, "quality"),
        ({"periods": 0}, "periods"),
        ({"query_rad": np.full((3, 4), np.nan)}, "query_rad"),
    ],
)
def test_what_breaks_a_law_is_refused_by_name(
    changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(RequestError, match=said):
        bank(**changes)


def test_two_of_one_name_are_refused() -> None:
    with pytest.raises(RequestError, match="stands twice"):
        tiny_program(correlations=(bank(), bank()))
