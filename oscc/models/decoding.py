"""Decoding token by token: a step costs what one row of attention costs.

A layer needs of the past its source phases and the keys of its score. Positions enter
the score only through drift (t - u), so neither is touched again once it is written.
"""

from __future__ import annotations

import torch

from oscc.errors import RequestError
from oscc.models.base import Advance, LayerState
from oscc.models.host import lift
from oscc.models.phase import PhaseLayer, PhaseModel, couple


class LayerMemory:
    """Source phases (B, u, k) and keys (B, H, u, 2d) of the tokens read so far."""

    def __init__(self) -> None:
        self.theta: torch.Tensor | None = None
        self.key: torch.Tensor | None = None

    def add(
        self, theta: torch.Tensor, key: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Phases and keys with those of one more token."""
        if self.theta is not None and self.key is not None:
            theta = torch.cat([self.theta, theta], 1)
            key = torch.cat([self.key, key], 2)
        self.theta, self.key = theta, key
        return theta, key


class Decoder:
    """Logits of a phase model, one token at a time.

    Equal to the full forward up to rounding; the update is the one of training.

    Args:
        model: A model whose layers couple phases.
        advance: Gives the phases after a coupling step in the place of the layer's own
            step, as in `PhaseModel.run`.

    Raises:
        RequestError: the model has no phases.

    Example:
        >>> from oscc.models.base import build_model
        >>> from oscc.models.config import ModelConfig
        >>> model = build_model(ModelConfig("fsn", k=8, layers=1, heads=2, hidden=8))
        >>> Decoder(model).step(torch.tensor([3])).shape
        torch.Size([1, 98])
    """

    def __init__(self, model: torch.nn.Module, advance: Advance | None = None) -> None:
        if not isinstance(model, PhaseModel):
            raise RequestError(
                "Decoding token by token is for models whose layers couple phases."
            )
        self.model, self.position, self.advance = model, 0, advance
        self.memories = [LayerMemory() for _ in model.coupling_layers()]

    def step(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits after one more token of every row.

        Args:
            tokens: Symbol numbers, shape (B,).

        Returns:
            Logits of the next symbol, shape (B, V).

        Raises:
            RequestError: the model's context is full.
        """
        model = self.model
        if self.position >= model.config.context:
            raise RequestError(
                f"The model's context of {model.config.context} tokens is full."
            )
        with torch.no_grad():
            theta = model.embed(tokens[:, None])
            number = 0
            layers = zip(model.coupling_layers(), self.memories, strict=True)
            for layer, memory in layers:
                theta = self._step(number, self._state(layer, memory, theta))
                for mode_state in layer.stages()[1:]:
                    number += 1
                    theta = self._step(number, mode_state(theta, False))
                theta, number = layer.after(theta), number + 1
            self.position += 1
            return model.read_out(theta)[:, 0]

    def _step(self, number: int, state: LayerState) -> torch.Tensor:
        if self.advance is None:
            return couple(self.model.config, state)
        return self.advance(number, state)

    def _state(
        self, layer: PhaseLayer, memory: LayerMemory, theta: torch.Tensor
    ) -> LayerState:
        features = lift(theta)
        query, key = layer.score.projections(theta, features, self.position)
        sources, keys = memory.add(theta, key)
        weights = (query @ keys.transpose(-1, -2)).softmax(-1)
        fields = layer.fields(weights, sources)
        return layer.gained(LayerState(theta, weights, *fields, layer.value(features)))
