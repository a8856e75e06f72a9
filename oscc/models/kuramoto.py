"""Kuramoto attention: every token pulls towards the phases it attends to."""

from __future__ import annotations

import torch

from oscc.models.base import Coefficients
from oscc.models.phase import PhaseLayer, PhaseModel


class KuramotoLayer(PhaseLayer):
    """Coupling of Kuramoto attention.

        C_tj = sum_{u<=t} A_tu exp(i theta_uj)
        Im(conj(z) C)_tj = sum_u A_tu sin(theta_uj - theta_tj)

    Source: Nunley, arXiv 2606.11585.
    """

    def fields(
        self, weights: torch.Tensor, theta: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Im and Re of conj(z) C, shape (1, B, T, k) each."""
        cosine, sine = theta.cos(), theta.sin()
        real, imag = weighted(weights, cosine, sine)
        a = imag * cosine - real * sine
        b = real * cosine + imag * sine
        return a[None], b[None]

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
    batch, heads = weights.shape[:2]
    tokens, k = parts[0].shape[1:]
    stacked = torch.stack(parts, 2).reshape(batch, tokens, len(parts), heads, -1)
    grouped = stacked.permute(0, 3, 1, 2, 4).reshape(batch, heads, tokens, -1)
    out = (weights @ grouped).reshape(batch, heads, -1, len(parts), k // heads)
    joined = out.permute(3, 0, 2, 1, 4).reshape(len(parts), batch, -1, k)
    return tuple(joined.unbind(0))
