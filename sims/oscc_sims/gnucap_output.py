"""Reader of what gnucap prints: a table under `#Time`, numbers with letters.

gnucap ends with exit status 0 whatever happened: it skips lines that it does not know,
prints `??` for what it cannot find, and stops early in silence.
"""

from __future__ import annotations

import re

import numpy as np

from oscc.errors import ToolError
from oscc_sims.rawfile import Plot

_POWER = {"f": "e-15", "p": "e-12", "n": "e-9", "u": "e-6", "m": "e-3"}
_POWER |= {"K": "e3", "M": "e6", "G": "e9", "T": "e12"}
_SUFFIX = re.compile(r"(?<=[0-9.])([fpnumKMGT])(?=\s)")
_FAULTS = (
    "what's this",
    "no match",
    "not found",
    "convergence",
    "singular",
    "syntax",
    "internal error",
    "did not converge",
)


def faults(output: str) -> tuple[str, ...]:
    """Lines of the output that say that something went wrong.

    gnucap prints the offending line, then a caret with the message: both are kept.

    Example:
        >>> faults("b1 a 0 v=1" + chr(10) + "^ ? what's this?")
        ("b1 a 0 v=1 ^ ? what's this?",)
    """
    lines = [line.strip() for line in output.splitlines()]
    out = []
    for place, line in enumerate(lines):
        if "plugin" in line or not any(word in line.lower() for word in _FAULTS):
            continue
        before = lines[place - 1] if place and line.startswith("^") else ""
        out.append(f"{before} {line}".strip())
    return tuple(out)


def read_table(output: str, variables: tuple[str, ...]) -> Plot:
    """The transient table of gnucap's output.

    Args:
        output: All that gnucap printed.
        variables: Lower-case names as asked for, in order, without time.

    Raises:
        ToolError: no table, other columns than asked for, `??`, or a word that is no
            number.
    """
    _, found, body = output.partition("#Time")
    if not found:
        raise ToolError("gnucap printed no table: the run did not begin.")
    head, _, rows = body.partition("\n")
    names = tuple(re.sub(r"\s", "", name).lower() for name in head.split())
    if names != variables:
        raise ToolError(
            f"gnucap printed {', '.join(names) or 'nothing'}, "
            f"but was asked for {', '.join(variables)}."
        )
    width = len(variables) + 1
    words = _SUFFIX.sub(lambda found: _POWER[found[1]], f"{rows}\n").split()
    if not words or len(words) % width:
        raise ToolError(f"gnucap's table is cut off after {len(words)} words.")
    try:
        values = np.array(words, dtype=np.float64).reshape(-1, width)
    except ValueError as error:
        raise ToolError(f"gnucap printed a word that is no number: {error}.") from error
    # the row at time zero holds zeros under `uic`, not the start voltages
    begin = 1 if len(values) > 1 and values[0, 0] == 0.0 else 0
    return Plot("Transient Analysis", ("time", *variables), values[begin:])
