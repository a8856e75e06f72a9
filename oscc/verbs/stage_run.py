"""Run one stage on an engine, with the host in between: for loops over layers."""

from __future__ import annotations

from oscc.arrays import FloatArray
from oscc.device.card import Card
from oscc.ir.stage import Stage

ENGINES = ("ir", "phase", "circuit")
"""Engines that run every target of a stage, and so can stand in a loop."""


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

        return interpret(stage)
    if engine == "phase":
        from oscc_backends import phase
        from oscc_sims.phase import solve as solve_phase

        return solve_phase(phase.problem(stage)).reshape(stage.grid)
    from oscc_backends import circuit
    from oscc_sims.circuit import solve as solve_circuit

    assert card is not None, "the circuit runs on a card"
    found, _ = solve_circuit(card, circuit.problem(stage), threads=threads)
    return found.reshape(stage.grid)
