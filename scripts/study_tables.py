"""Tables of the study of families: means over seeds, and differences seed by seed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Run = dict[str, Any]
Value = Callable[[Run], float]
FEWEST = 3
# two-sided 95 % of Student's t by degrees of freedom, from tables
T95 = {2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
BASE = "transformer"
DEPTHS = ("0–1", "2–3", "4–7", "8–15", "16–23", "≥ 24")


class Judged(NamedTuple):
    """A verdict on a sign, and the figures it rests on."""

    verdict: str
    figures: str


class Study:
    """Finished runs by variant and seed."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self.runs: dict[str, dict[int, Run]] = {}
        for run in sorted(runs, key=lambda r: (r["name"], r["seed"])):
            self.runs.setdefault(run["name"], {})[run["seed"]] = run

    @classmethod
    def read(cls, folder: Path) -> Study:
        """All runs of a folder."""
        return cls(json.loads(p.read_text("utf-8")) for p in folder.glob("*-s*.json"))

    def values(self, name: str, value: Value) -> list[float]:
        """A figure of every seed of a variant."""
        return [value(run) for run in self.runs.get(name, {}).values()]

    def differences(self, name: str, base: str, value: Value) -> list[float]:
        """A figure less that of the same seed of another variant."""
        others = self.runs.get(base, {})
        return [
            value(run) - value(others[seed])
            for seed, run in self.runs.get(name, {}).items()
            if seed in others
        ]

    def rows(self, names: Sequence[str]) -> list[str]:
        """The variants of a list that have a run."""
        return [name for name in names if name in self.runs]


def validation(run: Run) -> float:
    """Validation bits per character."""
    return float(run["bits"]["validation"])


def copy_depth(index: int) -> Value:
    """Bits in a bin of copy depth."""
    return lambda run: float(run["copy_depth"][index]["bits"])


def order(layer: int, kind: str) -> Value:
    """An order parameter of a layer."""
    return lambda run: float(run["order"][layer][kind])


def spread(values: Sequence[float], digits: int = 3, *, signed: bool = False) -> str:
    """Mean and standard deviation over seeds as text.

    Example:
        >>> spread([1.0, 2.0, 3.0], 1)
        '2.0 ± 1.0'
    """
    if not values:
        return "–"
    mean = f"{np.mean(values):{'+' if signed else ''}.{digits}f}"
    if len(values) == 1:
        return mean
    return f"{mean} ± {np.std(values, ddof=1):.{digits}f}"


def judge(values: Sequence[float], sign: int, *, digits: int = 3) -> Judged:
    """Whether seed by seed differences have the sign that an article reports.

    Reproduced or not where the mean is further from 0 than the 95 % interval of
    Student's t over seeds, else undecided. The interval is about the seeds of this
    corpus and size, nothing else.

    Example:
        >>> judge([0.10, 0.11, 0.12], 1).verdict
        'reproduced'
        >>> judge([0.10, -0.11, 0.12], 1).verdict
        'undecided'
    """
    seeds = "1 seed" if len(values) == 1 else f"{len(values)} seeds"
    figures = f"{spread(values, digits, signed=True)}, {seeds}"
    if len(values) < FEWEST:
        return Judged("undecided", f"{figures} (too few)")
    width = np.std(values, ddof=1) / np.sqrt(len(values))
    half = T95.get(len(values) - 1, 2.262) * width
    mean = float(np.mean(values))
    if abs(mean) <= half:
        return Judged("undecided", f"{figures}, 95 % ± {half:.{digits}f}")
    verdict = "reproduced" if mean * sign > 0 else "not reproduced"
    return Judged(verdict, f"{figures}, 95 % ± {half:.{digits}f}")


def together(parts: Sequence[Judged]) -> str:
    """Verdict on a claim of several parts: all of them, none, or how many.

    Example:
        >>> together([Judged("reproduced", ""), Judged("undecided", "")])
        'in part: 1 of 2 reproduced'
    """
    kinds = {part.verdict for part in parts}
    if len(kinds) == 1:
        return kinds.pop()
    good = sum(part.verdict == "reproduced" for part in parts)
    bad = sum(part.verdict == "not reproduced" for part in parts)
    if bad and not good:
        return f"not reproduced in {bad} of {len(parts)}, the rest undecided"
    return f"in part: {good} of {len(parts)} reproduced"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown, or a line that says that nothing has been run for it."""
    rows = list(rows)
    if not rows:
        return "No run yet.\n"
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
