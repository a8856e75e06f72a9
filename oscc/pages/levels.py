"""The ladder as a table: angles of phases, nat of scores and logits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oscc.pages.tables import Table, angle, number, table
from oscc.units import grouped


def ladder_table(verdict: Mapping[str, Any]) -> Table:
    """One row a level of `verify.json`."""
    rows = []
    for level in verdict["levels"]:
        worst = level["worst"]
        place = (
            f"{worst['stage']} token {worst['token']} coordinate "
            f"{worst['coordinate']}: {angle(worst['error_rad'])} "
            f"at drive {worst['drive']:.3g}"
            if worst and "token" in worst
            else ""
        )
        if worst and "query" in worst:
            place = f"{worst['stage']} {worst['query']}, {worst['key']}"
        said = {True: "pass", False: "FAIL", None: "undecided"}[level["passed"]]
        rows.append(
            (
                level["level"],
                level["engine"],
                level["reference"],
                grouped(level["targets"]),
                *_sizes(level),
                said,
                "; ".join(part for part in (level["reason"], place) if part),
            )
        )
    columns = (
        *("level", "engine", "against", "targets", "rms", "median", "99 %", "largest"),
        *("slips", "tolerance", "verdict", "worst target"),
    )
    return table(columns, rows, range(3, 10))


def _sizes(level: Mapping[str, Any]) -> tuple[str, ...]:
    """Rms, median, 99 %, largest, slips, tolerance: angles, or nat of scores."""
    if level.get("tolerance_nat") is not None:
        rms, largest, asked = (
            "-" if level[name] is None else f"{number(level[name], 3)} nat"
            for name in ("rms_nat", "max_nat", "tolerance_nat")
        )
        return rms, "-", "-", largest, "-", asked
    sizes = [angle(level[f"{name}_rad"]) for name in ("rms", "median", "p99", "max")]
    return (*sizes, str(level["slips"]), angle(level["tolerance_rad"]))
