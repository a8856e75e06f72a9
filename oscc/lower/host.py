"""Host operations: what a model does besides its couplings, with counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from oscc.ir.program import HostOperation

if TYPE_CHECKING:
    from oscc.lock_trace import LockedTrace
    from oscc.trace import Trace


UNITS = {
    "softmax_exponentials": "exp",
    "sine_cosine_pairs": "sincos",
    "embedding_reads": "read",
    "lock_factors_exponentials": "exp",
}
"""What a count means where it is not multiply-accumulates."""


def _listed(counts: Mapping[str, int], layer: int) -> list[HostOperation]:
    return [
        HostOperation(name, layer, int(count), UNITS.get(name, "mac"))
        for name, count in counts.items()
    ]


def host_operations(trace: Trace | LockedTrace) -> tuple[HostOperation, ...]:
    """Operations of the whole input in the order in which they run."""
    out: list[HostOperation] = []
    counts = [layer.operations for layer in trace.layers]
    for number, operations in enumerate(counts):
        out += _listed(operations, number)
    return (*out, *_listed(trace.operations, -1))
