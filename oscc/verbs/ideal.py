"""Ideal elements in the signal path, as verify.json and energy.json state them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from oscc.build import BuildFolder
from oscc.ir.program import Program
from oscc.observables import Observables


def ideal_elements(
    program: Program,
    seen: Collection[Observables],
    *,
    tile: Mapping[str, Any] | None = None,
    folder: BuildFolder | None = None,
) -> dict[str, int] | None:
    """Count by SPICE letter; None where no deck was run and none was written.

    Real cells stand in tiles, so a program of fidelity `oscillators` has the count of
    its tile. Others have that of the decks that ran, ngspice before other simulators
    (dialects need other elements for the same part), else of the decks of the sample.

    Args:
        program: What was compiled.
        seen: Observables of any engines.
        tile: Facts of a tile, where one was run.
        folder: Build folder, for the decks of its sample.
    """
    in_tiles = any(
        stage.fidelity == "oscillators" and stage.readout == "phase"
        for stage in program.stages
    )
    if in_tiles:
        found = (tile or {}).get("ideal_elements")
    else:
        ordered = sorted(seen, key=lambda one: (one.engine != "ngspice", one.engine))
        counts = [one.facts.get("ideal_elements") for one in ordered]
        found = next((count for count in counts if count), None)
    if found:
        return {str(letter): int(count) for letter, count in found.items()}
    return None if folder is None else folder.ideal_elements()
