"""Phase noise, gain errors and quantised weights of a coupling step."""

import numpy as np
import pytest
import torch

from oscc.errors import RequestError
from oscc.models.base import build_model
from oscc.models.config import ModelConfig
from oscc.models.disturbance import Disturbance, quantised
from oscc.models.phase import couple

SIZES = {"k": 16, "layers": 1, "heads": 2, "hidden": 6, "context": 64}


def stepped(update="euler", family="fsn", **sizes):
    model = build_model(ModelConfig(family, update, **SIZES), seed=1).double()
    layer = model.coupling_layers()[0]
    theta = 3 * torch.rand(4, 64, 16, generator=torch.Generator().manual_seed(0))
    state = layer.state(theta.double())
    advance = Disturbance(**sizes).advance(model, np.random.default_rng(0))
    with torch.no_grad():
        return advance(0, state) - couple(model.config, state), state


def test_phase_noise_has_the_size_asked_for():
    error, _ = stepped(phase_noise_rad=0.05)
    # 4096 draws: mean and deviation spread by .05 / 64 and .05 / 90
    assert abs(error.mean().item()) <= 4 * 0.05 / 64
    assert error.std().item() == pytest.approx(0.05, abs=4 * 0.05 / 90)


def test_a_gain_error_moves_in_proportion_to_the_step():
    error, state = stepped(gain_error=0.1)
    step = state.gain * state.a.sum(0)
    ratio = (error / step)[step.abs() > 1e-6]
    assert ratio.std().item() == pytest.approx(0.1, rel=0.06)


def test_quantised_weights_are_those_of_the_fields():
    error, state = stepped(weight_bits=3)
    levels = state.weights * 7
    assert not torch.equal(levels, levels.round())
    assert error.abs().max() > 1e-3
    fine, _ = stepped(weight_bits=20)
    # 64 weights, each off by 2^-21 at most, times 2 routes and the gain of size 1
    assert fine.abs().max() <= 64 * 2 * 2**-21 * state.gain.abs().max()


def test_rounding_passes_gradients():
    weights = torch.tensor([0.1, 0.6], requires_grad=True)
    out = quantised(weights, 2)
    out.sum().backward()
    assert out.tolist() == pytest.approx([0.0, 2 / 3])
    assert weights.grad.tolist() == [1.0, 1.0]


def test_gradients_reach_every_parameter_of_a_disturbed_model():
    model = build_model(ModelConfig("fsn-mf", modes=4, **SIZES), seed=1)
    advance = Disturbance(0.1, 0.1, 4).advance(model, np.random.default_rng(0))
    model(torch.arange(64)[None] % 90, advance).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name


def test_what_cannot_be_disturbed_is_refused():
    with pytest.raises(RequestError, match="`gain_error` must be 0 or more"):
        Disturbance(gain_error=-1.0)
    model = build_model(ModelConfig("transformer", k=8, heads=2))
    with pytest.raises(RequestError, match="this family has none"):
        Disturbance(0.1).advance(model, np.random.default_rng(0))
    assert Disturbance().advance(model, np.random.default_rng(0)) is None
