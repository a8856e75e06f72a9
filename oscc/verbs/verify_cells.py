"""Judge the levels of a program of pair cells: coherence in the place of phases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from oscc.arrays import FloatArray
from oscc.errors import UndecidedError
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc.ladder.convergence import SHARE, Convergence, most_moved_first
from oscc.ladder.locks import (
    EXACT,
    GNUCAP,
    HARDWARE_SHARE,
    NGSPICE,
    compare_cells,
    judge_cells,
    rows_of,
)
from oscc.observables import Observables
from oscc.verbs.simulate_cells import chosen_cells

if TYPE_CHECKING:
    from oscc.ladder.levels import LevelResult
    from oscc.verbs.simulate import SimulateOptions


def tolerance(
    level: str, engine: str, accuracy_rad: float, given: Mapping[str, float]
) -> float:
    """Largest rms error of the coherence at a level.

    Args:
        level: Level of the ladder.
        engine: Engine that runs it.
        accuracy_rad: Of the program, which levels phase and circuit follow.
        given: The user's own, by level.
    """
    if level in given:
        return given[level]
    if level == "ir":
        return EXACT
    if level in ("phase", "circuit"):
        return HARDWARE_SHARE * accuracy_rad
    return NGSPICE if engine == "ngspice" else GNUCAP


def judge_level(
    program: Program,
    names: tuple[str, str, str],
    run: Callable[[str], Observables],
    used: dict[str, Observables],
    limit: float,
) -> tuple[LevelResult, Convergence | None]:
    """Verdict of one level, and the gate of a simulator's run.

    A run that did not converge leaves the level undecided, without numbers.

    Args:
        program: A program of pair cells.
        names: Level, engine, and the engine or layer above it.
        run: Gives the observables of an engine.
        used: Observables that were looked at, by engine; added to.
        limit: Largest rms error of the coherence.

    Raises:
        UndecidedError: nothing was simulated, or a simulator ran at one step only.
    """
    level, engine, reference = names
    seen = used[engine] = run(engine)
    if reference == "digital":
        errors = compare_cells(program, seen, _digital)
    else:
        above = used[reference] = run(reference)
        errors = compare_cells(program, seen, lambda stage: _coherence(above, stage))
    result = judge_cells(
        errors, level=level, engine=engine, reference=reference, tolerance=limit
    )
    if level != "spice":
        return result, None
    gate = converged(program, seen, limit)
    return result if gate.passed else _open(result, gate.sentence), gate


def _open(result: LevelResult, reason: str) -> LevelResult:
    """The level without its numbers: none is offered of a run that did not converge."""
    return replace(
        result,
        passed=None,
        reason=reason,
        targets=0,
        slips=0,
        worst=None,
        blame=UndecidedError.exit_status,
        rms_coherence=None,
        max_coherence=None,
        undecided=None,
    )


def complete(seen: Observables, program: Program, options: SimulateOptions) -> bool:
    """Whether a simulator's run of cells can be judged: all asked for, at two steps."""
    for name, rows in chosen_cells(program, options).items():
        if not set(rows.tolist()) <= set(seen.arrays[f"{name}.cells"].tolist()):
            return False
        if options.gate and f"{name}.raw.half_step_coherence" not in seen.arrays:
            return False
    return True


def converged(program: Program, seen: Observables, limit: float) -> Convergence:
    """Change of the coherence of every simulated cell at half the step.

    Raises:
        UndecidedError: the run was made at one step only.
    """
    places: list[tuple[float, str, int, int]] = []
    total, largest = 0, 0.0
    for stage in program.stages:
        name = f"{stage.name}.raw.half_step_coherence"
        if stage.name not in seen.stages or stage.index is None:
            continue
        if name not in seen.arrays:
            raise UndecidedError(
                "it was run at one step only, so that its convergence is not known. "
                "Simulate it again with the gate."
            )
        moved = np.abs(seen.arrays[name] - _coherence(seen, stage))
        index = stage.index[rows_of(stage, seen)]
        total, largest = total + moved.size, max(largest, float(moved.max()))
        places += [
            (float(moved[k]), stage.name, int(index[k, 1]), int(index[k, 2]))
            for k in np.flatnonzero(moved > SHARE * limit)
        ]
    return Convergence(
        seen.engine,
        total,
        None,
        not places,
        most_moved_first(places),
        change_coherence=largest,
    )


def _coherence(seen: Observables, stage: Stage) -> FloatArray:
    return np.asarray(seen.arrays[f"{stage.name}.coherence"])


def _digital(stage: Stage) -> FloatArray:
    assert stage.digital_coherence is not None
    return stage.digital_coherence
