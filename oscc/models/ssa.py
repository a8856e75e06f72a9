"""Selective synchronisation attention in the OSN block: pairs that can lock, mix.

    Delta_ij = |w_i - w_j| of the natural frequencies w of two tokens in a head
    J = exp(-a Delta^2),  a = softplus(decay);   K = softplus(lock_strength)
    r = mean over coordinates of |mean over tokens exp(i Theta)|
    locked iff Delta <= K r J;  S = J sqrt(1 - (Delta / (K r J))^2), else 0
    out = S V / sum_j S

S is computed as sqrt(J^2 - Delta^2 / (K r)^2) on the locked pairs: the same value,
without a division by a J that vanishes or the root of Delta^2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional

from oscc.models.config import ModelConfig
from oscc.models.host import Draws
from oscc.models.lock_sums import ROW, TINY, lock_sums
from oscc.models.residual import Affine, Dropout, ResidualModel, by_head, joined

PUBLISHED_STD = 0.02
POSITION_RATES = 8


class Locking(NamedTuple):
    """`strength` S and `locked` (B,H,T,T), `coherence` r (B,H,1,1) or (B,H,T,1)."""

    strength: torch.Tensor
    locked: torch.Tensor
    coherence: torch.Tensor


class LockState(NamedTuple):
    """What decides which pairs of a block lock, (B,H,T,T) each.

    `ratio` x = Delta / (K r J), infinite where J vanishes or the mask hides the pair;
    `factor` J and `strength` K r J, 0 where the mask hides it. `frequency`: natural
    frequencies of the tokens, (B,H,T,d).
    """

    ratio: torch.Tensor
    factor: torch.Tensor
    strength: torch.Tensor
    frequency: torch.Tensor


LockStep = Callable[[int, LockState], torch.Tensor]
"""Index of the block and its state -> coherence cos of every pair, (B,H,T,T)."""


def lock_strength(
    square: torch.Tensor,
    decay: torch.Tensor,
    pull: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Strength of every pair and which ones lock.

        S = sqrt(J^2 - Delta^2 / pull^2),  J = exp(-decay Delta^2),  pull = K r

    Args:
        square: Delta^2, any shape, >= 0.
        decay: a > 0, broadcast to it.
        pull: K r > 0, broadcast to it.

    Returns:
        S, 0 where the pair does not lock, and the mask of the pairs that do.

    Source: Hays, arXiv 2602.14445, in a form that does not divide by J.

    Example:
        >>> one = torch.ones(1)
        >>> lock_strength(torch.tensor([0.0, 9.0]), one, one)[1].tolist()
        [True, False]
    """
    inside = torch.exp(square * (-2 * decay)) - square * pull.pow(-2)
    square_of_it = torch.relu(inside)  # times its inverse root: 0 stays exactly 0
    return square_of_it * torch.rsqrt(square_of_it + TINY), inside > 0


BlockStep = Callable[[LockState], torch.Tensor]


