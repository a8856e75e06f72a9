"""Levels: the error of one level against the level above it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oscc.arrays import FloatArray, IntArray
from oscc.errors import RequestError, UndecidedError
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc.observables import Observables

SLIP_RAD = np.pi / 2


@dataclass(frozen=True, slots=True, eq=False)
class StageErrors:
    """Errors of the simulated targets of one stage.

    Args:
        stage: Name of the stage.
        index: Token and coordinate of each target, shape (M, 2).
        error_rad: Level minus reference, shape (M,) or (M, D) with one column a dwell.
        drive: Drive strength |g C| of each target, shape (M,) [rad].
    """

    stage: str
    index: IntArray
    error_rad: FloatArray
    drive: FloatArray


_OF_CORRELATIONS = ("rms_nat", "max_nat", "tolerance_nat")
_OF_CELLS = ("rms_coherence", "max_coherence", "tolerance_coherence", "undecided")


@dataclass(frozen=True, slots=True)
class LevelResult:
    """What one level showed; `passed` is None where it could not run or decide.

    A level that could not run has `blame` 3 (a tool is missing or failed) or
    4 (undecided). Pair cells are judged by their coherence: then the angles are None,
    `undecided` counts the cells that are not judged, and `slips` those read wrongly.
    Correlations are judged in nat, and then the angles are None as well.
    """

    level: str
    engine: str
    reference: str
    tolerance_rad: float | None
    passed: bool | None
    reason: str
    targets: int = 0
    rms_rad: float | None = None
    median_rad: float | None = None
    p99_rad: float | None = None
    max_rad: float | None = None
    slips: int = 0
    worst: dict[str, Any] | None = None
    blame: int = 0
    rms_coherence: float | None = None
    max_coherence: float | None = None
    tolerance_coherence: float | None = None
    undecided: int | None = None
    rms_nat: float | None = None
    max_nat: float | None = None
    tolerance_nat: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The entry of verify.json."""
        left_out: tuple[str, ...] = ("blame",)
        left_out += () if self.tolerance_coherence is not None else _OF_CELLS
        left_out += () if self.tolerance_nat is not None else _OF_CORRELATIONS
        names = [name for name in self.__slots__ if name not in left_out]
        return {name: getattr(self, name) for name in names}


def drive_strength(stage: Stage) -> FloatArray:
    """Drive |g C| of every target, sizes of the harmonics added, in its shape [rad]."""
    from oscc.ir.interpret import field

    real, imaginary = field(stage)
    out: FloatArray = np.abs(stage.gain_rad) * np.hypot(real, imaginary).sum(axis=0)
    return out


def compare(
    program: Program,
    seen: Observables,
    reference: Callable[[Stage], FloatArray],
) -> list[StageErrors]:
    """Errors of the phases of every simulated stage against a reference.

    Args:
        program: The program that was simulated.
        seen: Observables of the level.
        reference: Phases of all targets of a stage, shape (T, K).
    """
    out = []
    for stage in _simulated(program, seen):
        index = seen.index(stage.name, stage.grid, stage.begins)
        found = np.asarray(seen.phase(stage.name)).ravel()
        row = stage.rows_of(index)
        out.append(
            StageErrors(
                stage=stage.name,
                index=index,
                error_rad=found - reference(stage).ravel()[row],
                drive=drive_strength(stage).ravel()[row],
            )
        )
    return out


def compare_dwells(
    program: Program, seen: Observables, above: Observables
) -> list[StageErrors]:
    """Errors of every dwell of the sampled targets against the circuit engine.

    Both start each dwell at the circuit engine's phases, so that errors of earlier
    substeps do not hide or feed those of later ones.
    """
    out = []
    for stage in _simulated(program, seen):
        index = seen.index(stage.name, stage.grid, stage.begins)
        row = stage.rows_of(index)
        name = f"{stage.name}.raw.end_rad"
        if name not in above.arrays or name not in seen.arrays:
            raise RequestError(f"stage {stage.name}: the runs hold no `{name}`.")
        out.append(
            StageErrors(
                stage=stage.name,
                index=index,
                error_rad=seen.arrays[name] - above.arrays[name][row],
                drive=drive_strength(stage).ravel()[row],
            )
        )
    return out


def _simulated(program: Program, seen: Observables) -> list[Stage]:
    return [stage for stage in program.stages if stage.name in seen.stages]


def judge(
    errors: Sequence[StageErrors],
    *,
    level: str,
    engine: str,
    reference: str,
    tolerance_rad: float,
) -> LevelResult:
    """Verdict of one level: rms within tolerance, and nothing slipped.

    Raises:
        UndecidedError: no target was simulated.
    """
    if not any(e.error_rad.size for e in errors):
        raise UndecidedError("no target was simulated.")
    every = np.concatenate([np.abs(e.error_rad).ravel() for e in errors])
    rms = float(np.sqrt(np.mean(every**2)))
    slips = int((every > SLIP_RAD).sum())
    passed = rms <= tolerance_rad and not slips
    reason = ""
    if slips:
        reason = (
            f"{slips} of {every.size} read-outs slipped by more than a quarter turn"
        )
    elif not passed:
        reason = f"{1e3 * rms:.4g} mrad rms, {1e3 * tolerance_rad:.4g} asked"
    return LevelResult(
        level=level,
        engine=engine,
        reference=reference,
        tolerance_rad=tolerance_rad,
        passed=passed,
        reason=reason,
        targets=sum(e.index.shape[0] for e in errors),
        rms_rad=rms,
        median_rad=float(np.median(every)),
        p99_rad=float(np.quantile(every, 0.99)),
        max_rad=float(every.max()),
        slips=slips,
        worst=_worst(errors),
    )


def _worst(errors: Sequence[StageErrors]) -> dict[str, Any]:
    peaks = [float(np.abs(e.error_rad).max(initial=-1.0)) for e in errors]
    group = errors[int(np.argmax(peaks))]
    size = np.abs(group.error_rad).reshape(group.index.shape[0], -1)
    target, column = np.unravel_index(int(size.argmax()), size.shape)
    token, coordinate = group.index[target]
    error = group.error_rad.reshape(size.shape)[target, column]
    return {
        "stage": group.stage,
        "token": int(token),
        "coordinate": int(coordinate),
        "error_rad": float(error),
        "drive": float(group.drive[target]),
    }
