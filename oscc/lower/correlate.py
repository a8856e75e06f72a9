"""Lowering of scores and logits to correlations of two banks of oscillators.

    s_tu = sum_j |q_tj| |k_uj| cos(arg q_tj - arg k_uj)

Gates and scale are the sizes, so that a negative one is half a turn of the phase, and
drift is in the phases: omega_j t ahead in both banks, omega_j (t - u) between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from oscc.arrays import ComplexArray
from oscc.errors import RequestError
from oscc.ir.correlation import Correlation
from oscc.ir.program import HostOperation

if TYPE_CHECKING:
    from oscc.trace import LayerTrace, Trace

SCORED_BY = ("host", "hardware")
"""Who forms the scores of attention and the logits."""

READ_OUT = "read_out.logits"
"""Name of the correlation of the last phases with the prototypes."""

REPLACED = ("score", "read_out")
"""Host operations that correlations take the place of."""


def score_name(layer: int) -> str:
    """Name of the correlation of a layer's score."""
    return f"layer.{layer}.score"


def correlation(
    name: str, query: ComplexArray, key: ComplexArray, heads: int = 1, **fields: Any
) -> Correlation:
    """Correlation of two banks of phasors, with the exact sums as its digital result.

    Args:
        name: Of the correlation.
        query: Size the gate, angle the phase, shape (T, K).
        key: The same of the keys, shape (S, K).
        heads: Groups of coordinates with a sum each.
        fields: Further fields, such as `causal`.

    Example:
        >>> found = correlation("c", np.ones((1, 2)) * 1j, np.ones((1, 2)) + 0j)
        >>> found.query_rad.round(3).tolist(), abs(found.digital.round(12)).tolist()
        ([[1.571, 1.571]], [[[0.0]]])
    """
    grouped = [bank.reshape(len(bank), heads, -1) for bank in (query, key)]
    sums = np.einsum("thj,uhj->htu", grouped[0], np.conj(grouped[1])).real
    if fields.get("causal", True):
        first = int(fields.get("first_token", 0))
        tokens = first + np.arange(len(query))
        sums = np.where(np.arange(len(key)) <= tokens[:, None], sums, 0.0)
    return Correlation(
        name=name,
        query_rad=np.angle(query),
        key_rad=np.angle(key),
        query_gain=np.abs(query),
        key_gain=np.abs(key),
        digital=sums,
        **fields,
    )


def score_of(step: LayerTrace, first: int = 0) -> Correlation:
    """Correlation of the score of one traced layer, from token `first` on.

    Raises:
        RequestError: the layer has no score of phases, such as a layer of one's own.
    """
    if step.query is None or step.key is None:
        raise RequestError(f"{step.name}: it has no score of phases to correlate.")
    heads = step.weights.shape[0]
    return correlation(
        score_name(step.layer), step.query[first:], step.key, heads, first_token=first
    )


def correlations(
    trace: Trace, layers: tuple[int, ...] | None = None
) -> tuple[Correlation, ...]:
    """Correlations of all scores, or of those of some layers, and of the logits.

    Raises:
        RequestError: the model's read-out is no alignment of phases.
    """
    from oscc.trace import LayerTrace

    first = trace.tokens.size - 1 if trace.mode == "decode" else 0
    out = [
        score_of(step, first)
        for step in trace.layers
        if isinstance(step, LayerTrace) and (layers is None or step.layer in layers)
    ]
    if trace.read_out is None:
        raise RequestError(
            f"Family `{trace.family}` has no phases to read out by correlation."
        )
    phasors, prototypes = trace.read_out
    logits = correlation(READ_OUT, phasors[first:], prototypes, causal=False)
    return (*out, logits)


def without_replaced(
    operations: tuple[HostOperation, ...], formed: tuple[Correlation, ...]
) -> tuple[HostOperation, ...]:
    """Host operations less the products that correlations form.

    Args:
        operations: Of the model.
        formed: Correlations of the program.
    """
    names = {one.name for one in formed}

    def stays(operation: HostOperation) -> bool:
        if operation.name == "score":
            return score_name(operation.layer) not in names
        return operation.name != "read_out" or READ_OUT not in names

    return tuple(operation for operation in operations if stays(operation))
