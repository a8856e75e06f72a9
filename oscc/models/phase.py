"""Models whose layers couple phases: what Kuramoto attention and FSN share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import nn

from oscc.models.base import Advance, Coefficients, LayerState
from oscc.models.config import ModelConfig
from oscc.models.flow_training import flow_increment
from oscc.models.host import Draws, FeedForward, PhaseMap, Score, bound_scale, lift


class PhaseLayer(nn.Module):
    """One layer: score, coupling through clamped fields, feed-forward.

        a = sum_n Im(conj(z)^n C_n),  v = value(lift theta),  g = bound(v a) v
        euler: theta <- theta + g a       flow: theta <- phi(1)
        theta <- theta + bounded(feed_forward(theta))

    A family adds the fields C_n in `fields` and their coefficients.
    """

    def __init__(self, config: ModelConfig, draws: Draws) -> None:
        super().__init__()
        self.config = config
        self.score = Score(config, draws)
        self.value = PhaseMap(
            nn.Parameter(torch.zeros(config.k, 2 * config.k)), config.value_gain
        )
        self.feed_forward = FeedForward(config, draws)

    def fields(
        self, weights: torch.Tensor, theta: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Im and Re of conj(z)^n C_n, shape (N, B, T, k) each."""
        raise NotImplementedError

    def coefficients(self) -> Coefficients:
        """Pair coefficients of the coupling."""
        raise NotImplementedError

    def state(self, theta: torch.Tensor) -> LayerState:
        """Attention, fields and gain of the coupling step.

        Args:
            theta: Unwrapped phases, shape (B, T, k).
        """
        features = lift(theta)
        weights = self.score(theta, features)
        a, b = self.fields(weights, theta)
        value = self.value(features)
        scale = bound_scale(value * a.sum(0), self.config.bound, self.config.bound_c)
        return LayerState(theta, weights, a, b, value * scale)

    def couple(self, state: LayerState) -> torch.Tensor:
        """Phases after the coupling step, as trained: Euler, or the training flow."""
        if self.config.update == "euler":
            return state.theta + state.gain * state.a.sum(0)
        return state.theta + flow_increment(state.a, state.b, state.gain)

    def after(self, theta: torch.Tensor) -> torch.Tensor:
        """Feed-forward and its bound, added to the phases."""
        y: torch.Tensor = self.feed_forward(theta)
        return theta + y * bound_scale(y, self.config.bound, self.config.bound_c)


class PhaseModel(nn.Module):
    """Embedding of symbols as angles, phase layers, read-out by alignment.

        logit_v = beta / sqrt(k) sum_j cos(theta_j - prototype_vj)

    Source: Nunley, arXiv 2606.11585 (scale of the read-out inferred).
    """

    layer_type: type[PhaseLayer] = PhaseLayer

    def __init__(self, config: ModelConfig, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        draws, shape = Draws(seed, ""), (config.symbols, config.k)
        if config.embedding == "uniform":
            self.embedding = draws.angles("embedding", shape)
        else:
            self.embedding = draws.normal("embedding", shape, config.embedding_std)
        self.prototypes = draws.angles("prototypes", shape)
        self.beta = nn.Parameter(torch.tensor(config.beta))
        self.layers = nn.ModuleList(
            self.layer_type(config, Draws(seed, f"layers.{i}."))
            for i in range(config.layers)
        )

    def coupling_layers(self) -> Sequence[PhaseLayer]:
        """Layers in the order they run."""
        return [cast("PhaseLayer", layer) for layer in self.layers]

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        """Phases of the tokens, shape (B, T) -> (B, T, k)."""
        return self.embedding[tokens]

    def run(self, theta: torch.Tensor, advance: Advance | None = None) -> torch.Tensor:
        """Phases after all layers.

        Args:
            theta: Phases at the input, shape (B, T, k).
            advance: Gives the phases after a layer's coupling step in the place of
                the layer's own step.
        """
        for index, layer in enumerate(self.coupling_layers()):
            state = layer.state(theta)
            coupled = layer.couple(state) if advance is None else advance(index, state)
            theta = layer.after(coupled)
        return theta

    def read_out(self, theta: torch.Tensor) -> torch.Tensor:
        """Logits, shape (B, T, k) -> (B, T, V)."""
        scale = self.beta / math.sqrt(self.config.k)
        return scale * lift(theta) @ lift(self.prototypes).T

    def forward(
        self, tokens: torch.Tensor, advance: Advance | None = None
    ) -> torch.Tensor:
        """Logits of the next symbol, shape (B, T) -> (B, T, V)."""
        return self.read_out(self.run(self.embed(tokens), advance))
