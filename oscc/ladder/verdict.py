"""Verdict: what the ladder says of a program, as a value with an exit status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oscc.ladder.convergence import Convergence
from oscc.ladder.levels import LevelResult

FORMAT = "oscc.verify/1"


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """Levels, causes and convergence of one program.

    Args:
        program: Digest of the program.
        levels: In the order of the ladder.
        causes: Size of each cause.
        convergence: One entry a simulator.
        loop: `open` or `closed`.
        fidelity: What the decks hold.
        ideal_elements: Ideal elements in the signal path by SPICE letter.
        model: Agreement of the whole model, or None.
        fidelity_gap: Gap of the oscillator tile, or None; only a `reason` where a
            tile was asked for and could not run.
        notes: What a reader must know.
    """

    program: str
    levels: tuple[LevelResult, ...]
    causes: Mapping[str, Mapping[str, float | None]]
    convergence: tuple[Convergence, ...] = ()
    loop: str = "open"
    fidelity: str = "pairwise"
    ideal_elements: Mapping[str, int] = field(default_factory=dict)
    model: Mapping[str, Any] | None = None
    fidelity_gap: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether all that was asked for ran, converged and passed."""
        return (
            all(level.passed is True for level in self.levels)
            and all(entry.passed for entry in self.convergence)
            and not self.tile_failed
        )

    @property
    def tile_failed(self) -> bool:
        """Whether a tile was asked for that a simulator could not run."""
        return self.fidelity_gap is not None and "rms_rad" not in self.fidelity_gap

    @property
    def exit_status(self) -> int:
        """0 passed, 1 failed, 3 a tool is missing or failed, 4 undecided."""
        if any(level.passed is False for level in self.levels):
            return 1
        blamed = any(level.passed is None and level.blame == 3 for level in self.levels)
        if blamed or self.tile_failed:
            return 3
        return 0 if self.passed else 4

    def to_json(self) -> dict[str, Any]:
        """Content of verify.json."""
        return {
            "format": FORMAT,
            "program": self.program,
            "passed": self.passed,
            "loop": self.loop,
            "fidelity": self.fidelity,
            "ideal_elements": dict(self.ideal_elements),
            "levels": [level.to_json() for level in self.levels],
            "causes": {name: dict(size) for name, size in self.causes.items()},
            "convergence": [entry.to_json() for entry in self.convergence],
            "model": None if self.model is None else dict(self.model),
            "fidelity_gap": (
                None if self.fidelity_gap is None else dict(self.fidelity_gap)
            ),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        from oscc.ladder.table import verdict_text

        return verdict_text(self)
