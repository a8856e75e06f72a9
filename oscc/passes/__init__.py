"""Passes: plain functions from a program to a program, run in one literal order."""

from __future__ import annotations

from collections.abc import Callable

from oscc.ir.program import Program
from oscc.passes.correlators import choose_correlators
from oscc.passes.dwell import choose_dwell
from oscc.passes.legalise import legalise
from oscc.passes.locks import choose_locks
from oscc.passes.options import PassOptions

# The dwell sets the largest injection, so it is chosen before the card's limit is
# checked.
PIPELINE = (choose_locks, choose_dwell, choose_correlators, legalise)


def run(
    program: Program,
    options: PassOptions,
    after: Callable[[str, Program], None] = lambda name, program: None,
) -> Program:
    """Run every pass in order; each leaves its numbers in the provenance.

    Args:
        program: A valid program.
        options: What all passes may be told.
        after: Called with the name of each pass and its result.

    Raises:
        RequestError: a pass cannot meet what was asked.
    """
    for step in PIPELINE:
        program = step(program, options)
        after(step.__name__, program)
    return program


__all__ = ["PIPELINE", "PassOptions", "run"]
