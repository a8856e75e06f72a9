"""Pair cells for the report: what each pair of tokens is, tables, two cells to show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from oscc.arrays import BoolArray, FloatArray, IntArray
from oscc.device import Card
from oscc.device.lock_cell import lock_cell, lock_rate
from oscc.ir.program import Program
from oscc.ir.rounds import rounds
from oscc.ir.stage import Stage
from oscc.ladder.locks import decided_by_ratio, decided_cells, lock_ratio, rows_of
from oscc.observables import Observables
from oscc.pages import tables
from oscc.pages.cell_trace import CellTrace, cell_trace
from oscc.units import grouped

HIDDEN, FAR, SLIPS, OPEN, LOCKS, SELF = range(6)
"""What a pair of tokens is: hidden by the mask or not computed; without a cell, as it
is proved unlocked; a cell that slips; one that is not decided; one that locks; a token
and itself."""

_LOCKED_SHOWN, _SLIPPING_SHOWN = 0.8, 1.03


@dataclass(frozen=True, slots=True, eq=False)
class CellScene:
    """One cell of a stage, followed through its dwell.

    Args:
        kind: `locked` or `slipping`.
        ratio: Detuning over lock range, x.
        place: Head, token and partner.
        pull_rad: K t of the whole dwell [rad].
        periods: Length of the dwell.
        trace: What the circuit does.
    """

    kind: str
    ratio: float
    place: tuple[int, int, int]
    pull_rad: float
    periods: int
    trace: CellTrace


def make_scenes(stage: Stage, card: Card) -> list[CellScene]:
    """A decided cell that locks and one that slips, of those that the stage has.

    The one with x nearest to .8, and the one nearest above 1: it slips slowly.

    Args:
        stage: Stage of pair cells.
        card: Device card of the program.
    """
    assert stage.index is not None
    ratio, pull = lock_ratio(stage)
    decided = decided_by_ratio(stage)
    cell = lock_cell(card, lock_rate(pull, stage.dwell_periods))
    signed = stage.detuning_rad / pull
    out = []
    for kind, wanted, allowed in (
        ("locked", _LOCKED_SHOWN, decided & (ratio < 1)),
        ("slipping", _SLIPPING_SHOWN, decided & (ratio > 1)),
    ):
        if not allowed.any():
            continue
        row = int(np.where(allowed, np.abs(ratio - wanted), np.inf).argmin())
        head, token, partner = (int(n) for n in stage.index[row])
        out.append(
            CellScene(
                kind=kind,
                ratio=float(signed[row]),
                place=(head, token, partner),
                pull_rad=pull,
                periods=stage.dwell_periods,
                trace=cell_trace(cell, float(signed[row]), stage.dwell_periods),
            )
        )
    return out


def what_locks(stage: Stage, seen: Observables | None) -> IntArray:
    """`LOCKS`, `SLIPS` or `OPEN` for every cell, shape (pairs,).

    As an engine that ran all cells has read it; without one by the closed form.
    """
    ratio, _ = lock_ratio(stage)
    locked: BoolArray = ratio < 1
    decided = decided_by_ratio(stage)
    if seen is not None and stage.name in seen.stages:
        read = np.asarray(seen.arrays[f"{stage.name}.locked"])
        every = np.arange(stage.targets)
        locked, decided = read > 0, decided_cells(stage, every, read)
    return np.where(decided, np.where(locked, LOCKS, SLIPS), OPEN)


def pair_map(
    program: Program, stage: Stage, head: int, seen: Observables | None
) -> IntArray:
    """What every pair of tokens of a head is, rows by token, shape (T, T).

    Args:
        program: What was compiled.
        stage: Stage of pair cells.
        head: Which head.
        seen: Observables of the circuit, where it ran.

    Example:
        >>> from oscc.testing.flat import cells_stage
        >>> from oscc.testing.tiny import tiny_program
        >>> stage = cells_stage((0.5, 1.2), index=[[0, 1, 0], [0, 2, 1]])
        >>> pair_map(tiny_program(stage, tokens=[1, 2, 3]), stage, 0, None).tolist()
        [[5, 0, 0], [4, 5, 0], [1, 2, 5]]
    """
    assert stage.index is not None
    size = int(program.tokens.size)
    out = np.full((size, size), FAR)
    found = what_locks(stage, seen)
    mine = stage.index[:, 0] == head
    token, partner = stage.index[mine, 1:].T
    out[token, partner] = found[mine]
    if stage.causal:
        out[np.triu_indices(size, 1)] = HIDDEN
    else:
        out[partner, token] = found[mine]
    np.fill_diagonal(out, SELF)
    out[: stage.begins] = HIDDEN
    return out


def fullest_head(stage: Stage) -> int:
    """The head of a stage with the most cells."""
    assert stage.index is not None
    return int(np.bincount(stage.index[:, 0]).argmax())


def stage_table(program: Program, seen: Mapping[str, Observables]) -> tables.Table:
    """One row a stage: its cells, how many lock, its coupling and dwell."""
    circuit = seen.get("circuit")
    rows = []
    for stage in program.stages:
        _, pull = lock_ratio(stage)
        kinds = what_locks(stage, circuit)
        facts = circuit.facts.get(stage.name, {}) if circuit is not None else {}
        rows.append(
            (
                stage.name,
                grouped(stage.targets),
                *(grouped(int((kinds == k).sum())) for k in (LOCKS, SLIPS, OPEN)),
                tables.number(lock_rate(pull, stage.dwell_periods), 3),
                f"{pull:.3g} rad",
                grouped(stage.dwell_periods),
                tables.number(facts.get("injection_ratio"), 3),
            )
        )
    columns = (
        *("stage", "cells", "locked", "slipping", "undecided", "K/ω0"),
        *("pull K t", "periods", "injection"),
    )
    return tables.table(columns, rows, range(1, 9))


def program_facts(program: Program) -> tuple[tuple[str, str], ...]:
    """As `tables.program_facts`, without what only phases have."""
    phases_alone = {"trained update", "hardware update", "coupler", "accuracy asked"}
    facts = [f for f in tables.program_facts(program) if f[0] not in phases_alone]
    turns = max(rounds(stage) for stage in program.stages)
    own = {
        "host": "two a cell, detuned as the host says",
        "native": f"one a token and head, {turns} rounds of the dwell",
    }
    return (*facts, ("oscillators", own[program.stages[0].lock_mode]))


def key_figures(verdict: Mapping[str, Any] | None) -> list[tuple[str, str, str]]:
    """Error of the circuit and cells that are not judged: name, value, meaning."""
    for level in verdict["levels"] if verdict else ():
        if level["level"] == "circuit" and level.get("rms_coherence") is not None:
            asked = tables.number(level["tolerance_coherence"])
            value = tables.number(level["rms_coherence"], 3)
            undecided = grouped(level["undecided"])
            return [
                ("circuit error", f"{value} in cos", f"rms, {asked} allowed"),
                ("undecided", undecided, f"of {grouped(level['targets'])} cells"),
            ]
    return []


def ladder_table(verdict: Mapping[str, Any]) -> tables.Table:
    """One row a level of `verify.json`, in the coherence."""
    rows = []
    for level in verdict["levels"]:
        worst, place = level["worst"], ""
        if worst and "pair" in worst:
            head, token, partner = worst["pair"]
            place = (
                f"{worst['stage']} head {head} pair {token},{partner}: "
                f"{worst['error_coherence']:+.3g} at x {worst['ratio']:.3f}"
            )
        said = {True: "pass", False: "FAIL", None: "undecided"}[level["passed"]]
        rows.append(
            (
                *(level["level"], level["engine"], level["reference"]),
                grouped(level["targets"]),
                grouped(level.get("undecided") or 0),
                tables.number(level.get("rms_coherence"), 3),
                tables.number(level.get("max_coherence"), 3),
                str(level["slips"]),
                tables.number(level.get("tolerance_coherence"), 3),
                said,
                "; ".join(part for part in (level["reason"], place) if part),
            )
        )
    columns = (
        *("level", "engine", "against", "cells", "undecided", "rms in cos"),
        *("largest in cos", "wrong side", "tolerance in cos", "verdict", "worst cell"),
    )
    return tables.table(columns, rows, range(3, 9))


def layer_table(evaluate: Mapping[str, Any]) -> tables.Table:
    """Error of the coherence by layer with the hardware in the loop."""
    rows = [
        (
            layer["stage"],
            grouped(layer["cells"]),
            grouped(layer["undecided"]),
            tables.number(layer["rms_coherence"], 3),
            grouped(layer["slips"]),
            tables.number(layer.get("rms_coherence_to_model"), 3),
        )
        for layer in evaluate["layers"]
    ]
    columns = ("stage", "cells", "undecided", "rms error in cos", "wrong side")
    return tables.table((*columns, "rms to the digital model"), rows, range(1, 6))


def noise_lines(energy: Mapping[str, Any]) -> list[str]:
    """What noise does to a cell, in a sentence."""
    noise = energy.get("noise")
    if not noise:
        return []
    jitter = tables.angle(noise["thermal_jitter_rad"])
    return [
        f"Thermal jitter of psi in the decided cell nearest to its edge: {jitter}. The "
        "lock forgets noise, so it does not grow with the dwell."
    ]


def coherence_series(
    program: Program, seen: Mapping[str, Observables]
) -> list[tuple[str, FloatArray, FloatArray]]:
    """Engine, x and coherence of its cells, all stages together."""
    out = []
    for engine in [e for e in ("phase", "circuit") if e in seen] + sorted(
        set(seen) - {"ir", "phase", "circuit"}
    ):
        ratio, coherence = [], []
        for stage in program.stages:
            if stage.name in seen[engine].stages:
                rows = rows_of(stage, seen[engine])
                ratio.append(lock_ratio(stage)[0][rows])
                coherence.append(seen[engine].arrays[f"{stage.name}.coherence"])
        out.append((engine, np.concatenate(ratio), np.concatenate(coherence)))
    return out
