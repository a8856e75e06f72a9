"""The verdict as text for a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from oscc.units import si_text

if TYPE_CHECKING:
    from oscc.ladder.levels import LevelResult
    from oscc.ladder.verdict import Verdict

COLUMNS = (
    "level",
    "engine",
    "against",
    "targets",
    "rms",
    "max",
    "tolerance",
    "verdict",
    "worst",
)


def angle(value: float | None) -> str:
    """An angle with three figures and an SI prefix, a dash for none."""
    return "-" if value is None else si_text(value, "rad")


def word(level: LevelResult) -> str:
    """`pass`, `FAIL` or `undecided`."""
    return {True: "pass", False: "FAIL", None: "undecided"}[level.passed]


def row(level: LevelResult) -> tuple[str, ...]:
    """Cells of one level, in the order of `COLUMNS`."""
    if level.tolerance_coherence is not None:
        return _row_of_cells(level)
    if level.tolerance_nat is not None:
        return _row_of_correlations(level)
    worst = level.worst
    place = (
        f"{worst['stage']} token {worst['token']} coordinate {worst['coordinate']}"
        if worst
        else level.reason
    )
    return (
        level.level,
        level.engine,
        level.reference,
        f"{level.targets}",
        angle(level.rms_rad),
        angle(level.max_rad),
        angle(level.tolerance_rad),
        word(level),
        place,
    )


def _row_of_cells(level: LevelResult) -> tuple[str, ...]:
    """As `row`, for pair cells: coherence, and how many cells are not judged."""
    worst, place = level.worst, level.reason
    if worst and level.passed is not None:
        head, token, partner = worst["pair"]
        place = f"{worst['stage']} head {head} pair {token},{partner}"
    if level.undecided:
        place += f" ({level.undecided} undecided)"
    return (
        level.level,
        level.engine,
        level.reference,
        f"{level.targets}",
        *(
            "-" if value is None else f"{value:.3g} in cos"
            for value in (
                level.rms_coherence,
                level.max_coherence,
                level.tolerance_coherence,
            )
        ),
        word(level),
        place.strip(),
    )


def _row_of_correlations(level: LevelResult) -> tuple[str, ...]:
    """As `row`, for scores and logits, in nat."""
    worst, place = level.worst, level.reason
    if worst:
        place = f"{worst['stage']} head {worst['head']} query {worst['query']}"
        place += f" key {worst['key']}"
    return (
        level.level,
        level.engine,
        level.reference,
        f"{level.targets}",
        *(
            "-" if value is None else f"{value:.3g} nat"
            for value in (level.rms_nat, level.max_nat, level.tolerance_nat)
        ),
        word(level),
        place,
    )


def closing_line(verdict: Verdict) -> str:
    """PASS, FAIL or INCONCLUSIVE, with the first reason in one sentence."""
    if verdict.passed:
        return "PASS"
    for level in verdict.levels:
        if level.passed is False:
            return (
                f"FAIL   {level.level} against {level.reference}: {level.reason}"
                f"{_euler_mend(verdict, level)}"
            )
    for level in verdict.levels:
        if level.passed is None:
            return f"INCONCLUSIVE   {level.level} ({level.engine}): {level.reason}"
    if verdict.tile_failed and verdict.fidelity_gap is not None:
        return f"INCONCLUSIVE   tile: {verdict.fidelity_gap['reason']}"
    entry = next(e for e in verdict.convergence if not e.passed)
    return f"INCONCLUSIVE   {entry.engine}: {entry.sentence}"


def _euler_mend(verdict: Verdict, level: LevelResult) -> str:
    """Cause and mend where a layer trained with Euler steps is run as a flow."""
    size = verdict.causes.get("euler_gap")
    if level.level != "phase" or size is None:
        return ""
    return (
        f"; cause euler_gap ({angle(size['rms_rad'])}). The program does not run the "
        "update that the model was trained with: compile without --update, or train "
        "with the other one"
    )


def gap_line(verdict: Verdict) -> str:
    """The causes that are not nothing, largest first."""
    named = sorted(verdict.causes.items(), key=lambda item: _rms(item[1]), reverse=True)
    shown = [
        f"{name} {size['rms_coherence']:.3g} in cos"
        if size.get("rms_coherence") is not None
        else f"{name} {angle(size['rms_rad'])}"
        for name, size in named
    ]
    return "gap by cause (rms): " + ", ".join(shown)


def _rms(size: Mapping[str, float | None]) -> float:
    found = size.get("rms_coherence", size["rms_rad"])
    return 0.0 if found is None else found


def verdict_text(verdict: Verdict) -> str:
    """Table of the levels, the gap by cause and the closing line."""
    rows = [COLUMNS, *(row(level) for level in verdict.levels)]
    widths = [max(len(r[k]) for r in rows) for k in range(len(COLUMNS))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(r, widths, strict=True))
        for r in rows
    ]
    lines += [gap_line(verdict)] if verdict.causes else []
    for entry in verdict.convergence:
        state = "converged" if entry.passed else "not converged"
        lines.append(
            f"halving the step moves {entry.engine} by at most {entry.change}: {state}"
        )
    if verdict.loop == "closed":
        lines.append(
            "loop: closed, each layer on the phases that hardware gave the one before; "
            "the errors of all layers before it are in its own"
        )
    lines += [f"note: {note}" for note in verdict.notes]
    return "\n".join([line.rstrip() for line in lines] + [closing_line(verdict)])
