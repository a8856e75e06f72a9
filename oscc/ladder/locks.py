"""Levels of pair cells: coherence against the level above, where x decides the cell.

A cell whose x = Omega / (g |C|) lies between what a dwell has settled and what it has
seen slip (`oscc.device.lock_law`) is undecided: it is counted, and never judged. So is
one that the read-out itself leaves open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oscc.arrays import BoolArray, FloatArray, IntArray
from oscc.device.lock_law import x_settled, x_slipped
from oscc.errors import UndecidedError
from oscc.ir.interpret import field
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc.ladder.levels import LevelResult
from oscc.observables import Observables

MOST_UNDECIDED = 0.05
"""Share of undecided cells above which a level is undecided."""

EXACT = 1e-6
"""Largest rms error of the coherence at level ir."""

HARDWARE_SHARE = 0.6
"""Largest rms error at levels phase and circuit, as a share of the program's accuracy.

An accuracy in rad is asked of a cosine as it stands, which moves by no more: 10 mrad
leave .006.
"""

GNUCAP, NGSPICE = 0.006, 0.01
"""Largest rms error of a simulator against the circuit.

It is the simulator's own discretisation, in which the accuracy asked has no part.
"""

Reference = Callable[[Stage], FloatArray]


@dataclass(frozen=True, slots=True, eq=False)
class CellErrors:
    """Errors of the simulated cells of one stage.

    Args:
        stage: Name of the stage.
        index: Head, token and partner of each cell, shape (M, 3).
        error: Coherence less that of the reference, shape (M,).
        ratio: x of each cell, shape (M,).
        decided: Whether the cell is judged, shape (M,).
        flipped: Whether it was read as locked where it slips, or the other way, (M,).
    """

    stage: str
    index: IntArray
    error: FloatArray
    ratio: FloatArray
    decided: BoolArray
    flipped: BoolArray


def lock_ratio(stage: Stage) -> tuple[FloatArray, float]:
    """Detuning over lock range of every cell, x >= 0, and the pull of the dwell K t.

    Raises:
        UndecidedError: the cells of the stage do not share one pull.
    """
    real, imaginary = field(stage)
    pull = np.abs(stage.gain_rad) * np.hypot(real[0], imaginary[0])
    if not np.allclose(pull, pull[0], rtol=1e-9):
        raise UndecidedError(f"stage {stage.name}: its cells have unlike pulls.")
    return np.abs(stage.detuning_rad) / pull, float(pull[0])


def decided_by_ratio(stage: Stage) -> BoolArray:
    """Whether the dwell decides each cell: settled, or sure to have slipped."""
    ratio, pull = lock_ratio(stage)
    out: BoolArray = (ratio <= x_settled(pull)) | (ratio >= x_slipped(pull))
    return out


def decided_cells(stage: Stage, rows: IntArray, locked: FloatArray) -> BoolArray:
    """Whether each of some cells is judged, shape (M,).

    By its x and by its read-out; by the read-out alone where the cell finds its x
    itself.

    Args:
        stage: Stage of pair cells.
        rows: Which cells, shape (M,).
        locked: What was read of them: 1, 0, or -1 undecided, shape (M,).
    """
    read: BoolArray = np.asarray(locked) >= 0
    if stage.lock_mode == "native":
        return read
    return np.asarray(decided_by_ratio(stage)[rows] & read)


def rows_of(stage: Stage, seen: Observables) -> IntArray:
    """Rows of the stage that were simulated, shape (M,)."""
    name = f"{stage.name}.cells"
    if name in seen.arrays:
        return np.asarray(seen.arrays[name], dtype=np.int64)
    return np.arange(stage.targets)


def compare_cells(
    program: Program, seen: Observables, reference: Reference
) -> list[CellErrors]:
    """Errors of the coherence of every simulated stage against a reference.

    Args:
        program: The program that was simulated.
        seen: Observables of the level.
        reference: Coherence of all cells of a stage, shape (pairs,).
    """
    out = []
    for stage in program.stages:
        if stage.name not in seen.stages or stage.index is None:
            continue
        rows = rows_of(stage, seen)
        ratio, _ = lock_ratio(stage)
        locked = np.asarray(seen.arrays[f"{stage.name}.locked"])
        decided = decided_cells(stage, rows, locked)
        coherence = np.asarray(seen.arrays[f"{stage.name}.coherence"])
        out.append(
            CellErrors(
                stage=stage.name,
                index=stage.index[rows],
                error=coherence - reference(stage)[rows],
                ratio=ratio[rows],
                decided=decided,
                flipped=decided & ((locked > 0) != (ratio[rows] < 1.0)),
            )
        )
    return out


def judge_cells(
    errors: Sequence[CellErrors],
    *,
    level: str,
    engine: str,
    reference: str,
    tolerance: float,
) -> LevelResult:
    """Verdict of one level: rms of the decided cells within tolerance, none flipped.

    Raises:
        UndecidedError: no cell was simulated, or too many are undecided.
    """
    total = sum(e.error.size for e in errors)
    if not total:
        raise UndecidedError("no cell was simulated.")
    decided = np.concatenate([e.error[e.decided] for e in errors])
    open_cells = total - decided.size
    flips = sum(int(e.flipped.sum()) for e in errors)
    rms = float(np.sqrt(np.mean(decided**2))) if decided.size else None
    passed: bool | None = rms is not None and rms <= tolerance and not flips
    reason, blame = _reason(rms, tolerance, flips), 0
    if open_cells > MOST_UNDECIDED * total:
        passed, blame = None, 4
        reason = (
            f"{open_cells} of {total} cells are too near the edge of their lock range "
            "for this dwell; compile with more --periods"
        )
    return LevelResult(
        level=level,
        engine=engine,
        reference=reference,
        tolerance_rad=None,
        passed=passed,
        reason=reason,
        targets=total,
        slips=flips,
        worst=_worst(errors) if decided.size else None,
        blame=blame,
        rms_coherence=rms,
        max_coherence=float(np.abs(decided).max()) if decided.size else None,
        tolerance_coherence=tolerance,
        undecided=open_cells,
    )


def _reason(rms: float | None, tolerance: float, flips: int) -> str:
    if flips:
        return f"{flips} decided cells were read as locked where they slip, or not"
    if rms is None:
        return "no cell is decided"
    return "" if rms <= tolerance else f"{rms:.3g} rms in the coherence"


def _worst(errors: Sequence[CellErrors]) -> dict[str, Any]:
    sizes = [np.where(e.decided, np.abs(e.error), -1.0) for e in errors]
    group = int(np.argmax([size.max(initial=-1.0) for size in sizes]))
    cell, found = int(np.argmax(sizes[group])), errors[group]
    return {
        "stage": found.stage,
        "pair": [int(n) for n in found.index[cell]],
        "error_coherence": float(found.error[cell]),
        "ratio": float(found.ratio[cell]),
    }


def lock_causes(
    program: Program, seen: Mapping[str, Observables]
) -> dict[str, dict[str, float | None]]:
    """Size of what separates the levels: settling, averaging, discretisation.

    Over decided cells, in the coherence; the `_rad` keys are null.
    """
    steps = (("settling", "phase", "ir"), ("averaging", "circuit", "phase"))
    parts: dict[str, list[FloatArray]] = {}
    for name, engine, above in steps:
        if engine in seen and above in seen:
            parts[name] = _differences(program, seen[engine], seen[above])
    for engine, one in seen.items():
        if engine not in ("ir", "phase", "circuit") and "circuit" in seen:
            found = _differences(program, one, seen["circuit"])
            parts.setdefault("discretisation", []).extend(found)
    return {name: _size(values) for name, values in parts.items() if values}


def _differences(
    program: Program, seen: Observables, above: Observables
) -> list[FloatArray]:
    found = compare_cells(
        program, seen, lambda s: np.asarray(above.arrays[f"{s.name}.coherence"])
    )
    return [e.error[e.decided] for e in found]


def _size(parts: list[FloatArray]) -> dict[str, float | None]:
    every = np.concatenate(parts)
    nothing = not every.size
    return {
        "rms_rad": None,
        "max_rad": None,
        "rms_coherence": None if nothing else float(np.sqrt(np.mean(every**2))),
        "max_coherence": None if nothing else float(np.abs(every).max()),
    }


def sample_cells(stage: Stage, count: int, random: np.random.Generator) -> IntArray:
    """Rows of cells for decks: one in each band of x, decided ones first.

    Args:
        stage: Stage of pair cells.
        count: Cells wanted; all of them if the stage has fewer.
        random: Stream of the draw.

    Returns:
        Rows, ascending, shape (M,).
    """
    ratio, _ = lock_ratio(stage)
    decided = decided_by_ratio(stage)
    pool = np.flatnonzero(decided) if decided.any() else np.arange(ratio.size)
    count = min(count, pool.size)
    order = pool[np.argsort(ratio[pool], kind="stable")]
    chosen = [int(random.choice(band)) for band in np.array_split(order, count)]
    return np.sort(np.array(chosen, dtype=np.int64))
