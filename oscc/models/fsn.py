"""FSN: Kuramoto attention with harmonics, frustration, coupling to the successor."""

from __future__ import annotations

import torch
from torch import nn

from oscc.models.base import Coefficients
from oscc.models.config import ModelConfig
from oscc.models.fused import route_sums
from oscc.models.host import Draws
from oscc.models.kuramoto import grouped, ungrouped, weighted
from oscc.models.phase import PhaseLayer, PhaseModel

_ALONE = 1e-6  # row 0 reads itself alone: nothing is left to renormalise


def successor_weights(weights: torch.Tensor, *, renormalised: bool) -> torch.Tensor:
    """Weights of token v as the successor of the token v - 1 that was attended to.

        A'[t, v] = A[t, v-1] for 1 <= v <= t, else 0

    The weight A_tt meets no successor inside the window's past and is dropped: row t
    sums to 1 - A_tt, row 0 is zero. Renormalised, the other rows sum to 1 again.

    Args:
        weights: Causal attention, shape (B, H, T, S): the last T of S tokens read.
        renormalised: Spread the dropped weight over the rest.

    Returns:
        Shape (B, H, T, S), causal.

    Source: Nunley, arXiv 2606.18694 (what happens to A_tt is inferred).

    Example:
        >>> successor_weights(torch.eye(2)[None, None], renormalised=False).sum().item()
        0.0
    """
    before = weights.shape[-1] - weights.shape[-2]
    shifted = nn.functional.pad(weights, (1, 0))[..., :-1].tril(before)
    if not renormalised:
        return shifted
    total = shifted.sum(-1, keepdim=True)
    return shifted / torch.where(total > 0, total, torch.ones_like(total))


class FsnLayer(PhaseLayer):
    """Coupling of FSN.

        C_n = w0_n sum_{u<=t} A_tu z_u^n + w1_n sum_{u<t} A_tu z_{u+1}^n
        w = gamma exp(i alpha), signed gamma, one of each per harmonic and coordinate

    Source: Nunley, arXiv 2606.18694 (number of harmonics, sharing: inferred).
    """

    def __init__(self, config: ModelConfig, draws: Draws) -> None:
        super().__init__(config, draws)
        gamma = torch.zeros(config.harmonics, 2, config.k)
        gamma[0, 0], gamma[0, 1] = 1.0, config.delay_gain
        self.gamma = nn.Parameter(gamma)
        self.alpha = nn.Parameter(
            torch.zeros_like(gamma), requires_grad=config.offsets == "learned"
        )

    def fields(
        self, weights: torch.Tensor, theta: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Im and Re of conj(z)^n C_n, shape (N, B, T, k) each."""
        renormalised = self.config.successor == "renormalised"
        shifted = successor_weights(weights, renormalised=renormalised)
        powers = phasor_powers(theta, self.config.harmonics)
        flat = [part for pair in powers for part in pair]
        present, successor = weighted(weights, *flat), weighted(shifted, *flat)
        rows = weights.shape[2]
        return self._coupled(
            [(c[:, -rows:], s[:, -rows:]) for c, s in powers], present, successor
        )

    def fused_fields(
        self, query: torch.Tensor, key: torch.Tensor, theta: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As `fields`, without the matrix of the weights."""
        powers = phasor_powers(theta, self.config.harmonics)
        flat = [part for pair in powers for part in pair]
        values = grouped(query.shape[1], *flat)
        present, successor, own = route_sums(query, key, values, successor=True)
        assert successor is not None
        if self.config.successor == "renormalised":
            rest = 1 - own
            rest = torch.where(rest > _ALONE, rest, torch.ones_like(rest))
            successor = successor / rest
        parts = len(flat)
        return self._coupled(
            powers, ungrouped(present, parts), ungrouped(successor, parts)
        )

    def _coupled(
        self,
        powers: list[tuple[torch.Tensor, torch.Tensor]],
        present: tuple[torch.Tensor, ...],
        successor: tuple[torch.Tensor, ...],
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Sums of both routes times their coefficients, in the frame of the target."""
        real = self.gamma * self.alpha.cos()
        imag = self.gamma * self.alpha.sin()
        a, b = [], []
        for n, (cosine, sine) in enumerate(powers):
            re, im = complex_product(
                real[n, 0], imag[n, 0], *present[2 * n : 2 * n + 2]
            )
            re1, im1 = complex_product(
                real[n, 1], imag[n, 1], *successor[2 * n : 2 * n + 2]
            )
            re, im = re + re1, im + im1
            a.append(im * cosine - re * sine)
            b.append(re * cosine + im * sine)
        return torch.stack(a), torch.stack(b)

    def coefficients(self) -> Coefficients:
        """Strength and frustration of both routes."""
        gamma, alpha = self.gamma.detach(), self.alpha.detach()
        orders = tuple(range(1, gamma.shape[0] + 1))
        return Coefficients(orders, gamma[:, 0], alpha[:, 0], gamma[:, 1], alpha[:, 1])


class FsnModel(PhaseModel):
    """FSN model; family `fsn-no-phase` is the same with alpha frozen at 0.

    Source: Nunley, arXiv 2606.18694; what it leaves open is in ModelConfig.
    """

    layer_type = FsnLayer


def phasor_powers(
    theta: torch.Tensor, harmonics: int
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """cos(n theta), sin(n theta) for n = 1..N."""
    first = (theta.cos(), theta.sin())
    powers = [first]
    for _ in range(1, harmonics):
        powers.append(complex_product(*powers[-1], *first))
    return powers


def complex_product(
    re: torch.Tensor, im: torch.Tensor, re1: torch.Tensor, im1: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Re and Im of the product of two complex numbers given by theirs.

    Example:
        >>> i = (torch.zeros(()), torch.ones(()))
        >>> [float(part) for part in complex_product(*i, *i)]
        [-1.0, 0.0]
    """
    return re * re1 - im * im1, re * im1 + im * re1
