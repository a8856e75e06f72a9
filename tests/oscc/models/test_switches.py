"""The table of which family has which field of a configuration is the truth."""

import numpy as np
import pytest
import torch

from oscc.errors import RequestError
from oscc.models.base import FAMILIES, build_model
from oscc.models.config import ModelConfig, family_has
from oscc.models.residual import dropping

SIZES = {"symbols": 9, "k": 8, "heads": 2, "layers": 1, "context": 12}
# A value of every field that is not the default of any family.
OTHER = {
    "hidden": 10,
    "harmonics": 3,
    "bound": "B4",
    "bound_c": 0.5,
    "embedding": "uniform",
    "embedding_std": 0.3,
    "sharpness": 2.0,
    "beta": 3.0,
    "drift": "short",
    "drift_base": 100.0,
    "gates": "none",
    "gate_std": 0.1,
    "value_gain": 0.5,
    "delay_gain": 0.3,
    "offsets": "zero",
    "successor": "renormalised",
    "feed_forward": "lift",
    "feed_forward_std": 0.1,
    "query_offset": True,
    "values": "projected",
    "modes": 6,
    "mode_response": "square",
    "arm": "published",
    "mask": "none",
    "lock_top_k": 2,
    "dropout": 0.5,
}
# Refused though the code would do something: another family, half a thing.
REFUSED = {
    ("fsn-no-phase", "offsets"): "with offsets that learn it is fsn",
    ("transformer", "dropout"): "the embedding alone would be dropped",
}
ALL_HAVE = {"family", "update", "symbols", "k", "layers", "heads", "context"}


def print_of(family, **forced):
    """Everything a model is: weights, which of them train, logits while training."""
    config = ModelConfig(family, **SIZES)
    for name, value in forced.items():  # past the check, which is what is tested
        object.__setattr__(config, name, value)
    model = build_model(config, seed=1)
    tokens = torch.tensor([[3, 1, 4, 1, 5, 2, 6, 5, 3, 5, 8, 7]])
    with torch.no_grad(), dropping(model, np.random.default_rng(0)):
        logits = model(tokens)
    weights = {n: (v.numpy().tobytes()) for n, v in model.state_dict().items()}
    trained = {n: p.requires_grad for n, p in model.named_parameters()}
    return weights, trained, logits.numpy().tobytes()


def test_every_field_is_in_the_table_of_this_test():
    assert set(OTHER) | ALL_HAVE == set(ModelConfig.__dataclass_fields__)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_field_changes_the_model_exactly_where_the_family_has_it(family):
    plain = print_of(family)
    for name, value in OTHER.items():
        if (family, name) not in REFUSED:
            changed = print_of(family, **{name: value}) != plain
            assert changed == family_has(family, name), name


@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_family_lacks_is_refused_with_those_that_have_it(family):
    for name, value in OTHER.items():
        if name in ("hidden", "modes"):  # one set of sizes for all families
            assert getattr(ModelConfig(family, **{name: value}), name) == value
        elif family_has(family, name):
            ModelConfig(family, **{name: value})
        elif name != "offsets":  # `zero` is the default of fsn-no-phase
            with pytest.raises(RequestError) as caught:
                ModelConfig(family, **{name: value})
            assert f"`{name}` has no meaning for family {family}" in str(caught.value)
            assert "; it belongs to " in str(caught.value)
