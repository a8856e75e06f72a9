"""Mixing by locking strengths, block by block, against the explicit strengths."""

import pytest
import torch

from oscc.models.base import build_model
from oscc.models.config import ModelConfig
from oscc.models.lock_sums import ROW
from oscc.models.residual import by_head, joined


def attention(**changes):
    sizes = {"k": 12, "heads": 3, "layers": 1, "hidden": 8, "context": 128}
    model = build_model(ModelConfig("ssa", **sizes, **changes), seed=1).double()
    layer = model.blocks[0].attention
    if changes.get("arm") == "published":  # else all lock, and all at the same strength
        with torch.no_grad():
            layer.frequency.weight *= 6
    return layer


def explicit(layer, x):
    strength = layer.locking(x).strength
    weights = strength / (strength.sum(-1, keepdim=True) + ROW)
    return layer.out(joined(weights @ by_head(layer.value(x), 3)))


def run(layer, function, tokens):
    generator = torch.Generator().manual_seed(tokens)
    x, upstream = torch.randn(2, 2, tokens, 12, generator=generator).double()
    x.requires_grad_()
    layer.zero_grad()
    out = function(x)
    (out * upstream).sum().backward()
    grads = {name: p.grad.clone() for name, p in layer.named_parameters()}
    return out.detach(), {"x": x.grad, **grads}


@pytest.mark.parametrize("tokens", [1, 31, 32, 33, 100])
@pytest.mark.parametrize("mask", ["causal", "none"])
@pytest.mark.parametrize("arm", ["trainable", "published"])
def test_values_and_gradients_are_those_of_the_explicit_strengths(arm, mask, tokens):
    layer = attention(arm=arm, mask=mask)
    found, by_found = run(layer, layer, tokens)
    wanted, by_wanted = run(layer, lambda x: explicit(layer, x), tokens)
    assert (found - wanted).abs().max() <= 1e-14
    assert set(by_found) == set(by_wanted)
    for name, grad in by_wanted.items():
        # near the edge of locking the slope of the root is large, and rounding with it
        difference = (by_found[name] - grad).abs().max()
        assert difference <= 1e-9 * max(1.0, float(grad.abs().max())), name


def test_some_pairs_lock_and_some_do_not():
    # what the test above compares is more than rows of ones
    for arm in ("trainable", "published"):
        x = torch.randn(1, 100, 12, generator=torch.Generator().manual_seed(0))
        locked = attention(arm=arm).locking(x.double()).locked.tril(-1)
        assert 0.02 < locked.double().mean() / 0.495 < 0.98


def test_rounding_of_a_later_token_reaches_no_earlier_one():
    layer = attention()
    x = torch.randn(1, 70, 12, generator=torch.Generator().manual_seed(3)).double()
    changed = x.clone()
    changed[:, 40:] *= -3.0
    with torch.no_grad():
        assert torch.equal(layer(x)[:, :40], layer(changed)[:, :40])
