"""Every tensor of a step stands where the model does.

The device `meta` holds no values, but refuses to mix with others as a GPU does, so the
placement is tested on a machine without one.
"""

import pytest
import torch
from torch.nn import functional

from oscc.models.base import build_model
from oscc.models.config import ModelConfig
from oscc.models.phase import couple

CASES = [
    ("kuramoto", {"update": "euler"}),
    ("kuramoto", {"update": "flow", "values": "projected", "query_offset": True}),
    ("fsn", {"update": "euler"}),
    ("fsn", {"update": "euler", "successor": "renormalised"}),
    ("fsn-no-phase", {"update": "euler"}),
    ("fsn-mf", {"update": "euler"}),
    ("ssa", {}),
    ("ssa", {"arm": "published", "mask": "none"}),
    ("ssa", {"lock_top_k": 3}),
    ("transformer", {}),
]


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(("family", "changes"), CASES)
def test_a_step_makes_nothing_on_another_device(family, changes, traced):
    config = ModelConfig(family, k=8, layers=2, heads=2, hidden=6, **changes)
    model = build_model(config).to("meta")
    tokens = torch.zeros(2, 40, dtype=torch.long, device="meta")
    advance = (lambda index, state: couple(config, state)) if traced else None
    logits = model(tokens, advance)
    loss = functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
    loss.backward()
    assert loss.device.type == "meta"
    moved = [p.grad.device.type for p in model.parameters() if p.grad is not None]
    assert set(moved) == {"meta"}


def test_a_tensor_elsewhere_is_refused():
    # the device of the tests does what they rely on
    with pytest.raises(RuntimeError, match="device"):
        torch.ones(2, device="meta") + torch.ones(2)
