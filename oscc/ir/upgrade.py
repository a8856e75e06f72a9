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


def upgrade(
    header: dict[str, Any], arrays: dict[str, npt.NDArray[Any]], *, where: str
) -> dict[str, Any]:
    """Header of the newest version.

    Raises:
        RequestError: the file is of a version that this package does not know.
    """
    word = str(header.get("format", ""))
    number = word.removeprefix("oscc.program/")
    if not number.isdigit() or int(number) < 1 or int(number) > VERSION:
        raise RequestError(
            f"`{where}` has format {word!r}, but this version reads up to "
            f"{FORMAT!r}. Use a newer oscc."
        )
    for version in range(int(number), VERSION):
        header = STEPS[version](header, arrays)
    return header
