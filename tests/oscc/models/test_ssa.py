"""SSA against the published form and the figures measured of it (models.md 9)."""

import math

import pytest
import torch
from torch.nn import functional

from oscc.models.base import build_model
from oscc.models.config import ModelConfig
from oscc.models.ssa import lock_strength

WIDE = {"k": 512, "heads": 8, "hidden": 2048, "layers": 1, "arm": "published"}


def test_counts_of_the_published_block_and_of_its_transformer():
    block = build_model(ModelConfig("ssa", mask="none", **WIDE)).blocks[0]
    count = sum(p.numel() for p in block.parameters())
    assert count == 3_152_393
    d, heads = 512, 8
    assert count == 12 * d * d + 13 * d + heads + 1
    layer = torch.nn.TransformerEncoderLayer(d, heads, 4 * d)
    usual = sum(p.numel() for p in layer.parameters())
    assert usual == 3_152_384
    assert count - usual == heads + 1


def published(square, decay, pull):
    """The form of the public code: J sqrt(1 - (Delta / (K r J))^2) on locked pairs."""
    delta, weight = square.sqrt(), torch.exp(-decay * square)
    locked = delta <= pull * weight + 1e-8
    ratio = (delta / (pull * weight)).clamp(max=1.0)
    return torch.where(locked, weight * (1 - ratio**2).sqrt(), 0.0), locked


def test_safe_form_equals_the_published_one():
    generator = torch.Generator().manual_seed(0)
    square = 4 * torch.rand(40_000, generator=generator) ** 2
    decay = 0.02 + torch.rand(40_000, generator=generator)
    pull = 0.2 + 8 * torch.rand(40_000, generator=generator)
    strength, locked = lock_strength(square, decay, pull)
    # the root of a float32 difference near 0: compare the squares there
    wanted, also = published(square.double(), decay.double(), pull.double())
    inside = wanted > 1e-3
    assert 0.05 < float(also.double().mean()) < 0.95
    assert (strength - wanted)[inside].abs().max() <= 1e-4
    assert (strength**2 - wanted**2).abs().max() <= 1e-6
    exact, same = lock_strength(square.double(), decay.double(), pull.double())
    assert torch.equal(same, also)
    assert (exact - wanted).abs().max() <= 1e-6
    assert (locked != also).sum() <= 2  # float32 at the very edge


def test_its_gradient_is_finite_where_nothing_locks_and_on_the_diagonal():
    square = torch.tensor([0.0, 1e-12, 0.3, 50.0, 1e4], requires_grad=True)
    decay = torch.ones(5, requires_grad=True)
    pull = torch.full((5,), 1.1, requires_grad=True)
    lock_strength(square, decay, pull)[0].sum().backward()
    for leaf in (square, decay, pull):
        assert torch.isfinite(leaf.grad).all()


