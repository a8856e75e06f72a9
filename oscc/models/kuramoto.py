"""Kuramoto attention: every token pulls towards the phases it attends to."""

from __future__ import annotations

import torch
from torch import nn

from oscc.models.base import Coefficients
from oscc.models.config import ModelConfig
from oscc.models.fused import causal_sums
from oscc.models.host import Draws, lift
from oscc.models.phase import PhaseLayer, PhaseModel


class KuramotoLayer(PhaseLayer):
    """Coupling of Kuramoto attention.

        C_tj = sum_{u<=t} A_tu exp(i theta_uj)
        Im(conj(z) C)_tj = sum_u A_tu sin(theta_uj - theta_tj)

    With `values: projected`, an ablation, a learned map takes [cos theta, sin theta]
    to the real and imaginary part of what is summed; it starts as the identity.

    Source: Nunley, arXiv 2606.11585.
    """

    def __init__(self, config: ModelConfig, draws: Draws) -> None:
        super().__init__(config, draws)
        projected = config.values == "projected"
        self.projection = nn.Parameter(torch.eye(2 * config.k)) if projected else None

    def fields(
        self, weights: torch.Tensor, theta: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Im and Re of conj(z) C, shape (1, B, T, k) each."""
        features = lift(theta)
        real, imag = weighted(weights, *self._values(features))
        return _turned(real, imag, features[:, -weights.shape[2] :])

    def fused_fields(
        self, query: torch.Tensor, key: torch.Tensor, features: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As `fields`, without the matrix of the weights."""
        values = grouped(query.shape[1], torch.stack(self._values(features)))
        real, imag = ungrouped(causal_sums(query, key, values)[0], 2)
        return _turned(real, imag, features)

    def _values(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self.projection is not None:
            features = features @ self.projection.T
        real, imag = features.chunk(2, -1)
        return real, imag

    def coefficients(self) -> Coefficients:
        """Strength 1 without frustration on harmonic 1."""
        one = torch.ones_like(self.score.drift.detach())[None]
        return Coefficients((1,), one, torch.zeros_like(one), None, None)


class KuramotoModel(PhaseModel):
    """Kuramoto attention model.

    Source: Nunley, arXiv 2606.11585; what it leaves open is in ModelConfig.
    """

    layer_type = KuramotoLayer


def weighted(weights: torch.Tensor, *parts: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Sum over the read tokens of each part, with the weights of its head.

    Args:
        weights: Shape (B, H, T, S).
        parts: Shape (B, S, k) each; the k coordinates are cut into H heads.

    Returns:
        Shape (B, T, k) each.

    Example:
        >>> weighted(torch.ones(1, 1, 1, 2), torch.ones(1, 2, 3))[0].tolist()
        [[[2.0, 2.0, 2.0]]]
    """
    summed = weights @ grouped(weights.shape[1], torch.stack(parts))
    return tuple(ungrouped(summed, len(parts)).unbind(0))


def grouped(heads: int, parts: torch.Tensor) -> torch.Tensor:
    """Parts beside each other, cut by head: (P, B, T, k) -> (B, H, T, P k / H).

    Example:
        >>> grouped(2, torch.ones(2, 1, 3, 4)).shape
        torch.Size([1, 2, 3, 4])
    """
    _, batch, tokens, _ = parts.shape
    cut = parts.reshape(len(parts), batch, tokens, heads, -1)
    return cut.permute(1, 3, 2, 0, 4).reshape(batch, heads, tokens, -1)


def ungrouped(summed: torch.Tensor, parts: int) -> torch.Tensor:
    """Inverse of `grouped`, (B, H, T, P k / H) -> (P, B, T, k).

    Example:
        >>> ungrouped(torch.ones(1, 2, 3, 4), 2).shape
        torch.Size([2, 1, 3, 4])
    """
    batch, heads, tokens, wide = summed.shape
    cut = summed.reshape(batch, heads, tokens, parts, wide // parts)
    return cut.permute(3, 0, 2, 1, 4).flatten(-2)


def _turned(
    real: torch.Tensor, imag: torch.Tensor, features: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Im and Re of conj(z) C, shape (1, B, T, k) each."""
    cosine, sine = features.chunk(2, -1)
    return (imag * cosine - real * sine)[None], (real * cosine + imag * sine)[None]
