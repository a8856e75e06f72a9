"""Host operations of the phase models: score gates, softmax, bound, feed-forward.

Axes: B batch, T tokens, k coordinates, H heads, d = k / H, V symbols.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from oscc.models.config import ModelConfig
from oscc.seeds import stream

_TINY = 1e-12


def lift(theta: torch.Tensor) -> torch.Tensor:
    """[cos theta, sin theta], shape (..., k) -> (..., 2k).

    Example:
        >>> lift(torch.zeros(1)).tolist()
        [1.0, 0.0]
    """
    return torch.cat([theta.cos(), theta.sin()], -1)


def bound_scale(x: torch.Tensor, kind: str, width: float) -> torch.Tensor:
    """Scale s with bounded(x) = s x.

        B0: s = 1                          B1: s = |c tanh(x / c)| / |x| per token
        B2: s = (1 + mean x^2 / c^2)^-1/2  B3: s = c / RMS(x)
        B4: s_j = tanh(x_j / c) / (x_j / c)

    Args:
        x: Displacement, shape (..., k), [rad].
        kind: `B0` to `B4`.
        width: c, [rad].

    Returns:
        Shape (..., 1), for B4 (..., k).

    Source: the articles say only that the bound matches a norm; inferred.

    Example:
        >>> float(bound_scale(torch.zeros(3), "B1", 1.0))
        1.0
    """
    mean_square = x.pow(2).mean(-1, keepdim=True)
    if kind == "B0":
        return torch.ones_like(mean_square)
    if kind == "B1":
        y = torch.tanh(x / width) * width
        return torch.sqrt(
            (y.pow(2).mean(-1, keepdim=True) + _TINY) / (mean_square + _TINY)
        )
    if kind == "B2":
        return torch.rsqrt(1 + mean_square / width**2)
    if kind == "B3":
        return width * torch.rsqrt(mean_square + _TINY)
    y = x / width
    small = y.abs() < 1e-4
    safe = torch.where(small, torch.ones_like(y), y)
    return torch.where(small, 1 - y * y / 3, torch.tanh(safe) / safe)


class Draws:
    """Start values: one named random stream for every tensor.

    Nothing is drawn while torch's default device is `meta`: shapes alone are wanted.
    """

    def __init__(self, seed: int, prefix: str) -> None:
        self._seed, self._prefix = seed, prefix

    def normal(self, name: str, shape: tuple[int, ...], std: float) -> nn.Parameter:
        """Normal values of mean zero."""
        if _shapes_alone():
            return nn.Parameter(torch.empty(shape))
        rng = stream(self._seed, f"start {self._prefix}{name}")
        return nn.Parameter(torch.from_numpy(std * rng.standard_normal(shape)).float())

    def angles(self, name: str, shape: tuple[int, ...]) -> nn.Parameter:
        """Angles uniform on the circle."""
        if _shapes_alone():
            return nn.Parameter(torch.empty(shape))
        rng = stream(self._seed, f"start {self._prefix}{name}")
        values = rng.uniform(-math.pi, math.pi, shape)
        return nn.Parameter(torch.from_numpy(values).float())


def _shapes_alone() -> bool:
    return torch.get_default_device().type == "meta"


class PhaseMap(nn.Module):
    """Affine map of the lift of the phases, (..., 2k) -> (..., k)."""

    def __init__(self, weight: nn.Parameter, bias: float) -> None:
        super().__init__()
        self.weight = weight
        self.bias = nn.Parameter(torch.full((weight.shape[0],), bias))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Apply the map."""
        return functional.linear(features, self.weight, self.bias)


