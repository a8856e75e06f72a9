"""What the host is counted for: of lowered layers, and of those that are not."""

from __future__ import annotations

from collections import Counter

import pytest

from oscc.device import card_to_mapping, load_card
from oscc.host_counts import ONLY_HARDWARE
from oscc.ir.program import Program
from oscc.ir.views import pair_macs
from oscc.lock_trace import trace_locks
from oscc.lower import lower
from oscc.lower.ssa import lower_locks
from oscc.testing.locks import lock_model
from oscc.testing.tiny import tiny_model
from oscc.trace import trace

CARD = card_to_mapping(load_card("vo2-two-state-6k"))
TOKENS = [5, 1, 5, 9, 30, 2]
FAMILIES = ("kuramoto", "fsn", "fsn-no-phase", "fsn-mf")


def counts(program: Program, layer: int) -> Counter[str]:
    out: Counter[str] = Counter()
    for operation in program.host_operations:
        if operation.layer == layer:
            out[operation.name] += operation.count
    return out


def coupled(program: Program, layer: int) -> int:
    head = f"layer.{layer}."
    stages = [s for s in program.stages if s.name.startswith(head) and s.readers == 1]
    return sum(map(pair_macs, stages))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("mode", ["prefill", "decode"])
def test_a_layer_that_is_not_lowered_couples_on_the_host(
    family: str, mode: str
) -> None:
    found = trace(tiny_model(family, layers=2, bound="B2"), TOKENS, mode=mode)
    whole, part = lower(found, CARD), lower(found, CARD, layers=[1])
    assert counts(part, 1) == counts(whole, 1)
    mine, left = counts(part, 0), counts(whole, 0)
    assert mine.pop("coupling") == coupled(whole, 0)
    assert mine == {n: c for n, c in left.items() if n not in ONLY_HARDWARE}
    assert left["bound"] > 0


def test_modes_of_a_layer_that_is_not_lowered_are_sums() -> None:
    found = trace(tiny_model("fsn-mf", layers=2), TOKENS)
    part = lower(found, CARD, layers=[1], mean_field="oscillators")
    assert counts(part, 0)["modes"] == counts(lower(found, CARD), 0)["modes"]
    assert counts(part, 0)["coupling"] == coupled(lower(found, CARD), 0)
    assert counts(part, 1)["modes"] == 0


def test_roots_of_a_block_that_is_not_lowered_are_the_hosts() -> None:
    found = trace_locks(lock_model(layers=2), TOKENS)
    whole, part = lower_locks(found, CARD), lower_locks(found, CARD, layers=[0])
    assert counts(part, 1)["coupling"] == pair_macs(whole.stages[1]) > 0
    assert counts(part, 0) == counts(whole, 0)
