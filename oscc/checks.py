"""The only argument checks: one form of message for every fault.

Argument `alpha` must have shape (targets, sources), but has shape (8, 4).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from oscc.errors import RequestError

_PLACES = 3  # indices named of many


def require_shape(
    name: str,
    array: npt.NDArray[Any],
    shape: Sequence[int],
    *,
    axes: str = "",
    where: str = "",
) -> None:
    """Refuse an array of another shape; -1 in the shape takes any length.

    Raises:
        RequestError: the number of axes or one length differs.

    Example:
        >>> require_shape("alpha", np.zeros((2, 3)), (2, -1))
    """
    fits = array.ndim == len(shape) and all(
        want in (-1, have) for want, have in zip(shape, array.shape, strict=True)
    )
    if not fits:
        wanted = axes or str(tuple("any" if n == -1 else n for n in shape))
        raise RequestError(
            f"{_prefix(where)}Argument `{name}` must have shape {wanted}, "
            f"but has shape {array.shape}."
        )


def require_finite(name: str, array: npt.NDArray[Any], *, where: str = "") -> None:
    """Refuse NaN and infinities, naming how many there are of each and where first.

    Raises:
        RequestError: a value is not finite.

    Example:
        >>> require_finite("gain", np.zeros(3))
    """
    if text := not_finite(array):
        raise RequestError(f"{_prefix(where)}Argument `{name}` holds {text}.")


def not_finite(array: npt.NDArray[Any]) -> str:
    """How many values are NaN and how many infinite, and where the first are.

    Empty if all are finite.

    Example:
        >>> not_finite(np.array([1.0, np.nan, -np.inf, np.inf]))
        '1 NaN, first at (1,); 2 infinite values, first at (2,), (3,)'
    """
    parts = []
    for bad, one, more in (
        (np.isnan(array), "NaN", "NaN"),
        (np.isinf(array), "infinite value", "infinite values"),
    ):
        if count := int(bad.sum()):
            word = one if count == 1 else more
            parts.append(f"{count} {word}, first at {places_of(bad)}")
    return "; ".join(parts)


def places_of(bad: npt.NDArray[np.bool_]) -> str:
    """Indices of the first three places that are true, as text.

    Example:
        >>> places_of(np.array([False, True]))
        '(1,)'
    """
    flat = np.flatnonzero(bad)[:_PLACES]
    found = (np.unravel_index(place, bad.shape) for place in flat)
    return ", ".join(str(tuple(int(i) for i in place)) for place in found)


def require_positive(
    name: str, value: float, *, unit: str = "", where: str = ""
) -> None:
    """Refuse a number that is not finite and above zero.

    Raises:
        RequestError: the value is zero, negative or not finite.

    Example:
        >>> require_positive("C", 1e-10, unit="F")
    """
    if not (np.isfinite(value) and value > 0):
        raise RequestError(
            f"{_prefix(where)}Argument `{name}` must be above zero"
            f"{' ' + unit if unit else ''}, but is {value!r}."
        )


def require_whole(
    name: str,
    value: object,
    *,
    least: int = 1,
    most: int | None = None,
    where: str = "",
) -> None:
    """Refuse what is not a plain whole number within its bounds.

    Numbers of numpy are refused too: they would not be written as JSON.

    Raises:
        RequestError: another type, or out of bounds.

    Example:
        >>> require_whole("substeps", 4)
    """
    plain = isinstance(value, int) and not isinstance(value, bool)
    if plain and least <= value and (most is None or value <= most):  # type: ignore[operator]
        return
    wanted = f">= {least}" if most is None else f"from {least} to {most}"
    raise RequestError(
        f"{_prefix(where)}Argument `{name}` must be a whole number {wanted}, "
        f"but is {value!r}."
    )


def require_choice(
    name: str, value: str, choices: Collection[str], *, where: str = ""
) -> None:
    """Refuse a word that is not one of the choices, naming the nearest.

    Raises:
        RequestError: the word is not a choice.

    Example:
        >>> require_choice("update", "flow", ("flow", "euler"))
    """
    if value not in choices:
        raise RequestError(
            f"{_prefix(where)}Argument `{name}` must be one of "
            f"{', '.join(sorted(choices))}, but is {value!r}."
            f"{nearest(value, choices)}"
        )


def nearest(word: str, known: Collection[str]) -> str:
    """Sentence that names the nearest known word, empty if none is near.

    Example:
        >>> nearest("flwo", ("flow", "euler"))
        ' Did you mean `flow`?'
    """
    close = get_close_matches(str(word), list(known), n=1, cutoff=0.5)
    return f" Did you mean `{close[0]}`?" if close else ""


def near_file(path: Path) -> str:
    """Sentence that names the file nearest to one that does not exist, or empty.

    Example:
        >>> near_file(Path("nowhere/at/all"))
        ''
    """
    try:
        names = [one.name for one in path.parent.iterdir()]
    except OSError:
        return ""
    close = nearest(path.name, names)
    if path.parent == Path():
        return close
    return close.replace("`", f"`{path.parent.as_posix()}/", 1)


def _prefix(where: str) -> str:
    return f"{where}: " if where else ""
