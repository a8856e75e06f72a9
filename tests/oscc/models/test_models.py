"""Whole models: start values, parameter counts, periodicity (models.md section 9)."""

import math

import numpy as np
import pytest
import torch

from oscc.errors import RequestError
from oscc.models.base import build_model
from oscc.models.config import ModelConfig
from oscc.models.host import bound_scale, lift
from oscc.models.training import bits_per_character
from oscc.trace import forward_with


@pytest.mark.parametrize(
    ("config", "parameters"),
    [
        (ModelConfig("kuramoto", heads=1), 65_091),
        (ModelConfig("kuramoto", heads=4), 65_097),
        (ModelConfig("fsn", heads=1), 65_859),
        (ModelConfig("fsn", heads=4), 65_865),
        (ModelConfig("kuramoto", k=16, layers=1, hidden=32, heads=2), 6_275),
        (ModelConfig("kuramoto", k=8, layers=1, hidden=16, heads=2), 2_371),
    ],
)
def test_parameter_counts(config, parameters):
    count = sum(p.numel() for p in build_model(config).parameters())
    assert count == parameters
    v, k, layers = config.symbols, config.k, config.layers
    per_layer = 6 * k * k + 4 * k + config.heads + 3 * k * config.hidden
    extra = 4 * config.harmonics * k if config.family == "fsn" else 0
    assert count == 2 * v * k + 1 + layers * (per_layer + extra)


def test_fsn_without_successor_at_the_start_is_kuramoto_attention():
    sizes = {"k": 16, "layers": 2, "heads": 4, "hidden": 20, "context": 24}
    plain = build_model(ModelConfig("kuramoto", **sizes), seed=4)
    full = build_model(ModelConfig("fsn", delay_gain=0.0, **sizes), seed=4)
    for name, value in plain.state_dict().items():
        assert torch.equal(full.state_dict()[name], value)
    tokens = np.random.default_rng(0).integers(0, 98, (2, 24))
    gap = forward_with(plain, tokens) - forward_with(full, tokens)
    # closed form against integration: two steps of 1e-9 rad through layers of gain ~1
    assert np.abs(gap).max() <= 1e-6
    for update in ("euler",):
        left = build_model(ModelConfig("kuramoto", update, **sizes), seed=4)
        right = build_model(ModelConfig("fsn", update, delay_gain=0.0, **sizes), seed=4)
        with torch.no_grad():
            x = torch.from_numpy(tokens)
            assert (left(x) - right(x)).abs().max() <= 1e-6


@pytest.mark.parametrize("family", ["kuramoto", "fsn"])
def test_start_state(family):
    model = build_model(ModelConfig(family, k=32, heads=4), seed=7)
    layer = model.coupling_layers()[0]
    theta = model.embed(torch.arange(40)[None])
    with torch.no_grad():
        features = lift(theta)
        for gate in layer.score.gates(features):
            assert (gate.mean(-1) - 1).abs().max() <= 1e-6
            assert gate.min() > 0
        assert (layer.value(features) == 1).all()
    kernel = layer.coefficients()
    assert kernel.present_gamma[0].eq(1).all()
    assert kernel.present_alpha.abs().max() == 0
    if family == "fsn":
        assert kernel.present_gamma[1].eq(0).all()
        assert kernel.successor_gamma[0].eq(1).all()
        assert kernel.successor_gamma[1].eq(0).all()


