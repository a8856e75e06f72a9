"""Numbers for people: three significant figures with an SI prefix."""

from __future__ import annotations

import math

_PREFIXES = {
    -18: "a",
    -15: "f",
    -12: "p",
    -9: "n",
    -6: "µ",
    -3: "m",
    0: "",
    3: "k",
    6: "M",
    9: "G",
}


def si_text(value: float | None, unit: str, *, digits: int = 3) -> str:
    """A quantity with an SI prefix, for tables; files hold the plain number.

    Args:
        value: Number in the plain unit; None reads `undefined`.
        unit: Unit without prefix, such as `J`.
        digits: Significant figures.

    Example:
        >>> si_text(41.3e-15, "J"), si_text(0.0, "J"), si_text(None, "J")
        ('41.3 fJ', '0 J', 'undefined')
        >>> si_text(999.9e-12, "J")
        '1.00 nJ'
    """
    if value is None:
        return "undefined"
    if value == 0 or not math.isfinite(value):
        return f"{value:g} {unit}"
    # Round first: 999.9 with three figures belongs to the next prefix.
    rounded = float(f"{value:.{digits - 1}e}")
    power = 3 * math.floor(math.log10(abs(rounded)) / 3 + 1e-12)
    power = min(max(power, min(_PREFIXES)), max(_PREFIXES))
    mantissa = rounded / 10.0**power
    whole = max(1, math.floor(math.log10(abs(mantissa)) + 1e-12) + 1)
    return f"{mantissa:.{max(0, digits - whole)}f} {_PREFIXES[power]}{unit}"


def grouped(count: int) -> str:
    """A whole number in groups of three, parted by spaces.

    Example:
        >>> grouped(199680)
        '199 680'
    """
    return f"{count:,}".replace(",", " ")


def counted(count: int, word: str) -> str:
    """A count with its word, in the plural by an s where it is not one.

    Example:
        >>> counted(1, "token"), counted(1300, "token")
        ('1 token', '1 300 tokens')
    """
    return f"{grouped(count)} {word}" if count == 1 else f"{grouped(count)} {word}s"
