"""Simulator settings of a deck, with the finer ones that its convergence is judged by.

Measured on driven targets of the 6k, 5k5 and 20k cards: docs/reference/spice.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from oscc.checks import require_choice

DIALECTS = ("ngspice", "gnucap")


@dataclass(frozen=True, slots=True)
class Settings:
    """How a simulator steps through a deck.

    Args:
        dialect: `ngspice` or `gnucap`.
        steps_per_period: Least number of time steps in a free period.
        reltol: Relative tolerance.
        trtol: Factor on the truncation error that ngspice allows; gnucap has none.
    """

    dialect: str
    steps_per_period: int
    reltol: float
    trtol: float = 1.0

    def __post_init__(self) -> None:
        require_choice("dialect", self.dialect, DIALECTS)

    @property
    def options(self) -> tuple[tuple[str, float | str], ...]:
        """Options line of a deck."""
        shared = (("reltol", self.reltol), ("vntol", 1e-7))
        if self.dialect == "gnucap":
            # nodes in the order of the deck: the matrix stays 3 % full, not 95 %
            return (*shared, ("numdgt", 12.0), ("order", "forward"))
        rest = (("abstol", 1e-12), ("trtol", self.trtol), ("method", "trap"))
        return (*shared, *rest)

    def finer(self) -> Settings:
        """Settings of the convergence run: half the step, a tenth of the tolerance.

        Example:
            >>> default_settings("gnucap").finer().steps_per_period
            400
        """
        half = 2 * self.steps_per_period
        if self.dialect == "gnucap":
            return replace(self, steps_per_period=half, reltol=self.reltol / 10)
        return replace(self, steps_per_period=half, trtol=self.trtol / 10)


def default_settings(dialect: str) -> Settings:
    """Settings that the engines use unless told otherwise.

    Raises:
        RequestError: an unknown dialect.

    Example:
        >>> default_settings("ngspice").trtol
        1.0
    """
    require_choice("dialect", dialect, DIALECTS)
    if dialect == "gnucap":
        return Settings("gnucap", 200, 1e-6)
    return Settings("ngspice", 200, 1e-6, 1.0)
