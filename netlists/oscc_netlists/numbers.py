"""Numbers in decks: plain, with every digit, never a unit letter.

`1M` is a milli and `1F` a femto to a simulator, and a numpy scalar prints as text that
makes both simulators run and return nothing. So a number is `repr(float(x))`.
"""

from __future__ import annotations

import math
import re

from oscc.errors import RequestError

NUMBER = re.compile(r"[+-]?\d+(\.\d*)?(e[+-]?\d+)?")


def number(value: float, *, what: str = "value") -> str:
    """Text of a finite number that reads back to the same bits.

    Raises:
        RequestError: not finite.

    Example:
        >>> number(1e-12), number(6000)
        ('1e-12', '6000.0')
    """
    found = float(value)
    if not math.isfinite(found):
        raise RequestError(f"Argument `{what}` must be finite, but is {found!r}.")
    return repr(found + 0.0)


def read_number(text: str) -> float:
    """Number of a deck; unit letters are refused, as they mean other things.

    Raises:
        RequestError: not a plain number.

    Example:
        >>> read_number("1e-12")
        1e-12
    """
    if not NUMBER.fullmatch(text):
        raise RequestError(
            f"`{text}` is not a plain number. Suffixes are refused: to a simulator "
            "`1M` is 1e-3 and `1F` is 1e-15. Write an exponent."
        )
    return float(text)
