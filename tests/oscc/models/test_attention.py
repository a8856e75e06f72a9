"""Score, fields and successor route against explicit loops (models.md section 9)."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from oscc.models.base import build_model
from oscc.models.config import ModelConfig
from oscc.models.fsn import successor_weights
from oscc.models.host import lift

TOKENS, K, HEADS = 14, 12, 3
EXACT = 1e-12  # rounding of sums of 14 to 24 terms of size one, with margin


def random_model(family, dtype=torch.float64, **changes):
    """Small model whose parameters are all far from their start values."""
    sizes = {"k": K, "layers": 2, "heads": HEADS, "hidden": 10, "context": TOKENS}
    model = build_model(ModelConfig(family, **{**sizes, **changes}), seed=3).to(dtype)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=dtype)
            parameter.add_(0.3 * noise)
    return model


def random_phases(dtype=torch.float64):
    generator = torch.Generator().manual_seed(11)
    unit = torch.rand(2, TOKENS, K, generator=generator, dtype=torch.float64)
    return ((2 * unit - 1) * 9).to(dtype)


def explicit_weights(layer, theta):
    """Softmax of the score of every triple (t, u, j), by loops over t and u."""
    score, width = layer.score, K // HEADS
    with torch.no_grad():
        features = torch.cat([theta.cos(), theta.sin()], -1)
        q, r = (
            functional.softplus(features @ m.weight.T + m.bias)
            for m in (score.query, score.key)
        )
        q, r = q / q.mean(-1, keepdim=True), r / r.mean(-1, keepdim=True)
        drift, sharpness = score.drift, score.sharpness
    out = torch.zeros(len(theta), HEADS, TOKENS, TOKENS, dtype=theta.dtype)
    for head in range(HEADS):
        part = slice(head * width, (head + 1) * width)
        for t in range(TOKENS):
            row = []
            for u in range(t + 1):
                angle = theta[:, t] - theta[:, u] + drift * (t - u)
                term = q[:, t] * r[:, u] * angle.cos()
                total = term[:, part].sum(-1)
                row.append(sharpness[head] / math.sqrt(width) * total)
            out[:, head, t, : t + 1] = torch.stack(row, -1).softmax(-1)
    return out


def by_coordinate(weights):
    """(B, H, T, T) -> (B, T, T, k)."""
    return weights.repeat_interleave(K // HEADS, 1).permute(0, 2, 3, 1)


@pytest.mark.parametrize("family", ["kuramoto", "fsn"])
def test_score_equals_the_explicit_triple_loop(family):
    layer, theta = random_model(family).coupling_layers()[1], random_phases()
    with torch.no_grad():
        weights = layer.score(theta, lift(theta))
    assert (weights - explicit_weights(layer, theta)).abs().max() <= EXACT
    assert (weights.sum(-1) - 1).abs().max() <= EXACT


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, EXACT), (torch.float32, 1e-6)]
)
def test_kuramoto_direction_equals_the_sum_of_sines_and_the_fused_kernel(
    dtype, tolerance
):
    layer, theta = random_model("kuramoto", dtype).coupling_layers()[0], random_phases()
    theta = theta.to(dtype)
    with torch.no_grad():
        weights = layer.score(theta, lift(theta))
        a = layer.fields(weights, theta)[0][0]
        difference = theta[:, None] - theta[:, :, None]
        sines = (by_coordinate(weights) * difference.sin()).sum(2)
        assert (a - sines).abs().max() <= tolerance
        fused = fused_direction(layer, theta)
    assert (a - fused).abs().max() <= tolerance


def fused_direction(layer, theta):
    """Im(conj(z) C) through scaled_dot_product_attention, one head at a time."""
    score, width = layer.score, K // HEADS
    reading, read = score.gates(lift(theta))
    position = torch.arange(TOKENS, dtype=theta.dtype)[:, None]
    phase = theta + score.drift * position
    parts = []
    for head in range(HEADS):
        cut = slice(head * width, (head + 1) * width)
        q, k, value = (
            torch.cat(
                [g[..., cut] * p[..., cut].cos(), g[..., cut] * p[..., cut].sin()], -1
            )
            for g, p in (
                (reading, phase),
                (read, phase),
                (torch.ones_like(read), theta),
            )
        )
        scale = score.sharpness[head] / math.sqrt(width)
        out = functional.scaled_dot_product_attention(
            q * scale, k, value, is_causal=True, scale=1.0
        )
        real, imag = out[..., :width], out[..., width:]
        parts.append(imag * theta[..., cut].cos() - real * theta[..., cut].sin())
    return torch.cat(parts, -1)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, EXACT), (torch.float32, 2e-6)]
)
def test_proposition_one_successor_is_a_sakaguchi_coupling(dtype, tolerance):
    # float32: sines of n theta with theta up to 9 rad lose n * 9 * 2^-24 = 1e-6
    layer = random_model("fsn", dtype, harmonics=3).coupling_layers()[1]
    theta = random_phases().to(dtype)
    with torch.no_grad():
        weights = layer.score(theta, lift(theta))
        a = layer.fields(weights, theta)[0].sum(0)
        wanted = torch.zeros_like(a)
        spread = by_coordinate(weights)
        for n in range(1, 4):
            gamma, alpha = layer.gamma[n - 1], layer.alpha[n - 1]
            for t in range(TOKENS):
                own = theta[:, : t + 1] - theta[:, t : t + 1]
                term = gamma[0] * (n * own + alpha[0]).sin()
                wanted[:, t] += (spread[:, t, : t + 1] * term).sum(1)
                delta = theta[:, 1 : t + 1] - theta[:, :t]
                term = gamma[1] * (n * (own[:, :t] + delta) + alpha[1]).sin()
                wanted[:, t] += (spread[:, t, :t] * term).sum(1)
    assert (a - wanted).abs().max() <= tolerance


def test_fields_are_real_and_imaginary_part_of_one_complex_number():
    layer, theta = random_model("fsn").coupling_layers()[0], random_phases()
    with torch.no_grad():
        weights = layer.score(theta, lift(theta))
        a, b = layer.fields(weights, theta)
        z = torch.polar(torch.ones_like(theta), theta)
        spread = by_coordinate(weights)
        for n in (1, 2):
            w = torch.polar(torch.ones_like(layer.alpha), layer.alpha)[n - 1]
            w = w * layer.gamma[n - 1]
            for t in range(TOKENS):
                field = w[0] * (spread[:, t] * z**n).sum(1)
                if t:
                    field += w[1] * (spread[:, t, :t] * z[:, 1 : t + 1] ** n).sum(1)
                turned = z[:, t].conj() ** n * field
                assert (a[n - 1, :, t] - turned.imag).abs().max() <= EXACT
                assert (b[n - 1, :, t] - turned.real).abs().max() <= EXACT


def test_rows_of_the_successor_weights():
    layer, theta = random_model("fsn").coupling_layers()[0], random_phases()
    with torch.no_grad():
        weights = layer.score(theta, lift(theta))
    shifted = successor_weights(weights, renormalised=False)
    own = weights.diagonal(dim1=-2, dim2=-1)
    assert (shifted.sum(-1) - (1 - own)).abs().max() <= EXACT
    assert shifted[..., 0, :].abs().max() == 0
    assert shifted.triu(1).abs().max() == 0
    full = successor_weights(weights, renormalised=True)
    assert (full[..., 1:, :].sum(-1) - 1).abs().max() <= EXACT
    assert full[..., 0, :].abs().max() == 0


def test_shifting_one_coordinate_of_every_token_changes_nothing_without_gates():
    model = random_model("fsn", gates="none", context=TOKENS)
    layer, theta = model.coupling_layers()[0], random_phases()
    moved = theta.clone()
    moved[..., 4] += 1.234
    with torch.no_grad():
        before, after = (layer.score(x, lift(x)) for x in (theta, moved))
        assert (before - after).abs().max() <= EXACT
        left, right = layer.fields(before, theta)[0], layer.fields(after, moved)[0]
    assert (left - right).abs().max() <= EXACT


def test_query_offset_turns_the_asking_phase_only():
    layer = random_model("kuramoto", query_offset=True).coupling_layers()[0]
    theta = random_phases()
    with torch.no_grad():
        turned = layer.score(theta, lift(theta))
        layer.score.offset.zero_()
        plain = layer.score(theta, lift(theta))
    assert (turned - plain).abs().max() > 1e-3
    assert np.isfinite(turned.numpy()).all()
