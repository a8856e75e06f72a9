"""Baseline: a transformer with RMS norm, rotary positions, SwiGLU and no biases."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

from oscc.models.config import ModelConfig
from oscc.models.host import Draws
from oscc.models.residual import Affine, ResidualModel, by_head, joined


class TransformerBlock(nn.Module):
    """x <- x + out(attention(norm x));  x <- x + down(silu(gate y) up y), y = norm x.

    Source: Su et al., arXiv 2104.09864 (rotary positions); Shazeer, arXiv 2002.05202
    (SwiGLU).
    """

    def __init__(self, config: ModelConfig, draws: Draws) -> None:
        super().__init__()
        k, hidden = config.k, config.hidden
        self.heads, self.base = config.heads, config.drift_base
        self.attention_norm, self.norm = nn.RMSNorm(k), nn.RMSNorm(k)
        self.read = _map(draws, "read", 3 * k, k)
        self.out = _map(draws, "out", k, k)
        self.gate = _map(draws, "gate", hidden, k)
        self.up = _map(draws, "up", hidden, k)
        self.down = _map(draws, "down", k, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (B, T, k) -> (B, T, k)."""
        parts = self.read(self.attention_norm(x)).chunk(3, -1)
        query, key, value = (by_head(part, self.heads) for part in parts)
        mixed = functional.scaled_dot_product_attention(
            rotated(query, self.base), rotated(key, self.base), value, is_causal=True
        )
        x = x + self.out(joined(mixed))
        y = self.norm(x)
        forward: torch.Tensor = self.down(functional.silu(self.gate(y)) * self.up(y))
        return x + forward


def rotated(x: torch.Tensor, base: float) -> torch.Tensor:
    """Rotary positions: coordinates i and i + d/2 turn by t base^(-2 i / d).

    Args:
        x: Queries or keys, shape (..., T, d), d even.
        base: Ratio of the fastest to the slowest rate.

    Example:
        >>> rotated(torch.ones(1, 2), 10000.0).tolist()
        [[1.0, 1.0]]
    """
    tokens, width = x.shape[-2:]
    step = torch.arange(width // 2, dtype=torch.float64) / (width // 2)
    angle = torch.arange(tokens, dtype=torch.float64)[:, None] * base**-step
    cosine, sine = angle.cos().to(x), angle.sin().to(x)
    left, right = x.chunk(2, -1)
    return torch.cat([left * cosine - right * sine, left * sine + right * cosine], -1)


def _map(draws: Draws, name: str, rows: int, columns: int) -> Affine:
    std = 0.7 / math.sqrt(columns)
    return Affine(draws.normal(name, (rows, columns), std), bias=False)


class TransformerModel(ResidualModel):
    """Transformer with an untied head."""

    tied = False

    def block(self, draws: Draws) -> nn.Module:
        """One transformer block."""
        return TransformerBlock(self.config, draws)

    def norm(self) -> nn.Module:
        """RMS norm."""
        return nn.RMSNorm(self.config.k)
