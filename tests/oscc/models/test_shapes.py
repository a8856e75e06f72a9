"""Shapes of a model's tensors, known without building it."""

import pytest

from oscc.models.base import FAMILIES, build_model
from oscc.models.config import ModelConfig
from oscc.models.shapes import tensor_shapes

SIZES = {"symbols": 7, "k": 8, "layers": 3, "heads": 2, "hidden": 6, "context": 5}
CHOICES = [
    *({"family": family} for family in FAMILIES),
    {"family": "kuramoto", "values": "projected", "query_offset": True},
    {"family": "kuramoto", "gates": "none", "feed_forward": "none", "drift": "zero"},
    {"family": "fsn", "feed_forward": "lift", "harmonics": 3, "drift": "short"},
    {"family": "fsn", "embedding": "uniform", "offsets": "zero", "layers": 1},
    {"family": "fsn-mf", "modes": 10, "mode_response": "square"},
    {"family": "ssa", "arm": "published", "mask": "none", "lock_top_k": 2},
]


@pytest.mark.parametrize("choice", CHOICES)
def test_they_are_those_of_the_model_built(choice):
    config = ModelConfig(**(SIZES | choice))
    state = build_model(config).state_dict()
    wanted = {name: tuple(tensor.shape) for name, tensor in state.items()}
    found = tensor_shapes(config)
    assert found == wanted
    assert list(found) == list(wanted)


def test_a_model_far_larger_than_the_machine_takes_no_memory():
    found = tensor_shapes(ModelConfig("fsn", k=400_000, layers=100, hidden=10**6))
    assert found["layers.99.value.weight"] == (400_000, 800_000)
