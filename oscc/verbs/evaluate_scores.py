"""What an evaluation gathers: bits of every position, errors of every step."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from oscc.arrays import FloatArray
from oscc.ladder.levels import SLIP_RAD


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
