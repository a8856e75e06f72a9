"""Decoding token by token against the full forward."""

from pathlib import Path

import pytest
import torch

from oscc.checkpoint import load_checkpoint
from oscc.errors import RequestError
from oscc.models.base import build_model
from oscc.models.config import ModelConfig
from oscc.models.decoding import Decoder

CHECKPOINTS = Path(__file__).parents[3] / "checkpoints"
TOKENS = 14
SIZES = {"k": 8, "layers": 2, "heads": 2, "hidden": 6, "modes": 6, "context": TOKENS}


@pytest.mark.parametrize("update", ["flow", "euler"])
@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("kuramoto", {}),
        ("fsn", {}),
        ("fsn", {"successor": "renormalised", "query_offset": True}),
        ("fsn-no-phase", {}),
        ("fsn-mf", {}),
    ],
)
def test_decoding_equals_the_full_forward(family, update, changes):
    model = build_model(ModelConfig(family, update, **SIZES, **changes), seed=1)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.2 * torch.randn(p.shape, generator=generator))
    model = model.double()
    tokens = torch.randint(0, 98, (3, TOKENS), generator=generator)
    decoder = Decoder(model)
    with torch.no_grad():
        wanted = model(tokens)
    found = torch.stack([decoder.step(tokens[:, t]) for t in range(TOKENS)], 1)
    assert (found - wanted).abs().max() <= 1e-6
    assert wanted.abs().max() > 0.1
    with pytest.raises(RequestError, match="context of 14 tokens is full"):
        decoder.step(tokens[:, 0])


@pytest.mark.parametrize("name", ["fsn-flow", "fsn-no-phase-flow", "fsn-mf-flow"])
def test_decoding_equals_the_full_forward_of_trained_models(name):
    model = load_checkpoint(CHECKPOINTS / f"{name}.safetensors").model.double()
    tokens = (torch.arange(48)[None] * 7) % 90 + 3
    decoder = Decoder(model)
    with torch.no_grad():
        wanted = model(tokens)
    found = torch.stack([decoder.step(tokens[:, t]) for t in range(48)], 1)
    assert (found - wanted).abs().max() <= 1e-6


def test_a_step_does_not_change_what_was_read():
    model = build_model(ModelConfig("fsn", **SIZES), seed=1)
    decoder = Decoder(model)
    decoder.step(torch.tensor([3]))
    kept = [(m.theta.clone(), m.key.clone()) for m in decoder.memories]
    decoder.step(torch.tensor([5]))
    for (theta, key), memory in zip(kept, decoder.memories, strict=True):
        assert torch.equal(memory.theta[:, :1], theta)
        assert torch.equal(memory.key[:, :, :1], key)


def test_models_without_phases_are_refused():
    model = build_model(ModelConfig("transformer", k=8, heads=2))
    with pytest.raises(RequestError, match="layers couple phases"):
        Decoder(model)