@pytest.mark.parametrize("family", ["kuramoto", "fsn"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_untrained_bits_per_character(family, seed, monkeypatch):
    # the band was measured on the prototype; uniform symbols cost log2 98 = 6.61
    monkeypatch.setattr("oscc.models.training.VALIDATION_BATCHES", 1)
    monkeypatch.setattr("oscc.models.training.VALIDATION_ROWS", 4)
    config = ModelConfig(family, context=64)
    model = build_model(config, seed=seed)
    text = (np.arange(5000) * 31 % 98).astype(np.uint8)
    bits = bits_per_character(model, config, text, "test")
    assert 6.9 <= bits <= 8.9


@pytest.mark.parametrize("family", ["kuramoto", "fsn"])
def test_whole_turns_matter_to_the_raw_angle_feed_forward_only(family):
    config = ModelConfig(family, "euler", k=12, heads=3, hidden=10, context=10)
    model = build_model(config, seed=2).double()
    rng = np.random.default_rng(1)
    theta = torch.from_numpy(rng.uniform(-9, 9, (2, 10, 12)))
    turns = torch.from_numpy(2 * math.pi * rng.integers(-2, 3, (2, 10, 12)))
    with torch.no_grad():
        run = [model.read_out(model.run(x)) for x in (theta, theta + turns)]
        assert (run[0] - run[1]).abs().max() > 0.1
        for layer in model.coupling_layers():
            layer.feed_forward.down.zero_()
        run = [model.read_out(model.run(x)) for x in (theta, theta + turns)]
    assert (run[0] - run[1]).abs().max() <= 1e-10


def test_lifted_feed_forward_is_periodic():
    config = ModelConfig("fsn", "euler", k=12, heads=3, feed_forward="lift", context=9)
    model = build_model(config, seed=2).double()
    theta = torch.rand(1, 9, 12, dtype=torch.float64) * 6
    with torch.no_grad():
        run = [model.read_out(model.run(x)) for x in (theta, theta + 2 * math.pi)]
    assert (run[0] - run[1]).abs().max() <= 1e-10


@pytest.mark.parametrize("kind", ["B1", "B2", "B3", "B4"])
def test_bounds_are_what_their_formulas_say(kind):
    x = torch.tensor([[0.3, -2.0, 4.0], [1e-3, 0.0, -2e-3]], dtype=torch.float64)
    c = 0.7
    rms = x.pow(2).mean(-1, keepdim=True).sqrt()
    wanted = {
        "B1": (c * (x / c).tanh()).norm(dim=-1, keepdim=True)
        / x.norm(dim=-1, keepdim=True),
        "B2": (1 + rms**2 / c**2) ** -0.5,
        "B3": c / rms,
        "B4": torch.where(x == 0, torch.ones_like(x), (x / c).tanh() / (x / c)),
    }[kind]
    # tiny terms inside keep the gradient finite at x = 0: 1e-12 beside mean x^2 = 2e-6
    assert (bound_scale(x, kind, c) / wanted - 1).abs().max() <= 1e-6


@pytest.mark.parametrize("kind", ["B1", "B2", "B4"])
def test_bounds_have_a_finite_gradient_at_zero(kind):
    x = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    (bound_scale(x, kind, 1.0) * x).sum().backward()
    assert torch.isfinite(x.grad).all()
    assert (x.grad - 1).abs().max() <= 1e-9


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"family": "fns"}, "Did you mean `fsn`?"),
        ({"harmonic": 2}, "Did you mean `harmonics`?"),
        ({"heads": 5}, "must divide k = 48"),
        ({"k": 0}, "whole number >= 1"),
        ({"k": "16"}, "must be a whole number, but is '16'"),
        ({"bound": "B9"}, "must be one of B0, B1, B2, B3, B4"),
        ({"bound_c": -1.0}, "above zero"),
        ({"family": "kuramoto", "harmonics": 2}, "its default, 1."),
    ],
)
def test_bad_configurations_are_named(change, words):
    with pytest.raises(RequestError, match=words.replace("?", r"\?")):
        ModelConfig.from_mapping({"family": "fsn", **change})


def test_the_same_seed_gives_the_same_start_and_another_another():
    config = ModelConfig("fsn", k=8, heads=2, layers=1, hidden=8)
    one, same, other = (build_model(config, seed=s).state_dict() for s in (5, 5, 6))
    assert all(torch.equal(one[n], same[n]) for n in one)
    assert not torch.equal(one["embedding"], other["embedding"])