class Score(nn.Module):
    """Attention weights from gated phase differences.

        s_tu = sharpness / sqrt(d) sum_j q_tj k_uj cos(theta_tj - theta_uj
               + drift_j (t - u)),   weights = softmax over u <= t

    Source: Nunley, arXiv 2606.11585 (gates and heads inferred).
    """

    def __init__(self, config: ModelConfig, draws: Draws) -> None:
        super().__init__()
        self.heads, k = config.heads, config.k
        self.drift = nn.Parameter(_drift(config))
        self.sharpness = nn.Parameter(torch.full((self.heads,), config.sharpness))
        self.gated = config.gates == "softplus"
        if self.gated:
            std = config.gate_std / math.sqrt(2 * k)
            shape = (k, 2 * k)
            self.query = PhaseMap(draws.normal("score.query", shape, std), 0.0)
            self.key = PhaseMap(draws.normal("score.key", shape, std), 0.0)
        self.offset = nn.Parameter(torch.zeros(k)) if config.query_offset else None
        # what forms the scores of queries and keys where hardware does, in a trace
        self.correlate: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = (
            None
        )

    def gates(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Positive gates of reading and read tokens, mean 1 over the coordinates."""
        k = self.drift.shape[0]
        if not self.gated:
            one = torch.ones_like(features[..., :k])
            return one, one
        reading = functional.softplus(self.query(features))
        read = functional.softplus(self.key(features))
        return (
            reading / reading.mean(-1, keepdim=True),
            read / read.mean(-1, keepdim=True),
        )

    def projections(
        self, theta: torch.Tensor, features: torch.Tensor, first: int = 0
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Queries with their scale, and keys, (B, H, T, 2d) each; s = query . key.

        Args:
            theta: Phases, shape (B, T, k).
            features: Their lift.
            first: Position of the first token.
        """
        tokens, k = theta.shape[1:]
        reading, read = self.gates(features)
        place = torch.arange(first, first + tokens, device=theta.device)
        position = place.to(theta.dtype)
        phase = theta + self.drift * position[:, None]
        turned = (phase.cos(), phase.sin())
        key = self._grouped(read, turned)
        if self.offset is not None:
            asked = phase + self.offset
            turned = (asked.cos(), asked.sin())
        query = self._grouped(reading, turned)
        scale = self.sharpness / math.sqrt(k // self.heads)
        return query * scale[:, None, None], key

    def forward(self, theta: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        """Weights, shape (B, H, T, T), rows sum to 1, causal."""
        query, key = self.projections(theta, features)
        if self.correlate is None:
            scores = query @ key.transpose(-1, -2)
        else:
            scores = self.correlate(query, key)
        future = torch.ones_like(scores[0, 0], dtype=torch.bool).triu(1)
        return scores.masked_fill(future, -torch.inf).softmax(-1)

    def _grouped(
        self, gate: torch.Tensor, turned: tuple[torch.Tensor, torch.Tensor]
    ) -> torch.Tensor:
        pair = torch.stack([gate * part for part in turned], -1)
        return pair.reshape(*gate.shape[:2], self.heads, -1).transpose(1, 2)


def _drift(config: ModelConfig) -> torch.Tensor:
    width = config.k // config.heads
    step = torch.arange(width, dtype=torch.float64).repeat(config.heads) / width
    base = {"rope": config.drift_base, "short": 2.0 * config.context}
    if config.drift == "zero":
        return torch.zeros(config.k)
    return (base[config.drift] ** -step).float()


class FeedForward(nn.Module):
    """SwiGLU on the unwrapped angles (or on their lift): W3 (silu(W1 x) * W2 x)."""

    def __init__(self, config: ModelConfig, draws: Draws) -> None:
        super().__init__()
        self.on_lift = config.feed_forward == "lift"
        wide = 2 * config.k if self.on_lift else config.k
        shape, std = (config.hidden, wide), 1.0 / math.sqrt(3.0 * wide)
        self.gate = draws.normal("feed_forward.gate", shape, std)
        self.up = draws.normal("feed_forward.up", shape, std)
        self.down = draws.normal(
            "feed_forward.down",
            (config.k, config.hidden),
            config.feed_forward_std / math.sqrt(config.hidden),
        )

    def forward(self, theta: torch.Tensor) -> torch.Tensor:
        """Displacement before the bound, shape (B, T, k)."""
        x = lift(theta) if self.on_lift else theta
        inner = functional.silu(functional.linear(x, self.gate))
        return functional.linear(inner * functional.linear(x, self.up), self.down)
