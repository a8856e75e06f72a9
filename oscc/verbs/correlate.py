"""Correlations in a loop over layers: scores and logits on the phases at hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oscc.arrays import ComplexArray, FloatArray
from oscc.device.card import Card
from oscc.ir.correlation import Correlation
from oscc.ir.interpret import interpret_correlation
from oscc.lower.correlate import READ_OUT, correlation, score_name

Chosen = Callable[[Correlation], Correlation | None]
"""A correlation on new phases -> the same with its tanks; None leaves it digital."""

Seen = Callable[[Correlation, FloatArray], None]
"""Called with each correlation and what the engine gave, shape (H, T, S)."""


def run_correlation(one: Correlation, engine: str, card: Card) -> FloatArray:
    """Sums of every head on an engine, shape (H, T, S), [nat].

    Args:
        one: What to run.
        engine: `ir`, `phase` or `circuit`.
        card: Device card, for the circuit.
    """
    from oscc_sims import correlate_circuit, correlate_phase

    if engine == "ir":
        return interpret_correlation(one)
    if engine == "phase":
        return correlate_phase.solve(one)
    return correlate_circuit.solve(card, one)


class Correlator:
    """What a model's host asks for a score or for logits, by an engine.

    Args:
        engine: `ir`, `phase` or `circuit`.
        card: Device card.
        heads: Heads of a layer's score.
        chosen: Gives each correlation its tanks.
        seen: Told what came out.
        first: First token that the engine computes; those before it were computed
            in their own steps.
    """

    def __init__(
        self,
        engine: str,
        card: Card,
        *,
        heads: int,
        chosen: Chosen,
        seen: Seen,
        first: int = 0,
    ) -> None:
        self.engine, self.card, self.heads = engine, card, heads
        self.chosen, self.seen, self.first = chosen, seen, first

    def __call__(
        self, number: int, query: ComplexArray, key: ComplexArray
    ) -> FloatArray:
        """Scores of layer `number`, or logits where it is -1, shape (H, T, S)."""
        whole = _fresh(number, query, key, self.heads, 0)
        asked = _fresh(number, query, key, self.heads, self.first)
        out = np.array(whole.digital)
        one = self.chosen(asked)
        if one is not None:
            out[:, self.first :] = run_correlation(one, self.engine, self.card)
            self.seen(one, out[:, self.first :])
        return out


def _fresh(
    number: int, query: ComplexArray, key: ComplexArray, heads: int, first: int
) -> Correlation:
    if number < 0:
        return correlation(READ_OUT, query[first:], key, causal=False)
    return correlation(score_name(number), query[first:], key, heads, first_token=first)


class LoopScores:
    """Scores and logits of many windows, each with the tanks that it needs.

    Args:
        card: Device card.
        heads: Heads of a layer's score.
        accuracy: Wanted rms error of an output [nat].
    """

    def __init__(self, card: Card, heads: int, accuracy: float) -> None:
        self.card, self.heads, self.accuracy = card, heads, accuracy
        self.squares: dict[str, float] = {}
        self.outputs: dict[str, int] = {}

    def correlator(self, engine: str, noted: bool) -> Correlator:
        """What the host asks of an engine; errors are kept if they are to be noted."""
        from oscc.passes.correlators import tuned

        def chosen(one: Correlation) -> Correlation:
            return tuned(one, self.card, self.accuracy)[0]

        def seen(one: Correlation, sums: FloatArray) -> None:
            if noted:
                error = float(np.square(sums - one.digital)[:, one.visible].sum())
                self.squares[one.name] = self.squares.get(one.name, 0.0) + error
                self.outputs[one.name] = self.outputs.get(one.name, 0) + one.outputs

        return Correlator(engine, self.card, heads=self.heads, chosen=chosen, seen=seen)

    def content(self) -> dict[str, Any]:
        """Error by correlation against its own digital sums, for `evaluate.json`."""
        rows = [
            {"correlation": name, "rms_nat": (squares / self.outputs[name]) ** 0.5}
            for name, squares in self.squares.items()
        ]
        return {"correlations": rows} if rows else {}
