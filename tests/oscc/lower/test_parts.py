"""Parts of a layer: lowered, on the host, refused, and none missing (case A15)."""

import pytest

from oscc.lower import LOWERINGS
from oscc.lower.parts import (
    HOST,
    LOWERED,
    REFUSED,
    layer_parts,
    layer_sentences,
    outer_parts,
    refusal,
)
from oscc.models.base import FAMILIES, build_model
from oscc.models.config import ModelConfig
from oscc.models.shapes import tensor_shapes
from oscc.trace import trace

SIZES = {"k": 8, "layers": 2, "heads": 2, "hidden": 6, "context": 5, "modes": 4}
CHOICES = [
    *({"family": family} for family in FAMILIES),
    {"family": "kuramoto", "values": "projected", "query_offset": True},
    {"family": "kuramoto", "gates": "none", "feed_forward": "none", "bound": "B0"},
    {"family": "fsn-mf", "bound": "B0"},
    {"family": "ssa", "arm": "published", "lock_top_k": 2},
]


@pytest.mark.parametrize("choice", CHOICES)
def test_every_tensor_belongs_to_one_part_and_no_part_is_empty(choice):
    config = ModelConfig(**(SIZES | choice))
    inner, outer, used = layer_parts(config), outer_parts(config), set()
    for name in tensor_shapes(config):
        head, _, rest = name.partition(".")
        within = head in ("layers", "blocks")
        own = rest.partition(".")[2] if within else name
        holding = [part for part in (inner if within else outer) if part.holds(own)]
        assert len(holding) == 1, name
        used.add(holding[0].name)
    tied = {"read-out"} if config.family == "ssa" else set()  # the embedding again
    none = {"coupling"} if config.family == "kuramoto" else set()  # strength 1
    with_tensors = {part.name for part in (*inner, *outer) if part.tensors}
    assert with_tensors - tied - none == used - none


@pytest.mark.parametrize(
    "choice", [c for c in CHOICES if c["family"] in ("kuramoto", "fsn", "fsn-no-phase")]
)
def test_every_operation_of_the_host_belongs_to_a_part(choice):
    config = ModelConfig(**(SIZES | choice))
    if refusal(config):
        assert config.values == "projected"
        return
    traced = trace(build_model(config), [3, 1, 4])
    for operations, parts in (
        (traced.layers[1].operations, layer_parts(config)),
        (traced.operations, outer_parts(config)),
    ):
        listed = {name for part in parts for name in part.operations}
        assert {name for name, count in operations.items() if count} <= listed


def test_where_parts_run():
    where = {
        p.name: p.where for p in layer_parts(ModelConfig("fsn", query_offset=True))
    }
    assert where == {
        "score gates": HOST,
        "query offset": HOST,
        "score and softmax": HOST,
        "value gate": HOST,
        "bound": HOST,
        "coupling": LOWERED,
        "feed-forward": HOST,
        "bound of the feed-forward": HOST,
    }


@pytest.mark.parametrize(
    ("config", "refused"),
    [
        (ModelConfig("kuramoto", values="projected"), {"learned values", "coupling"}),
        (ModelConfig("transformer"), {"attention"}),
        (ModelConfig("fsn-mf"), {"coupling", "coupling to the modes"}),
        (ModelConfig("ssa"), {"locks"}),
    ],
)
def test_what_is_refused_is_what_has_no_lowering(config, refused):
    if config.family in (*LOWERINGS, "ssa") and config.values == "phases":
        refused = set()
    parts = layer_parts(config)
    assert {part.name for part in parts if part.where == REFUSED} == refused
    first, second = layer_sentences(config)
    assert first.startswith("layer 0: ")
    assert second.startswith("layer 1: ")
    for name in refused:
        assert name in first.partition("; on the host")[0]
    assert ("cannot be lowered" in first) == bool(refused)
    assert refusal(config) in first
