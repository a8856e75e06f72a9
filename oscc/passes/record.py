"""Records: what each pass did, in numbers, kept in the program's provenance."""

from __future__ import annotations

from typing import Any

from oscc.ir.program import Program


def record(program: Program, name: str, numbers: dict[str, Any]) -> Program:
    """The program with one more entry in its pass list."""
    passes = [*program.provenance.get("passes", []), {"name": name, **numbers}]
    return program.replace(provenance={**program.provenance, "passes": passes})
