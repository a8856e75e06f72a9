"""Sums by scaled-dot-product attention against the explicit weights."""

import pytest
import torch

from oscc.models.base import build_model
from oscc.models.config import ModelConfig
from oscc.models.fused import causal_sums
from oscc.models.host import lift
from oscc.models.phase import couple

TOKENS = 33


def layer_of(family, dtype, **changes):
    sizes = {"k": 12, "heads": 3, "layers": 1, "hidden": 4, "context": TOKENS}
    model = build_model(ModelConfig(family, **sizes, **changes), seed=2).to(dtype)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.3 * torch.randn(p.shape, generator=generator, dtype=dtype))
    theta = 18 * torch.rand(2, TOKENS, 12, generator=generator, dtype=dtype) - 9
    return model.coupling_layers()[0], theta


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("kuramoto", {}),
        ("kuramoto", {"values": "projected"}),
        ("fsn", {}),
        ("fsn", {"harmonics": 3}),
        ("fsn", {"successor": "renormalised"}),
        ("fsn-mf", {}),
    ],
)
def test_fused_fields_are_those_of_the_explicit_weights(family, changes):
    layer, theta = layer_of(family, torch.float64, **changes)
    with torch.no_grad():
        features = lift(theta)
        wanted = layer.fields(layer.score(theta, features), theta)
        found = layer.fused_fields(*layer.score.projections(theta, features), features)
    for one, other in zip(found, wanted, strict=True):
        # sums of 33 terms of size one; renormalised rows divide by down to 1e-2
        assert (one - other).abs().max() <= (1e-12 if not changes else 1e-10)


def test_renormalised_rows_that_keep_almost_nothing_agree_in_single_precision():
    layer, theta = layer_of("fsn", torch.float32, successor="renormalised")
    with torch.no_grad():
        layer.score.sharpness.mul_(0).add_(10.0)
        features = lift(theta)
        weights = layer.score(theta, features)
        wanted = layer.fields(weights, theta)[0]
        found = layer.fused_fields(*layer.score.projections(theta, features), features)[
            0
        ]
    # some row keeps less than single precision could tell from 1 - A_tt
    rest = 1 - weights.double().diagonal(dim1=-2, dim2=-1)[..., 1:]
    assert rest.min() < 1e-7
    # scores of size 100 rounded to 1e-5, so weights right to 1e-5 of themselves
    assert (found - wanted).abs().max() <= 2e-5


def test_single_precision_agrees_to_its_rounding():
    layer, theta = layer_of("fsn", torch.float32)
    with torch.no_grad():
        features = lift(theta)
        wanted = layer.fields(layer.score(theta, features), theta)[0]
        found = layer.fused_fields(*layer.score.projections(theta, features), features)[
            0
        ]
    # four terms of size 1.3 each, softmax scores of size 10 rounded to 1e-6
    assert (found - wanted).abs().max() <= 2e-5


def test_gradients_are_those_of_the_explicit_weights():
    layer, theta = layer_of("fsn", torch.float64)
    grads = []
    for fused in (False, True):
        x = theta.clone().requires_grad_()
        features = lift(x)
        if fused:
            a, b = layer.fused_fields(*layer.score.projections(x, features), features)
        else:
            a, b = layer.fields(layer.score(x, features), x)
        layer.zero_grad()
        (a.sin().sum() + (b * b).sum()).backward()
        score = layer.score
        grads.append([x.grad, layer.gamma.grad, score.drift.grad, score.sharpness.grad])
    for one, other in zip(*grads, strict=True):
        assert (one - other).abs().max() <= 1e-10 * max(1.0, float(other.abs().max()))


def test_weight_of_the_own_key_survives_extreme_scores():
    query = torch.tensor([[[[1.0], [40.0], [-40.0]]]], dtype=torch.float64)
    key = torch.tensor([[[[1.0], [1.0], [2.0]]]], dtype=torch.float64)
    scores = (query @ key.transpose(-1, -2)).masked_fill(
        torch.ones(3, 3, dtype=torch.bool).triu(1), -torch.inf
    )
    wanted = scores.softmax(-1).diagonal(dim1=-2, dim2=-1)
    found = causal_sums(query, key, key)[1][..., 0]
    assert (found / wanted - 1).abs().max() <= 1e-12


def test_what_trains_takes_the_fused_way_and_gives_what_traces_do():
    sizes = {"k": 12, "heads": 3, "layers": 2, "hidden": 4, "context": TOKENS}
    model = build_model(ModelConfig("fsn", "euler", **sizes), seed=2).double()
    tokens, weights = torch.arange(TOKENS)[None], []

    def advance(number, state):
        weights.append(state.weights.shape)
        return couple(model.config, state)

    with torch.no_grad():
        wanted = model(tokens, advance)
        layer = model.coupling_layers()[0]
        assert layer.state(model.embed(tokens), False).weights.numel() == 0
        found = model(tokens)
    assert weights == [(1, 3, TOKENS, TOKENS)] * 2
    assert (found - wanted).abs().max() <= 1e-10


@pytest.mark.parametrize("own_too", [True, False])
@pytest.mark.parametrize("tokens", [1, 31, 32, 33, 257])
def test_any_number_of_tokens_fills_its_blocks(tokens, own_too):
    generator = torch.Generator().manual_seed(tokens)
    parts = [
        torch.randn(2, 3, tokens, width, generator=generator, dtype=torch.float64)
        for width in (4, 4, 6)
    ]
    query, key, values = (part.requires_grad_() for part in parts)
    found = causal_sums(query, key, values, own_too=own_too)
    scores = query @ key.transpose(-1, -2)
    future = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(future, -torch.inf).softmax(-1)
    own = weights.diagonal(dim1=-2, dim2=-1)[..., None]
    wanted = (weights if own_too else weights.tril(-1)) @ values, own
    for one, other in zip(found, wanted, strict=True):
        assert (one - other).abs().max() <= 1e-13
    upstream = [torch.randn(x.shape, generator=generator).double() for x in wanted]
    found = torch.autograd.grad(found, parts, upstream, allow_unused=True)
    wanted = torch.autograd.grad(wanted, parts, upstream)
    for one, other in zip(found, wanted, strict=True):
        assert (one - other).abs().max() <= 1e-12
