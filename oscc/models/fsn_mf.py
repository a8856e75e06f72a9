"""FSN-MF: FSN whose feed-forward is a coupling to collective modes of the token.

    Z_m   = k^-1/2 sum_j c_mj z_j^{n_m},   n_m = 1 for half of the modes, else 2
    C'_nj = pin_nj + sum_{m: n_m = n} d_jm f(|Z_m|) Z_m
    theta <- the step of fields C' with gain bound(a'), Euler or flow as the attention's

No multilayer perceptron is left, and the whole model is 2 pi periodic in every phase.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import nn

from oscc.models.base import LayerState, ModeCoefficients
from oscc.models.config import ModelConfig
from oscc.models.fsn import FsnLayer, complex_product, phasor_powers
from oscc.models.host import Draws, bound_scale, lift
from oscc.models.phase import PhaseModel, StateOf

ORDERS = (1, 2)


class FsnMfLayer(FsnLayer):
    """FSN coupling, then coupling to collective modes.

    Source: Nunley, arXiv 2606.18694 (mean-field coupling to learned collective modes;
    the equations are inferred).
    """

    feeds_forward = False

    def __init__(self, config: ModelConfig, draws: Draws) -> None:
        super().__init__(config, draws)
        modes, k = config.modes, config.k
        self.mode_in = draws.normal("modes.in", (2, modes, k), 1.0)
        std = 0.5 / math.sqrt(modes)
        self.mode_out = draws.normal("modes.out", (2, k, modes), std)
        self.pin = nn.Parameter(torch.zeros(2, len(ORDERS), k))

    def stages(self) -> Sequence[StateOf]:
        """Attention, then the modes."""
        return (self.state, self.mode_state)

    def modes(self, theta: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Re and Im of f(|Z_m|) Z_m for each order, shape (B, T, M / 2) each."""
        half, out = self.config.modes // 2, []
        scale = 1.0 / math.sqrt(self.config.k)
        powers = phasor_powers(lift(theta), len(ORDERS))
        for i, (cosine, sine) in enumerate(zip(*powers, strict=True)):
            re, im = self.mode_in[:, i * half : (i + 1) * half]
            real = (cosine @ re.T - sine @ im.T) * scale
            imag = (sine @ re.T + cosine @ im.T) * scale
            if self.config.mode_response == "square":
                size = real * real + imag * imag
                real, imag = real * size, imag * size
            out.append((real, imag))
        return out

    def mode_state(self, theta: torch.Tensor, weighted: bool = True) -> LayerState:
        """Fields of the modes and their gain; there are no attention weights.

        Args:
            theta: Unwrapped phases, shape (B, T, k).
            weighted: Of no effect.
        """
        half, a, b = self.config.modes // 2, [], []
        cosine, sine = phasor_powers(lift(theta), len(ORDERS))
        for i, (real, imag) in enumerate(self.modes(theta)):
            re, im = self.mode_out[:, :, i * half : (i + 1) * half]
            field_re = real @ re.T - imag @ im.T + self.pin[0, i]
            field_im = imag @ re.T + real @ im.T + self.pin[1, i]
            turned_re, turned_im = complex_product(
                field_re, field_im, cosine[i], -sine[i]
            )
            a.append(turned_im)
            b.append(turned_re)
        direction = torch.stack(a)
        scale = bound_scale(direction.sum(0), self.config.bound, self.config.bound_c)
        return LayerState(
            theta,
            theta.new_empty(0),
            direction,
            torch.stack(b),
            scale.expand_as(theta),
        )

    def mode_coefficients(self) -> ModeCoefficients:
        """Coefficients of both couplings of the modes, the scale of `into` in it."""
        half = self.config.modes // 2
        into, out, pin = (
            torch.complex(*part.detach().double().unbind())
            for part in (self.mode_in, self.mode_out, self.pin)
        )
        orders = tuple(n for n in ORDERS for _ in range(half))
        return ModeCoefficients(orders, into / math.sqrt(self.config.k), out, pin)


class FsnMfModel(PhaseModel):
    """FSN-MF model.

    Source: Nunley, arXiv 2606.18694; what it leaves open is in ModelConfig.
    """

    layer_type = FsnMfLayer
