"""Host operations: what a model does besides its couplings, with counts."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from oscc.host_counts import ONLY_HARDWARE, reader_operations
from oscc.ir.program import HostOperation

if TYPE_CHECKING:
    from oscc.lock_trace import LockedTrace
    from oscc.trace import Trace


UNITS = {
    "softmax_exponentials": "exp",
    "sine_cosine_pairs": "sincos",
    "embedding_reads": "read",
    "lock_factors_exponentials": "exp",
    "mode_phases": "sincos",
    "mode_angles": "sincos",
    "mode_logarithms": "exp",
}
"""What a count means where it is not multiply-accumulates."""


def _listed(counts: Mapping[str, int], layer: int) -> list[HostOperation]:
    return [
        HostOperation(name, layer, int(count), UNITS.get(name, "mac"))
        for name, count in counts.items()
    ]


def host_operations(
    trace: Trace | LockedTrace,
    mean_field: str = "host",
    digital: Mapping[int, int] = MappingProxyType({}),
) -> tuple[HostOperation, ...]:
    """Operations of the whole input in the order in which they run.

    Args:
        trace: What the digital model did on the input.
        mean_field: `host`, or `oscillators` where they form the modes and are read.
        digital: Multiply-accumulates of the coupling of every step that is not
            lowered, by its position in the trace. What such a step would need for
            oscillators alone is left out.
    """
    from oscc.lock_trace import LockTrace
    from oscc.trace import ModesTrace

    out: list[HostOperation] = []
    for position, step in enumerate(trace.layers):
        counts = step.operations
        if position in digital:
            kept = {n: c for n, c in counts.items() if n not in ONLY_HARDWARE}
            counts = kept | {"coupling": digital[position]}
        elif mean_field == "oscillators" and isinstance(step, ModesTrace):
            counts = reader_operations(counts)
        layer = position if isinstance(step, LockTrace) else step.layer
        out += _listed(counts, layer)
    return (*out, *_listed(trace.operations, -1))