class SsaAttention(nn.Module):
    """Locking strengths as attention, in two arms.

    `published`: the constants of the public code. `trainable`: frequencies normalised
    per head, constants at which pairs of different tokens lock, and a position term
    Delta^2 += softplus(rho) mean_m (1 - cos(nu_m (i - j))).

    Source: Hays, arXiv 2602.14445, and its public code (MIT); the trainable arm and
    the causal mask are ours.
    """

    def __init__(self, config: ModelConfig, draws: Draws) -> None:
        super().__init__()
        self.config, k = config, config.k
        self.trainable_arm = config.arm == "trainable"
        self.dropout = Dropout(config.dropout)
        std = 0.7 / math.sqrt(k) if self.trainable_arm else PUBLISHED_STD
        self.frequency, self.phase, self.value, self.out = (
            Affine(draws.normal(name, (k, k), std))
            for name in ("frequency", "phase", "value", "out")
        )
        decay, pull = (-1.0, 3.0) if self.trainable_arm else (1.0, 1.0)
        self.decay = nn.Parameter(torch.full((config.heads,), decay))
        self.pull = nn.Parameter(torch.tensor(pull))
        if self.trainable_arm:
            self.position = nn.Parameter(torch.linspace(-2.0, 1.0, config.heads))
            step = torch.arange(POSITION_RATES, dtype=torch.float64) / POSITION_RATES
            rates = (2.0 * config.context) ** -step
            self.rates = nn.Parameter(rates.float())

    def frequencies(self, x: torch.Tensor) -> torch.Tensor:
        """Natural frequencies of the tokens, shape (B, H, T, d)."""
        frequency = by_head(self.frequency(x), self.config.heads)
        if not self.trainable_arm:
            return frequency
        size = frequency.pow(2).mean(-1, keepdim=True)
        width = frequency.shape[-1]
        return frequency * torch.rsqrt(size + 1e-6) / math.sqrt(2 * width)

    def squares(self, x: torch.Tensor) -> torch.Tensor:
        """Delta^2 of every pair, shape (B, H, T, T)."""
        frequency = self.frequencies(x)
        own = frequency.pow(2).sum(-1)
        cross = frequency @ frequency.transpose(-1, -2)
        square = torch.relu(own[..., :, None] + own[..., None, :] - 2 * cross)
        same = torch.eye(x.shape[1], dtype=torch.bool, device=x.device)
        square = square.masked_fill(same, 0.0)  # rounding apart, a token is itself
        by_distance = self.by_distance(x)
        if by_distance is None:
            return square
        place = torch.arange(x.shape[1], device=x.device)
        return square + by_distance[:, (place[:, None] - place).abs()]

    def by_distance(self, x: torch.Tensor) -> torch.Tensor | None:
        """The position term by distance, shape (H, T); the published arm has none."""
        if not self.trainable_arm:
            return None
        place = torch.arange(x.shape[1], dtype=x.dtype, device=x.device)
        angle = place[:, None] * self.rates
        scale = functional.softplus(self.position)[:, None]
        return scale * (1 - angle.cos()).mean(-1)

    def coherence(self, x: torch.Tensor) -> torch.Tensor:
        """Order parameter r by head: (B, H, 1, 1), or (B, H, T, 1) of the prefixes."""
        phase = by_head(self.phase(x), self.config.heads)
        if self.config.mask == "none":
            real, imag = phase.cos().mean(2), phase.sin().mean(2)
            return torch.sqrt(real**2 + imag**2 + TINY).mean(-1)[..., None, None]
        count = torch.arange(1, x.shape[1] + 1, dtype=x.dtype, device=x.device)
        count = count[:, None]
        real, imag = phase.cos().cumsum(2) / count, phase.sin().cumsum(2) / count
        return torch.sqrt(real**2 + imag**2 + TINY).mean(-1, keepdim=True)

    def locking(self, x: torch.Tensor) -> Locking:
        """Strength of every pair, which ones lock, and the order parameter.

        Args:
            x: Normalised vectors, shape (B, T, k).
        """
        coherence = self.coherence(x)
        decay = functional.softplus(self.decay)[:, None, None]
        pull = functional.softplus(self.pull) * coherence
        strength, locked = lock_strength(self.squares(x), decay, pull)
        if self.config.mask == "causal":
            strength, locked = strength.tril(), locked.tril()
        if self.config.lock_top_k:
            strength = _strongest(strength, self.config.lock_top_k)
        return Locking(strength, locked, coherence)

    def state(self, x: torch.Tensor) -> LockState:
        """How far every pair is from its lock range.

        Args:
            x: Normalised vectors, shape (B, T, k).
        """
        decay = functional.softplus(self.decay)[:, None, None]
        square = self.squares(x)
        factor = torch.exp(-decay * square)
        strength = functional.softplus(self.pull) * self.coherence(x) * factor
        ratio = torch.sqrt(square) / strength
        if self.config.mask == "causal":
            factor, strength = factor.tril(), strength.tril()
            hidden = torch.ones_like(ratio, dtype=torch.bool).triu(1)
            ratio = ratio.masked_fill(hidden, torch.inf)
        return LockState(ratio, factor, strength, self.frequencies(x))

    def forward(
        self, x: torch.Tensor, coherence: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Mixed values, shape (B, T, k) -> (B, T, k).

        Args:
            x: Normalised vectors, shape (B, T, k).
            coherence: cos of every pair in the place of the layer's own, (B, H, T, T).
        """
        values = by_head(self.value(x), self.config.heads)
        if coherence is not None:
            strength = self.state(x).factor * coherence
            if self.config.lock_top_k:
                strength = _strongest(strength, self.config.lock_top_k)
            mixed = strength @ values / (strength.sum(-1, keepdim=True) + ROW)
        elif self.config.lock_top_k or self.dropout.active:
            strength = self.locking(x).strength
            weights = strength / (strength.sum(-1, keepdim=True) + ROW)
            mixed = self.dropout(weights) @ values
        else:
            mixed = lock_sums(
                self.frequencies(x),
                functional.softplus(self.decay),
                functional.softplus(self.pull) * self.coherence(x),
                self.by_distance(x),
                values,
                causal=self.config.mask == "causal",
            )
        out: torch.Tensor = self.out(joined(mixed))
        return out


def _strongest(strength: torch.Tensor, count: int) -> torch.Tensor:
    """Keep the `count` largest entries of every row."""
    count = min(count, strength.shape[-1])
    places = strength.topk(count, -1).indices
    return strength * torch.zeros_like(strength).scatter(-1, places, 1.0)


class OsnBlock(nn.Module):
    """x <- x + attention(norm x);  x <- x + down(gelu(up(norm x)))."""

    def __init__(self, config: ModelConfig, draws: Draws) -> None:
        super().__init__()
        k, hidden = config.k, config.hidden
        self.attention_norm, self.norm = nn.LayerNorm(k), nn.LayerNorm(k)
        self.attention = SsaAttention(config, draws)
        self.dropout = Dropout(config.dropout)
        trainable = config.arm == "trainable"
        wide, narrow = (
            0.7 / math.sqrt(size) if trainable else PUBLISHED_STD
            for size in (k, hidden)
        )
        self.up = Affine(draws.normal("up", (hidden, k), wide))
        self.down = Affine(draws.normal("down", (k, hidden), narrow))

    def forward(self, x: torch.Tensor, step: BlockStep | None = None) -> torch.Tensor:
        """Shape (B, T, k) -> (B, T, k); `step` replaces the coherence of the pairs."""
        seen = self.attention_norm(x)
        coherence = None if step is None else step(self.attention.state(seen))
        x = x + self.dropout(self.attention(seen, coherence))
        inner = self.dropout(functional.gelu(self.up(self.norm(x))))
        out: torch.Tensor = x + self.dropout(self.down(inner))
        return out


class SsaModel(ResidualModel):
    """OSN language model with a tied head.

    Source: Hays, arXiv 2602.14445, and its public code (MIT). That code has neither a
    causal mask nor positions; without a mask this is no next-symbol model.
    """

    def block(self, draws: Draws) -> nn.Module:
        """One OSN block."""
        return OsnBlock(self.config, draws)

    def run_locked(self, x: torch.Tensor, step: LockStep) -> torch.Tensor:
        """Vectors after all blocks, the coherence of every pair given by `step`."""
        for index, block in enumerate(self.blocks):
            x = block(x, partial(step, index))
        return x

    def norm(self) -> nn.Module:
        """Layer norm."""
        return nn.LayerNorm(self.config.k)