def default_linear_start(attention, seed):
    """Start of torch.nn.Linear: weight and bias uniform in +-1 / sqrt(inputs)."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for part in (attention.frequency, attention.phase, attention.value):
            edge = 1 / math.sqrt(part.weight.shape[1])
            for leaf in (part.weight, part.bias):
                leaf.copy_((2 * torch.rand(leaf.shape, generator=generator) - 1) * edge)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_order_parameter_and_locking_at_the_usual_linear_start(seed):
    model = build_model(ModelConfig("ssa", mask="none", **WIDE))
    attention = model.blocks[0].attention
    default_linear_start(attention, seed)
    generator = torch.Generator().manual_seed(10 + seed)
    x = torch.randn(4, 128, 512, generator=generator)
    with torch.no_grad():
        found, square = attention.locking(x), attention.squares(x)
    # Theta is normal of variance 1/3: |mean exp(i Theta)| -> exp(-1/6); one text of
    # 128 tokens spreads by .0016, the mean of four by .0008
    assert found.coherence.mean().item() == pytest.approx(0.847, abs=0.004)
    itself = torch.eye(128, dtype=torch.bool)
    assert torch.equal(found.locked, itself.expand(4, 8, -1, -1))
    assert found.strength.diagonal(dim1=-2, dim2=-1).sub(1).abs().max() <= 1e-6
    away = square[~itself.expand_as(square)]
    assert away.mean().item() == pytest.approx(2 / 3 * 64, rel=0.03)
    assert 13 <= away.min().item() <= 18


def own_start(mask="none"):
    model = build_model(ModelConfig("ssa", mask=mask, context=128, **WIDE), seed=3)
    tokens = torch.randint(0, 98, (1, 128), generator=torch.Generator().manual_seed(1))
    block = model.blocks[0]
    return model, tokens, block, block.attention_norm(model.embed(tokens))


def test_at_its_own_start_identical_symbols_lock_and_no_others():
    _, tokens, block, x = own_start()
    with torch.no_grad():
        found = block.attention.locking(x)
    # variance of Theta 512 * 0.02^2 = 0.2048: exp(-0.1024) and the noise of 128 tokens
    assert found.coherence.mean().item() == pytest.approx(0.905, abs=0.01)
    same = tokens[0, :, None] == tokens[0, None, :]
    assert same.sum() > 128
    assert torch.equal(found.locked[0], same.expand(8, -1, -1))


def test_published_constants_cannot_start_to_learn_the_coupling():
    model, tokens, block, _ = own_start(mask="causal")
    logits = model(tokens)
    functional.cross_entropy(logits[0, :-1], tokens[0, 1:]).backward()
    attention = block.attention
    for leaf in (attention.frequency.weight, attention.decay, attention.pull):
        assert leaf.grad.abs().max() < 1e-9
    assert attention.value.weight.grad.abs().max() > 1e-6


@pytest.mark.parametrize(("pull", "share"), [(8.0, 0.22), (9.0, 0.45), (10.0, 0.68)])
def test_weaker_decay_and_stronger_pull_lock_different_symbols(pull, share):
    _, tokens, block, x = own_start()
    attention = block.attention
    with torch.no_grad():
        attention.decay.fill_(math.log(math.expm1(0.019)))
        attention.pull.fill_(math.log(math.expm1(pull)))
        locked = attention.locking(x).locked[0]
    different = (tokens[0, :, None] != tokens[0, None, :]).expand(8, -1, -1)
    # one draw of the frequencies: pairs of 98 symbols share their 8 heads' weights
    assert locked[different].double().mean().item() == pytest.approx(share, abs=0.05)


def test_trainable_arm_locks_many_pairs_at_the_start():
    model = build_model(ModelConfig("ssa"), seed=0)
    tokens = torch.randint(0, 98, (2, 128), generator=torch.Generator().manual_seed(1))
    mask = torch.ones(128, 128, dtype=torch.bool).tril()
    x = model.embed(tokens)
    with torch.no_grad():
        for block, share in zip(model.blocks, (0.80, 0.91), strict=True):
            found = block.attention.locking(block.attention_norm(x))
            fraction = found.locked[:, :, mask].double().mean().item()
            assert fraction == pytest.approx(share, abs=0.12)
            x = block(x)


def test_position_term_of_the_trainable_arm_by_its_formula():
    config = ModelConfig("ssa", k=8, heads=2, hidden=8, context=16)
    attention = build_model(config).blocks[0].attention.double()
    x = torch.randn(1, 9, 8, generator=torch.Generator().manual_seed(0)).double()
    with torch.no_grad():
        square = attention.squares(x)
        attention.position.fill_(-1e3)  # softplus of it is zero
        without = attention.squares(x)
        attention.position.copy_(torch.tensor([-2.0, 1.0]))
    rates = attention.rates.tolist()
    for head, rho in enumerate((-2.0, 1.0)):
        for i in range(9):
            for j in range(9):
                turn = sum(1 - math.cos(nu * (i - j)) for nu in rates) / 8
                wanted = math.log1p(math.exp(rho)) * turn
                found = float(square[0, head, i, j] - without[0, head, i, j])
                assert found == pytest.approx(wanted, abs=1e-12)


def test_top_k_keeps_the_strongest_partners():
    config = ModelConfig("ssa", mask="none", k=16, heads=2, hidden=8, lock_top_k=3)
    attention = build_model(config).blocks[0].attention
    full = build_model(config.with_changes(lock_top_k=0)).blocks[0].attention
    x = torch.randn(1, 10, 16, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        few, all_of_them = attention.locking(x).strength, full.locking(x).strength
    assert ((few > 0).sum(-1) <= 3).all()
    assert torch.equal(few.max(-1).values, all_of_them.max(-1).values)
    assert torch.equal(few[few > 0], all_of_them[few > 0])
