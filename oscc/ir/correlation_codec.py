"""Correlations as arrays and header words of a program's file, exact both ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from oscc.errors import RequestError
from oscc.ir.correlation import Correlation

_ARRAYS = ("query_rad", "key_rad", "query_gain", "key_gain", "digital")
_WORDS = ("name", "causal", "first_token", "quality", "settle_periods", "periods")


def correlation_parts(
    one: Correlation, key: str, arrays: dict[str, npt.NDArray[Any]]
) -> dict[str, Any]:
    """Header words of a correlation; its arrays are added under the key."""
    for name in _ARRAYS:
        arrays[f"{key}.{name}"] = getattr(one, name)
    return {word: getattr(one, word) for word in _WORDS}


def correlation_from(
    arrays: Mapping[str, npt.NDArray[Any]],
    key: str,
    content: Mapping[str, Any],
    where: str,
) -> Correlation:
    """Correlation of header words and arrays.

    Raises:
        RequestError: a field that is not known, or content that breaks a law.
        KeyError: a field or array is missing.
    """
    unknown = sorted(set(content) - set(_WORDS))
    if unknown:
        raise RequestError(f"`{where}` / {key} has the unknown field `{unknown[0]}`.")
    values: dict[str, Any] = {word: content[word] for word in _WORDS}
    values |= {name: arrays[f"{key}.{name}"] for name in _ARRAYS}
    return Correlation(**values)
