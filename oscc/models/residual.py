"""Models without phases: symbols as vectors, pre-norm blocks that add to them.

What SSA and the transformer share. They have no coupling steps of the clamped kind.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from oscc.models.base import Advance, Layer
from oscc.models.config import ModelConfig
from oscc.models.host import Draws

EMBEDDING_STD = 0.02


class Affine(nn.Module):
    """x W^T + b, the bias left out on request."""

    def __init__(self, weight: nn.Parameter, *, bias: bool = True) -> None:
        super().__init__()
        self.weight = weight
        self.bias = nn.Parameter(torch.zeros(weight.shape[0])) if bias else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply the map, (..., in) -> (..., out)."""
        return functional.linear(x, self.weight, self.bias)


class Dropout(nn.Module):
    """Sets a share of the numbers to zero and scales the others; `rng` None: nothing.

    Which numbers fall is drawn from a stream that the trainer sets for a step, so that
    a run that is taken up again draws the same.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share
        self.rng: np.random.Generator | None = None

    @property
    def active(self) -> bool:
        """Whether anything is dropped."""
        return self.share > 0 and self.rng is not None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape and expectation of x."""
        if self.rng is None or not self.share:
            return x
        kept = torch.from_numpy(self.rng.random(tuple(x.shape)) >= self.share)
        return x * kept.to(x) / (1 - self.share)


@contextmanager
def dropping(model: nn.Module, rng: np.random.Generator) -> Iterator[None]:
    """What the model drops out inside the block is drawn from the stream."""
    parts = [part for part in model.modules() if isinstance(part, Dropout)]
    for part in parts:
        part.rng = rng
    try:
        yield
    finally:
        for part in parts:
            part.rng = None


class ResidualModel(nn.Module, ABC):
    """Embedding times sqrt(k), blocks, final norm, logits.

    A family sets `block`, `norm` and whether the head is the embedding again.
    """

    tied = True

    def __init__(self, config: ModelConfig, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        draws, shape = Draws(seed, ""), (config.symbols, config.k)
        self.embedding = draws.normal("embedding", shape, EMBEDDING_STD)
        self.blocks = nn.ModuleList(
            self.block(Draws(seed, f"blocks.{i}.")) for i in range(config.layers)
        )
        self.dropout = Dropout(config.dropout)
        self.final_norm = self.norm()
        std = 0.7 / math.sqrt(config.k)
        self.head = None if self.tied else draws.normal("head", shape, std)

    @abstractmethod
    def block(self, draws: Draws) -> nn.Module:
        """One block, (B, T, k) -> (B, T, k)."""

    @abstractmethod
    def norm(self) -> nn.Module:
        """Norm before the logits."""

    def coupling_layers(self) -> Sequence[Layer]:
        """No coupling steps on clamped phases."""
        return ()

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        """Vectors of the tokens, shape (B, T) -> (B, T, k)."""
        vectors: torch.Tensor = self.embedding[tokens] * math.sqrt(self.config.k)
        return self.dropout(vectors)  # type: ignore[no-any-return]

    def run(self, x: torch.Tensor, advance: Advance | None = None) -> torch.Tensor:
        """Vectors after all blocks; there is nothing to advance."""
        for block in self.blocks:
            x = block(x)
        return x

    def read_out(self, x: torch.Tensor) -> torch.Tensor:
        """Logits, shape (B, T, k) -> (B, T, V)."""
        head = self.embedding if self.head is None else self.head
        return functional.linear(self.final_norm(x), head)

    def forward(
        self, tokens: torch.Tensor, advance: Advance | None = None
    ) -> torch.Tensor:
        """Logits of the next symbol, shape (B, T) -> (B, T, V)."""
        return self.read_out(self.run(self.embed(tokens)))


def by_head(x: torch.Tensor, heads: int) -> torch.Tensor:
    """(B, T, k) -> (B, H, T, d).

    Example:
        >>> by_head(torch.ones(1, 3, 4), 2).shape
        torch.Size([1, 2, 3, 2])
    """
    return x.reshape(*x.shape[:2], heads, -1).transpose(1, 2)


def joined(x: torch.Tensor) -> torch.Tensor:
    """(B, H, T, d) -> (B, T, k), inverse of `by_head`.

    Example:
        >>> joined(torch.ones(1, 2, 3, 2)).shape
        torch.Size([1, 3, 4])
    """
    return x.transpose(1, 2).flatten(-2)
