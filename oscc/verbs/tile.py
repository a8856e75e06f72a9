"""Tile of real cells of every stage: what fidelity `oscillators` costs and takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from oscc.errors import RequestError
from oscc.ir.program import Program
from oscc.ir.stage import Stage

if TYPE_CHECKING:
    from oscc.verbs.simulate import SimulateOptions


def _tiled(program: Program, options: SimulateOptions) -> list[Stage]:
    """Stages that a tile can hold, of those that were asked for.

    Raises:
        RequestError: none of them.
    """
    asked = [
        s for s in program.stages if not options.stages or s.name in options.stages
    ]
    found = [stage for stage in asked if not stage.flat]
    if not found:
        raise RequestError(
            f"stage {asked[0].name}: a tile of real cells holds weights that a head "
            "shares, not pairs that are listed one by one. Name a stage of attention."
        )
    return found


def tile_facts(program: Program, options: SimulateOptions) -> dict[str, Any]:
    """Gap to the `pairwise` decks and supply energy of one tile a stage.

    Each tile holds the first 16 tokens of the coordinate of strongest drive, for the
    first dwell of its stage.

    Args:
        program: What was compiled.
        options: Stages, processes and time limit.

    Returns:
        Figures over all tiles, with those of each stage under `tiles`.

    Raises:
        ToolError: gnucap is missing or failed.
        RequestError: a stage that cannot be a tile.
    """
    from oscc_netlists.circuit import largest_count
    from oscc_sims.tile import run_tile

    names = [s.name for s in _tiled(program, options)]
    results = [
        run_tile(program, name, jobs=options.jobs, timeout_s=options.timeout_s)
        for name in names
    ]
    tiles = [result.to_json() for result in results]
    gaps = np.concatenate([r.moved_rad - r.pairwise_rad for r in results])
    supply = sum(tile["supply_J"] for tile in tiles)
    closed = sum(tile["closed_form_J"] for tile in tiles)
    first = tiles[0]
    return {
        **{key: first[key] for key in ("engine", "fidelity", "reference")},
        "stage": " and ".join(names),
        "sources": first["sources"],
        "targets": first["targets"],
        "rms_rad": float(np.sqrt(np.mean(gaps**2))),
        "median_rad": float(np.median(np.abs(gaps))),
        "max_rad": float(np.abs(gaps).max()),
        "ideal_elements": largest_count(tile["ideal_elements"] for tile in tiles),
        "supply_J": supply,
        "closed_form_J": closed,
        "over_closed_form": supply / closed,
        "reason": "the deck reports its supply alone",
        "tiles": tiles,
    }
