"""Models whose layers couple phases: what Kuramoto attention and FSN share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, cast

import torch
from torch import nn

from oscc.models.base import Advance, Coefficients, LayerState
from oscc.models.config import ModelConfig
from oscc.models.flow_training import flow_increment
from oscc.models.host import Draws, FeedForward, PhaseMap, Score, bound_scale, lift

StateOf = Callable[[torch.Tensor, bool], LayerState]
"""Phases, and whether the attention weights are wanted -> state of a coupling step."""


def couple(config: ModelConfig, state: LayerState) -> torch.Tensor:
    """Phases after a coupling step, as trained: Euler, or the training flow.

    Args:
        config: The model's configuration; its `update` is used.
        state: Fields and gain of the step.

    Returns:
        Unwrapped phases [rad], shape (B, T, k).
    """
    if config.update == "euler":
        return state.theta + state.gain * state.a.sum(0)
    return state.theta + flow_increment(state.a, state.b, state.gain)


class PhaseLayer(nn.Module, ABC):
    """One layer: score, coupling through clamped fields, feed-forward.

        a = sum_n Im(conj(z)^n C_n),  v = value(lift theta),  g = bound(v a) v
        euler: theta <- theta + g a       flow: theta <- phi(1)
        theta <- theta + bounded(feed_forward(theta))

    A family adds the fields C_n, from explicit weights in `fields` and from queries and
    keys in `fused_fields`, and their coefficients.
    """

    feeds_forward = True  # a family may put something else in the place

    def __init__(self, config: ModelConfig, draws: Draws) -> None:
        super().__init__()
        self.config = config
        self.score = Score(config, draws)
        self.value = PhaseMap(
            nn.Parameter(torch.zeros(config.k, 2 * config.k)), config.value_gain
        )
        if self.feeds_forward and config.feed_forward != "none":
            self.feed_forward = FeedForward(config, draws)

    @abstractmethod
    def fields(
        self, weights: torch.Tensor, theta: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Im and Re of conj(z)^n C_n, shape (N, B, T, k) each.

        Args:
            weights: Attention, shape (B, H, T, S): the last T of S tokens read.
            theta: Phases of the S tokens, shape (B, S, k).
        """

    @abstractmethod
    def fused_fields(
        self, query: torch.Tensor, key: torch.Tensor, features: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As `fields`, without the matrix of the weights.

        Args:
            query: Scaled queries, shape (B, H, T, 2d).
            key: Keys, shape (B, H, T, 2d).
            features: Lift of the phases, shape (B, T, 2k).
        """

    @abstractmethod
    def coefficients(self) -> Coefficients:
        """Pair coefficients of the coupling."""

    def stages(self) -> Sequence[StateOf]:
        """Coupling steps of the layer in the order they run."""
        return (self.state,)

    def state(self, theta: torch.Tensor, weighted: bool = True) -> LayerState:
        """Attention, fields and gain of the coupling step.

        Args:
            theta: Unwrapped phases, shape (B, T, k).
            weighted: Whether the attention weights are wanted; without them the
                step is faster, and needs memory that grows with T alone.
        """
        features = lift(theta)
        if weighted:
            weights = self.score(theta, features)
            fields = self.fields(weights, theta)
        else:
            weights = theta.new_empty(0)
            projections = self.score.projections(theta, features)
            fields = self.fused_fields(*projections, features)
        value = self.value(features)
        return self.gained(LayerState(theta, weights, *fields, value))

    def gained(self, state: LayerState) -> LayerState:
        """The state with the bound added to its gain, which holds the value gate."""
        bound, width = self.config.bound, self.config.bound_c
        scale = bound_scale(state.gain * state.a.sum(0), bound, width)
        return state._replace(gain=state.gain * scale)

    def couple(self, state: LayerState) -> torch.Tensor:
        """Phases after the coupling step, as trained: Euler, or the training flow."""
        return couple(self.config, state)

    def after(self, theta: torch.Tensor) -> torch.Tensor:
        """Feed-forward and its bound, added to the phases."""
        if not self.feeds_forward or self.config.feed_forward == "none":
            return theta
        y: torch.Tensor = self.feed_forward(theta)
        return theta + y * bound_scale(y, self.config.bound, self.config.bound_c)


class PhaseModel(nn.Module):
    """Embedding of symbols as angles, phase layers, read-out by alignment.

        logit_v = beta / sqrt(k) sum_j cos(theta_j - prototype_vj)

    Source: Nunley, arXiv 2606.11585 (scale of the read-out inferred).
    """

    layer_type: ClassVar[type[PhaseLayer]]

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
            advance: Gives the phases after a coupling step in the place of the
                layer's own step.
        """
        number = 0
        for layer in self.coupling_layers():
            for state_of in layer.stages():
                state = state_of(theta, advance is not None)
                if advance is None:
                    theta = couple(self.config, state)
                else:
                    theta = advance(number, state)
                number += 1
            theta = layer.after(theta)
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
