"""Run one stage on an engine, with the host in between: for loops over layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from oscc.arrays import ComplexArray, FloatArray
from oscc.device.card import Card
from oscc.errors import RequestError
from oscc.ir.stage import Stage

if TYPE_CHECKING:
    from oscc.trace import Step
    from oscc_backends.artefact import LockProblem

ENGINES = ("ir", "phase", "circuit")
"""Engines that run every target of a stage, and so can stand in a loop."""


def read_drive(stage: Stage, phases_rad: FloatArray, layer: Step) -> ComplexArray:
    """Collective modes of every token from the stage that reads them, shape (T, M).

    Args:
        stage: The stage that reads them, for messages.
        phases_rad: Its read-outs, shape (T, 3 M); or of its last tokens alone.
        layer: Traced coupling to the modes.

    Raises:
        RequestError: the step is no coupling to modes.
    """
    from oscc.lower.mode_drive import read_modes
    from oscc.lower.modes import modes_of
    from oscc.trace import ModesTrace

    if not isinstance(layer, ModesTrace):
        raise RequestError(f"stage {stage.name}: {layer.name} has no modes to read.")
    modes = modes_of(layer)
    out = modes.sums(layer.theta_rad)  # of tokens that were computed before
    out[stage.begins :] = read_modes(modes, phases_rad)
    return out


def run_stage(
    stage: Stage, engine: str, card: Card | None = None, *, threads: int = 1
) -> FloatArray:
    """Phases of every target at the end of a stage, shape (T, K) [rad].

    Args:
        stage: What to run.
        engine: One of `ENGINES`.
        card: Device card, for the circuit.
        threads: Worker threads; the result does not depend on it.

    Raises:
        RequestError: a target needs more injection than the card allows.
        UndecidedError: the engine could not reach its accuracy.
    """
    if engine == "ir":
        from oscc.ir.interpret import interpret

        return stage.on_grid(interpret(stage))
    if engine == "phase":
        from oscc_backends import phase
        from oscc_sims.phase import solve as solve_phase

        return solve_phase(phase.problem(stage)).reshape(stage.grid)
    from oscc_backends import circuit
    from oscc_sims.circuit import solve as solve_circuit

    assert card is not None, "the circuit runs on a card"
    found, _ = solve_circuit(card, circuit.problem(stage), threads=threads)
    return found.reshape(stage.grid)


class CellReadings(NamedTuple):
    """What cells read: `coherence` and `locked` (1, 0, or -1 undecided), (pairs,)."""

    coherence: FloatArray
    locked: FloatArray


def run_cells(
    stage: Stage, engine: str, card: Card | None = None, *, threads: int = 1
) -> CellReadings:
    """Coherence of every pair cell at the end of a stage.

    Args:
        stage: Stage of pair cells.
        engine: One of `ENGINES`.
        card: Device card, for the circuit.
        threads: Worker threads; the result does not depend on it.
    """
    if engine == "ir":
        from oscc.ir.interpret import interpret_cells

        coherence = interpret_cells(stage)
        return CellReadings(coherence, (coherence > 0).astype(np.float64))
    from oscc_backends import lock

    return read_cells(lock.problem(stage), engine, card, threads=threads)


def read_cells(
    problem: LockProblem, engine: str, card: Card | None = None, *, threads: int = 1
) -> CellReadings:
    """Coherence of every cell of a problem.

    Args:
        problem: Pair cells that share one coupling and one dwell.
        engine: `phase` or `circuit`.
        card: Device card, for the circuit.
        threads: Worker threads; the result does not depend on it.
    """
    if engine == "phase":
        from oscc_sims.lock_phase import solve as solve_phase

        seen = solve_phase(problem)
    else:
        from oscc_sims.lock_circuit import solve as solve_circuit

        assert card is not None, "the circuit runs on a card"
        seen = solve_circuit(card, problem, threads=threads).reading
    return CellReadings(seen.coherence, np.asarray(seen.locked, dtype=np.float64))
