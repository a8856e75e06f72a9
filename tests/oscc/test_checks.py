"""Argument checks: one form of message, and nothing wrong gets past them."""

from pathlib import Path

import numpy as np
import pytest

from oscc.checks import (
    near_file,
    nearest,
    require_choice,
    require_finite,
    require_positive,
    require_shape,
)
from oscc.errors import RequestError


def test_shape_message_has_name_wanted_and_given() -> None:
    with pytest.raises(RequestError) as caught:
        require_shape("alpha", np.zeros((8, 4)), (4, 8), axes="(targets, sources)")
    assert str(caught.value) == (
        "Argument `alpha` must have shape (targets, sources), but has shape (8, 4)."
    )


@pytest.mark.parametrize(
    ("shape", "wanted", "fits"),
    [
        ((2, 3), (2, 3), True),
        ((2, 3), (-1, 3), True),
        ((2, 3), (-1, -1), True),
        ((2, 3), (3, 2), False),
        ((2, 3), (2,), False),
        ((2, 3), (2, 3, 1), False),
        ((), (), True),
        ((0, 3), (-1, 3), True),
    ],
)
def test_shapes(shape: tuple[int, ...], wanted: tuple[int, ...], fits: bool) -> None:
    if fits:
        require_shape("x", np.zeros(shape), wanted)
        return
    with pytest.raises(RequestError, match=r"stage s: Argument `x`"):
        require_shape("x", np.zeros(shape), wanted, where="stage s")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_counted_and_placed(bad: float) -> None:
    array = np.zeros((2, 20))
    array[0, 17] = array[1, 3] = bad
    kind = "NaN" if np.isnan(bad) else "infinite values"
    with pytest.raises(RequestError, match=rf"holds 2 {kind}, first at \(0, 17\)"):
        require_finite("weight", array)
    require_finite("weight", np.zeros((2, 0)))


def test_nan_and_infinite_values_are_counted_apart() -> None:
    array = np.array([1.0, np.inf, np.nan, -np.inf, np.inf, np.inf])
    with pytest.raises(RequestError) as caught:
        require_finite("weight", array)
    assert str(caught.value) == (
        "Argument `weight` holds 1 NaN, first at (2,); 4 infinite values, first at "
        "(1,), (3,), (4,)."
    )


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_positive(bad: float) -> None:
    require_positive("C", 1e-30, unit="F")
    with pytest.raises(RequestError, match=r"`C` must be above zero F"):
        require_positive("C", bad, unit="F")


def test_choice_names_the_nearest() -> None:
    require_choice("update", "flow", ("flow", "euler"))
    with pytest.raises(RequestError, match=r"but is 'flwo'\. Did you mean `flow`\?"):
        require_choice("update", "flwo", ("flow", "euler"))
    assert nearest("zzzzzz", ("flow", "euler")) == ""


def test_the_nearest_file_is_named_with_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes.txt").touch()
    hint = f" Did you mean `{tmp_path}/notes.txt`?"
    assert near_file(tmp_path / "nots.txt") == hint
    assert near_file(tmp_path / "zzz") == near_file(tmp_path / "none" / "a") == ""
    monkeypatch.chdir(tmp_path)
    assert near_file(Path("nots.txt")) == " Did you mean `notes.txt`?"
