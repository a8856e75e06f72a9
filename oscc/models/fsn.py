"""FSN: Kuramoto attention with harmonics, frustration, coupling to the successor."""

from __future__ import annotations

import torch
from torch import nn

from oscc.models.base import Coefficients
from oscc.models.config import ModelConfig
from oscc.models.fused import causal_sums
from oscc.models.host import Draws, lift
from oscc.models.kuramoto import grouped, ungrouped, weighted
from oscc.models.phase import PhaseLayer, PhaseModel


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
        cosine, sine = phasor_powers(lift(theta), self.config.harmonics)
        flat = [*cosine, *sine]
        real, imag = torch.stack(weighted(weights, *flat)).chunk(2)
        real1, imag1 = torch.stack(weighted(shifted, *flat)).chunk(2)
        real, imag = self._scaled(real, imag, 0)
        real1, imag1 = self._scaled(real1, imag1, 1)
        rows = weights.shape[2]
        return _turned_back(
            cosine[:, :, -rows:], sine[:, :, -rows:], real + real1, imag + imag1
        )

    def fused_fields(
        self, query: torch.Tensor, key: torch.Tensor, features: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As `fields`, without the matrix of the weights."""
        heads, parts = query.shape[1], 2 * self.config.harmonics
        cosine, sine = phasor_powers(features, self.config.harmonics)
        present = torch.cat(self._scaled(cosine, sine, 0))
        following = torch.cat(self._scaled(cosine, sine, 1))[:, :, 1:]
        following = nn.functional.pad(following, (0, 0, 0, 1))
        if self.config.successor == "renormalised":
            values = grouped(heads, torch.cat([present, following]))
            # a column of ones gives what is left beside A_tt, without a difference
            values = nn.functional.pad(values, (0, 1), value=1.0)
            sums, own = causal_sums(query, key, values, own_too=False)
            rest = sums[..., -1:]
            sums, later = sums[..., :-1].chunk(2, -1)
            sums = sums + later / torch.where(rest > 0, rest, torch.ones_like(own))
        else:  # one sum for both routes: their coefficients do not depend on t
            values = grouped(heads, present + following)
            sums, own = causal_sums(query, key, values, own_too=False)
        width = features.shape[-1] // 2 // heads
        own = own[..., 0].transpose(1, 2).repeat_interleave(width, -1)
        return _turned_back(
            cosine, sine, *(ungrouped(sums, parts) + own * present).chunk(2)
        )

    def _scaled(
        self, real: torch.Tensor, imag: torch.Tensor, route: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Re and Im of w_n x_n, shape (N, B, T, k), w the coefficients of a route."""
        gamma, alpha = self.gamma[:, route], self.alpha[:, route]
        w_real, w_imag = gamma * alpha.cos(), gamma * alpha.sin()
        return complex_product(w_real[:, None, None], w_imag[:, None, None], real, imag)

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


def _turned_back(
    cosine: torch.Tensor, sine: torch.Tensor, real: torch.Tensor, imag: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Im and Re of conj(z)^n C_n from Re and Im of C_n, shape (N, B, T, k) each."""
    return imag * cosine - real * sine, real * cosine + imag * sine


def phasor_powers(
    features: torch.Tensor, harmonics: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """cos(n theta), sin(n theta) for n = 1..N from the lift, shape (N, ...) each."""
    cosine, sine = features.chunk(2, -1)
    first = (cosine, sine)
    powers = [first]
    for _ in range(1, harmonics):
        powers.append(complex_product(*powers[-1], *first))
    return torch.stack([c for c, _ in powers]), torch.stack([s for _, s in powers])


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
