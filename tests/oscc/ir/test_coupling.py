"""Construction of couplings: shapes, orders, values that do not change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oscc.errors import RequestError
from oscc.ir import Coupling


def make(**changes: Any) -> Coupling:
    values: dict[str, Any] = {
        "route": "present",
        "harmonics": np.array([1, 3]),
        "weights": np.tril(np.ones((2, 3, 3))),
        "gamma": np.ones((2, 4)),
        "alpha_rad": np.zeros((2, 4)),
    }
    return Coupling(**(values | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"gamma": np.ones((3, 4))},
            "Argument `gamma` must have shape (N, K), but has shape (3, 4).",
        ),
        (
            {"alpha_rad": np.ones((2, 5))},
            "Argument `alpha_rad` must have shape (N, K), but has shape (2, 5).",
        ),
        (
            {"weights": np.ones((3, 3))},
            "Argument `weights` must have shape (H, T, S), but has shape (3, 3).",
        ),
        (
            {"weights": np.ones((3, 3, 3))},
            "Argument `weights` has 3 heads, which do not divide 4 coordinates.",
        ),
        (
            {"gamma": np.array([[1, 1, 1, 1], [1, np.nan, np.nan, 1]])},
            "route present: Argument `gamma` holds 2 NaN, first at (1, 1), (1, 2).",
        ),
        (
            {"weights": np.full((2, 3, 3), np.inf)},
            "route present: Argument `weights` holds 18 infinite values, "
            "first at (0, 0, 0), (0, 0, 1), (0, 0, 2).",
        ),
        (
            {"harmonics": np.array([0, 1])},
            "Argument `harmonics` must ascend from 1 or more without repeats, "
            "but is [0, 1].",
        ),
        (
            {"harmonics": np.array([2, 2])},
            "Argument `harmonics` must ascend from 1 or more without repeats, "
            "but is [2, 2].",
        ),
        (
            {"harmonics": np.array([1.0, 2.5])},
            "Argument `harmonics` must list whole orders >= 1.",
        ),
        ({"harmonics": []}, "Argument `harmonics` must list whole orders >= 1."),
        (
            {"harmonics": np.array([1, 10**12])},
            "Argument `harmonics` goes up to 1000000000000; the largest order is 64.",
        ),
        (
            {"route": "presnt"},
            "Argument `route` must be one of present, successor, but is 'presnt'. "
            "Did you mean `present`?",
        ),
    ],
)
def test_refuses_with_a_message(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError) as caught:
        make(**changes)
    assert str(caught.value) == message


def test_arrays_are_own_copies_that_cannot_be_written() -> None:
    gamma = np.ones((2, 4))
    coupling = make(gamma=gamma)
    gamma[0, 0] = 5.0
    assert coupling.gamma[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        coupling.gamma[0, 0] = 2.0
    with pytest.raises(AttributeError):
        coupling.route = "successor"  # type: ignore[misc]


def test_a_coordinate_belongs_to_the_head_of_its_group() -> None:
    assert make().head_of_coordinate.tolist() == [0, 0, 1, 1]


def test_coefficients_are_strength_times_offset() -> None:
    coupling = make(
        gamma=np.array([[2.0, -1.0, 0.0, 1.0]] * 2),
        alpha_rad=np.full((2, 4), np.pi / 2),
    )
    wanted = np.array([2j, -1j, 0, 1j])
    assert np.abs(coupling.coefficients - wanted).max() < 4 * np.finfo(float).eps
