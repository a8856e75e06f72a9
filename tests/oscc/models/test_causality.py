"""Causality of the whole models, with mutants that must be caught."""

from pathlib import Path

import pytest
import torch

from oscc.checkpoint import load_checkpoint
from oscc.models.base import build_model
from oscc.models.config import ModelConfig
from oscc.models.fsn import FsnLayer
from oscc.models.fused import causal_sums
from oscc.models.phase import couple

TOKENS = 12
CHECKPOINTS = Path(__file__).parents[3] / "checkpoints"


def random_model(family, update, **changes):
    sizes = {"k": 8, "layers": 2, "heads": 2, "hidden": 6, "symbols": 20}
    config = ModelConfig(family, update, **sizes, context=TOKENS, **changes)
    model = build_model(config, seed=1).double()
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.3 * torch.randn(p.shape, generator=generator, dtype=p.dtype))
    return model


def largest_leak(model, advance=None):
    """Largest change of a logit before position p when all from p on changes."""
    tokens = torch.arange(TOKENS)[None] % 7
    worst = 0.0
    with torch.no_grad():
        before = model(tokens, advance)
        for p in range(1, TOKENS):
            changed = tokens.clone()
            changed[0, p:] = 7 + (changed[0, p:] * 3) % 13
            leak = (model(changed, advance)[:, :p] - before[:, :p]).abs().max()
            assert torch.isfinite(leak)
            worst = max(worst, float(leak))
    return worst


def traced(model):
    """The step from explicit weights, as a trace takes it."""
    return lambda index, state: couple(model.config, state)


@pytest.mark.parametrize("family", ["kuramoto", "fsn"])
@pytest.mark.parametrize("update", ["flow", "euler"])
def test_no_logit_depends_on_a_later_symbol(family, update):
    model = random_model(family, update)
    assert largest_leak(model) == 0.0
    assert largest_leak(model, traced(model)) == 0.0


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("fsn", {"successor": "renormalised", "query_offset": True}),
        ("fsn-no-phase", {"bound": "B4"}),
        ("fsn-mf", {"modes": 4}),
        ("ssa", {}),
        ("transformer", {}),
    ],
)
def test_every_family_is_causal(family, changes):
    model = random_model(family, "", **changes)
    assert largest_leak(model) == 0.0


@pytest.mark.parametrize(
    "name", ["fsn-flow", "fsn-no-phase-flow", "fsn-mf-flow", "kuramoto-flow"]
)
def test_trained_flows_are_causal_in_blocks_of_many_rows(name):
    """Trained drives differ so much that targets take unlike numbers of sub-steps."""
    model = load_checkpoint(CHECKPOINTS / f"{name}.safetensors").model.double()
    tokens = (torch.arange(80)[None] * 7) % 90 + 3
    changed, other = tokens.clone(), tokens.flip(1)
    changed[0, 41:] = 5
    with torch.no_grad():
        before = model(tokens)
        assert torch.equal(model(changed)[:, :41], before[:, :41])
        assert torch.equal(model(torch.cat([tokens, other]))[:1], before)
    assert (model(changed)[:, 41:] - before[:, 41:]).abs().max() > 1e-3


def test_own_key_in_the_sum_of_the_successors_is_caught(monkeypatch):
    def kept_too(query, key, values, *, own_too):
        return causal_sums(query, key, values)

    monkeypatch.setattr("oscc.models.fsn.causal_sums", kept_too)
    assert largest_leak(random_model("fsn", "euler")) > 1e-6


def rolled(weights, *, renormalised):
    """Mutant: z_{u+1} by a roll over the window, which wraps round its end."""
    return torch.roll(weights, 1, -1)


def kept(weights, *, renormalised):
    """Mutant: the entry u = t stays in the successor term and reads t + 1."""
    return torch.nn.functional.pad(weights, (1, 0))[..., :-1]


@pytest.mark.parametrize("mutant", [rolled, kept])
def test_mutants_of_the_successor_route_are_caught(mutant, monkeypatch):
    monkeypatch.setattr("oscc.models.fsn.successor_weights", mutant)
    model = random_model("fsn", "euler")
    assert largest_leak(model, traced(model)) > 1e-6


def test_the_mutant_is_used_at_all():
    # the patch above names the function the layer really calls
    assert "successor_weights" in FsnLayer.fields.__code__.co_names
