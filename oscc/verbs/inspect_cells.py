"""Look into the pair cells of a build: by stage, and one pair of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oscc.device.lock_cell import lock_rate
from oscc.errors import RequestError
from oscc.ir.lock import LOCKED, SLIPPING
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc.ladder.locks import decided_by_ratio, lock_ratio, rows_of
from oscc.observables import Observables

WORDS = {LOCKED: "locked", SLIPPING: "slipping", -1: "undecided"}
"""What the number that was read of a cell means."""


def stages_of_cells(program: Program) -> list[dict[str, Any]]:
    """Cells of every stage: how many lock by the closed form, coupling and dwell."""
    out = []
    for stage in program.stages:
        ratio, pull = lock_ratio(stage)
        decided = decided_by_ratio(stage)
        out.append(
            {
                "stage": stage.name,
                "cells": stage.targets,
                "locked": int((decided & (ratio < 1)).sum()),
                "slipping": int((decided & (ratio > 1)).sum()),
                "undecided": int((~decided).sum()),
                "coupling": lock_rate(pull, stage.dwell_periods),
                "pull_rad": pull,
                "periods": stage.dwell_periods,
                "largest_ratio": float(ratio.max()),
            }
        )
    return out


def cell_facts(
    program: Program, seen: Mapping[str, Observables], pair: str
) -> list[dict[str, Any]]:
    """What every stage has for one pair of tokens, and what engines read of it.

    Args:
        program: A program of pair cells.
        seen: Observables by engine.
        pair: `HEAD,TOKEN,PARTNER`.

    Returns:
        An entry a stage; `cell` is its row, null where the pair has none: then the
        closed form proves it unlocked.

    Raises:
        RequestError: malformed, a token that is not there, or a pair that no stage is
            asked about.
    """
    place = _place(program, pair)
    return [_facts(stage, seen, place) for stage in program.stages]


def _place(program: Program, pair: str) -> tuple[int, int, int]:
    parts = [part.strip() for part in pair.split(",")]
    if len(parts) != 3 or not all(part.isdecimal() for part in parts):
        raise RequestError(
            f"--pair must be HEAD,TOKEN,PARTNER, such as 0,17,3, not {pair!r}."
        )
    head, token, partner = (int(part) for part in parts)
    size, first = int(program.tokens.size), program.stages[0]
    if not first.causal and partner > token:
        token, partner = partner, token  # a cell serves both
    if token >= size:
        raise RequestError(
            f"--pair {pair}: the program has tokens 0 to {size - 1}, but {token} was "
            "asked for."
        )
    if token < first.begins:
        raise RequestError(
            f"--pair {pair}: the program computes the tokens from {first.begins} on."
        )
    if partner >= token:
        raise RequestError(
            f"--pair {pair}: the partner of a cell is an earlier token; a token and "
            "itself always lock, without a cell."
        )
    heads = 1 + max(
        int(s.index[:, 0].max()) for s in program.stages if s.index is not None
    )
    if head >= heads:
        raise RequestError(
            f"--pair {pair}: no stage has a cell of head {head}; there are cells of "
            f"heads 0 to {heads - 1}."
        )
    return head, token, partner


def _facts(
    stage: Stage, seen: Mapping[str, Observables], place: tuple[int, int, int]
) -> dict[str, Any]:
    names = dict(zip(("head", "token", "partner"), place, strict=True))
    assert stage.index is not None
    rows = np.flatnonzero((stage.index == np.array(place)).all(axis=1))
    if not rows.size:
        return {"stage": stage.name, **names, "cell": None}
    row = int(rows[0])
    ratio, pull = lock_ratio(stage)
    assert stage.digital_coherence is not None
    return {
        "stage": stage.name,
        **names,
        "cell": row,
        "ratio": float(ratio[row]),
        "strength": float(stage.edges.gamma[row]),
        "detuning_rad": float(stage.detuning_rad[row]),
        "pull_rad": pull,
        "decided": bool(decided_by_ratio(stage)[row]),
        "digital_coherence": float(stage.digital_coherence[row]),
        "read": {
            engine: found
            for engine, one in sorted(seen.items())
            if (found := _reading(stage, one, row)) is not None
        },
    }


def _reading(stage: Stage, seen: Observables, row: int) -> dict[str, Any] | None:
    """What an engine read of a cell, None where it did not run it."""
    if stage.name not in seen.stages:
        return None
    places = np.flatnonzero(rows_of(stage, seen) == row)
    if not places.size:
        return None
    value = {
        name: float(seen.arrays[f"{stage.name}.{name}"][places[0]])
        for name in ("coherence", "locked", "margin")
        if f"{stage.name}.{name}" in seen.arrays
    }
    return value | {"locked": WORDS[int(value["locked"])]}
