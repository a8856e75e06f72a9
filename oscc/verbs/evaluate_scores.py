"""What an evaluation gathers: bits of every position, errors of every step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from oscc.arrays import FloatArray, IntArray
from oscc.corpus import Symbols
from oscc.ladder.levels import SLIP_RAD

_WINDOWS_AT_ONCE = 16


@dataclass(slots=True, eq=False)
class StageTally:
    """Errors of one stage against its own exact update, gathered over windows."""

    squares: float = 0.0
    targets: int = 0
    slips: int = 0
    periods: int = 0
    stages: int = 0

    def note(self, error: FloatArray, periods: int) -> None:
        """Add the targets of one window [rad], and the periods that they took."""
        self.squares += float((error**2).sum())
        self.targets += error.size
        self.slips += int((np.abs(error) > SLIP_RAD).sum())
        self.periods += periods
        self.stages += 1


@dataclass(slots=True, eq=False)
class Growth:
    """How far the loop has come from the digital model after each step, over windows.

    Unlike the error of a step against its own update, it holds what all steps before
    brought along. The digital pass of a batch is kept until a column has run it.
    """

    squares: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    _digital: dict[str, list[FloatArray]] = field(default_factory=dict)
    _seen: Counter[str] = field(default_factory=Counter)

    def begin(self, column: str) -> None:
        """A column begins with the batch; the digital one with a new batch."""
        self._seen.clear()
        if column == "digital":
            self._digital.clear()

    def keep(self, step: str, value: FloatArray) -> FloatArray:
        """Keep what the digital model has after a step of its next window."""
        self._digital.setdefault(step, []).append(value)
        return value

    def compare(self, step: str, value: FloatArray, *, angle: bool) -> None:
        """Add the difference of the next window; of phases within half a turn."""
        apart = value - self._digital[step][self._seen[step]]
        self._seen[step] += 1
        if angle:
            apart = np.angle(np.exp(1j * apart))
        self.squares[step] = self.squares.get(step, 0.0) + float((apart**2).sum())
        self.counts[step] = self.counts.get(step, 0) + apart.size

    def rms(self, step: str) -> float:
        """Root mean square over every target of every window."""
        return float(np.sqrt(self.squares[step] / self.counts[step]))


@dataclass(slots=True, eq=False)
class Scores:
    """What every position cost by column, window by window."""

    bits: dict[str, list[FloatArray]]
    agree: list[FloatArray] = field(default_factory=list)
    divergence: list[FloatArray] = field(default_factory=list)

    def mean(self, column: str) -> float:
        """Bits of a column over every position."""
        return float(np.concatenate(self.bits[column]).mean())

    def change(self, column: str) -> tuple[float, float | None, int]:
        """Paired difference to digital, its standard error, number of windows.

        Positions of a window share their text, so the error comes from windows, as
        that of a ratio estimate where the last one is shorter.
        """
        pairs = zip(self.bits[column], self.bits["digital"], strict=True)
        sums, sizes = np.array([(float((a - b).sum()), a.size) for a, b in pairs]).T
        delta, count = float(sums.sum() / sizes.sum()), sums.size
        if count < 2:
            return delta, None, count
        spread = float(((sums - delta * sizes) ** 2).sum()) * count / (count - 1)
        return delta, float(np.sqrt(spread) / sizes.sum()), count


def batches(held_out: list[Symbols]) -> Iterator[IntArray]:
    """Windows that run together, those of one length, shape (B, T)."""
    for group in held_out:
        for first in range(0, len(group), _WINDOWS_AT_ONCE):
            yield group[first : first + _WINDOWS_AT_ONCE].astype(np.int64)
