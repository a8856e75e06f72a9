"""What hardware does to a coupling step, injected while a model is trained or judged.

Phase noise is added to the phases that come out; a gain error multiplies the gain of
every target (a dwell or a coupler that is a little off); quantised weights replace the
attention, and gradients pass the rounding as if it were not there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from oscc.errors import RequestError
from oscc.models.base import Advance, LayerState
from oscc.models.phase import PhaseModel, couple

MOST_BITS = 24


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Sizes of the disturbances; zero is none.

    Args:
        phase_noise_rad: Standard deviation of the phase error after each coupling
            step, independent by target [rad].
        gain_error: Relative standard deviation of the gain, independent by target.
        weight_bits: Bits of the attention weights, levels evenly over 0 to 1, at most
            24: training computes in float32, whose significand has 24.

    Raises:
        RequestError: a size is negative or not finite, or there are more bits.
    """

    phase_noise_rad: float = 0.0
    gain_error: float = 0.0
    weight_bits: int = 0

    def __post_init__(self) -> None:
        for name in ("phase_noise_rad", "gain_error"):
            if not 0 <= getattr(self, name) < math.inf:
                raise RequestError(
                    f"Argument `{name}` must be 0 or more, but is "
                    f"{getattr(self, name)}."
                )
        if not 0 <= self.weight_bits <= MOST_BITS:
            raise RequestError(
                f"Argument `weight_bits` must be 0 (off) or 1 to {MOST_BITS}, the bits "
                f"that a number of training (float32) holds, but is {self.weight_bits}."
            )

    @property
    def active(self) -> bool:
        """Whether anything is disturbed.

        Example:
            >>> Disturbance().active
            False
        """
        return bool(self.phase_noise_rad or self.gain_error or self.weight_bits)

    def advance(
        self, model: torch.nn.Module, rng: np.random.Generator
    ) -> Advance | None:
        """Coupling steps of the model with the disturbances drawn from the stream.

        Returns:
            What `forward` takes as `advance`; None where nothing is disturbed.

        Raises:
            RequestError: the model has no coupling steps to disturb.

        Example:
            >>> Disturbance().advance(torch.nn.Identity(), np.random.default_rng(0))
        """
        if not self.active:
            return None
        if not isinstance(model, PhaseModel):
            raise RequestError(
                "Phase noise, gain error and quantised weights disturb coupling steps; "
                "this family has none."
            )
        layers = [
            layer if index == 0 else None
            for layer in model.coupling_layers()
            for index in range(len(layer.stages()))
        ]

        def step(index: int, state: LayerState) -> torch.Tensor:
            layer = layers[index]
            if self.weight_bits and layer is not None:
                weights = quantised(state.weights, self.weight_bits)
                a, b = layer.fields(weights, state.theta)
                state = state._replace(weights=weights, a=a, b=b)
            if self.gain_error:
                scale = 1 + self.gain_error * _normal(rng, state.theta)
                state = state._replace(gain=state.gain * scale)
            theta = couple(model.config, state)
            if self.phase_noise_rad:
                theta = theta + self.phase_noise_rad * _normal(rng, theta)
            return theta

        return step


def quantised(weights: torch.Tensor, bits: int) -> torch.Tensor:
    """Weights on 2^bits levels from 0 to 1; the gradient is that of the identity.

    Args:
        weights: Values of 0 to 1, any shape.
        bits: Number of bits, 1 to 24.

    Example:
        >>> quantised(torch.tensor([0.0, 0.2, 0.9]), 1).tolist()
        [0.0, 0.0, 1.0]
    """
    top = 2**bits - 1
    error: torch.Tensor = (weights * top).round() / top - weights
    return weights + error.detach()


def _normal(rng: np.random.Generator, like: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(rng.standard_normal(tuple(like.shape))).to(like)
