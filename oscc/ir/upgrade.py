"""Upgrade chain of the program format: every version ever written stays readable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy.typing as npt

from oscc.errors import RequestError

VERSION = 1
FORMAT = f"oscc.program/{VERSION}"

Step = Callable[[dict[str, Any], dict[str, npt.NDArray[Any]]], dict[str, Any]]

# One entry a version: STEPS[n] turns a header of version n into one of version n + 1
# and may rename arrays in place.
STEPS: dict[int, Step] = {}


def require_known(word: str, *, where: str) -> int:
    """Number of a version that this package reads.

    Raises:
        RequestError: the version is newer, or none at all.

    Example:
        >>> require_known("oscc.program/1", where="program.safetensors")
        1
    """
    number = word.removeprefix("oscc.program/")
    if not number.isdecimal() or not 1 <= int(number) <= VERSION:
        raise RequestError(
            f"`{where}` has format {word!r}, but this version reads up to "
            f"{FORMAT!r}. Use a newer oscc."
        )
    return int(number)


def upgrade(
    header: dict[str, Any], arrays: dict[str, npt.NDArray[Any]], *, where: str
) -> dict[str, Any]:
    """Header of the newest version.

    Raises:
        RequestError: the file is of a version that this package does not know.
    """
    first = require_known(str(header.get("format", "")), where=where)
    for version in range(first, VERSION):
        header = STEPS[version](header, arrays)
    return header
