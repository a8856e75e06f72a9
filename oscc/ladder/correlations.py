"""Levels of correlations: the error of scores and logits against the level above."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oscc.arrays import BoolArray, FloatArray
from oscc.errors import RequestError, UndecidedError
from oscc.ir.correlation import Correlation
from oscc.ir.program import Program
from oscc.ladder.convergence import SHARE
from oscc.ladder.levels import LevelResult
from oscc.observables import Observables

EXACT_NAT = 1e-6


def summed(seen: Observables, one: Correlation) -> FloatArray:
    """What an engine gave for a correlation, shape (H, T, S), [nat].

    Raises:
        RequestError: the run holds none, or one of another shape.
    """
    name = f"{one.name}.correlation"
    if name not in seen.arrays or seen.arrays[name].shape != one.digital.shape:
        raise RequestError(
            f"The {seen.engine} run holds no `{name}`. Simulate all stages."
        )
    return np.asarray(seen.arrays[name])


def has_correlations(program: Program, seen: Observables, *, gate: bool) -> bool:
    """Whether a run holds every correlation, with the gate at both steps."""
    words = ("correlation", "raw.half_step_correlation") if gate else ("correlation",)
    return all(
        f"{one.name}.{word}" in seen.arrays
        for one in program.correlations
        for word in words
    )


def require_converged(program: Program, seen: Observables, tolerance: float) -> None:
    """Refuse a simulator's run that half the step changes by more than its share.

    Args:
        program: A program with correlations.
        seen: Observables of a simulator.
        tolerance: Largest rms error [nat].

    Raises:
        UndecidedError: it was run at one step only, or has not converged.
    """
    if not has_correlations(program, seen, gate=True):
        raise UndecidedError(
            "scores were run at one step only, so that their convergence is not known. "
            "Simulate again with the gate."
        )
    for one in program.correlations:
        finer = seen.arrays[f"{one.name}.raw.half_step_correlation"]
        moved = float(np.abs(finer - summed(seen, one)).max())
        if moved > SHARE * tolerance:
            raise UndecidedError(
                f"{one.name}: half the step moves {seen.engine} by {moved:.2g} nat, "
                f"more than a third of {tolerance:.2g}."
            )


def every_visible(one: Correlation) -> BoolArray:
    """Which outputs are read, shape (H, T, S)."""
    return np.broadcast_to(one.visible, one.digital.shape)


def _worst(one: Correlation, error: FloatArray) -> dict[str, Any]:
    place = int(error.argmax())
    head, query, key = (int(i) for i in np.argwhere(every_visible(one))[place])
    return {
        "stage": one.name,
        "head": head,
        "query": query + one.first_token,
        "key": key,
        "error_nat": float(error[place]),
    }


def judge_correlations(
    program: Program,
    seen: Observables,
    reference: Callable[[Correlation], FloatArray],
    *,
    names: tuple[str, str, str],
    tolerance: float,
) -> LevelResult:
    """Verdict of one level over all visible outputs of all correlations.

    Args:
        program: A program with correlations.
        seen: Observables of the level.
        reference: Sums of the level above, shape (H, T, S).
        names: Level, engine, and what it is judged against.
        tolerance: Largest rms error [nat].
    """
    errors, places = [], []
    for one in program.correlations:
        visible = every_visible(one)
        error = np.abs(summed(seen, one) - reference(one))[visible]
        errors.append(error)
        places.append(_worst(one, error))
    every = np.concatenate(errors)
    rms = float(np.sqrt(np.mean(every**2)))
    passed = rms <= tolerance
    level, engine, above = names
    return LevelResult(
        level=level,
        engine=engine,
        reference=above,
        tolerance_rad=None,
        passed=passed,
        reason="" if passed else f"scores {rms:.3g} nat rms, {tolerance:.3g} asked",
        targets=int(every.size),
        worst=max(places, key=lambda place: place["error_nat"]),
        rms_nat=rms,
        max_nat=float(every.max()),
        tolerance_nat=tolerance,
    )
