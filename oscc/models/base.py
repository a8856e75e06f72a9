"""Families of models: their registry and what each must offer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, Protocol

from oscc.checks import require_choice

if TYPE_CHECKING:
    import torch

    from oscc.models.config import ModelConfig

FAMILIES: dict[str, str] = {
    "kuramoto": "oscc.models.kuramoto:KuramotoModel",
    "fsn": "oscc.models.fsn:FsnModel",
    "fsn-no-phase": "oscc.models.fsn:FsnModel",
    "fsn-mf": "oscc.models.fsn_mf:FsnMfModel",
    "ssa": "oscc.models.ssa:SsaModel",
    "transformer": "oscc.models.transformer:TransformerModel",
}


class LayerState(NamedTuple):
    """What one coupling step needs, for a batch.

    `theta` (B,T,k) unwrapped phases; `weights` (B,H,T,T) attention, empty where it
    was not asked for and for the coupling to modes; `a`, `b` (N,B,T,k), imaginary and
    real part of conj(z)^n C_n; `gain` (B,T,k), value gate times bound.
    """

    theta: torch.Tensor
    weights: torch.Tensor
    a: torch.Tensor
    b: torch.Tensor
    gain: torch.Tensor


Advance = Callable[[int, LayerState], "torch.Tensor"]
"""Index of the coupling step and its state -> phases after it, (B,T,k).

The index counts coupling steps: one a layer, two in FSN-MF.
"""


class Coefficients(NamedTuple):
    """Pair coefficients of one layer: (N,k) each, the successor's may be None."""

    harmonics: tuple[int, ...]
    present_gamma: torch.Tensor
    present_alpha: torch.Tensor
    successor_gamma: torch.Tensor | None
    successor_alpha: torch.Tensor | None


class ModeCoefficients(NamedTuple):
    """Coupling to collective modes: M modes, k coordinates.

    `orders` (M): harmonic of each mode; `into` (M,k) complex, k^-1/2 c, with which a
    token's phasors form its modes; `out` (k,M) complex, with which the modes pull;
    `pin` (2,k) complex, fixed fields of harmonics 1 and 2.
    """

    orders: tuple[int, ...]
    into: torch.Tensor
    out: torch.Tensor
    pin: torch.Tensor


class Layer(Protocol):
    """One layer: what couples, and what the host does before and after."""

    def stages(self) -> Sequence[Callable[[torch.Tensor, bool], LayerState]]:
        """Coupling steps of the layer in the order they run."""

    def state(self, theta: torch.Tensor) -> LayerState:
        """Attention, fields and gain of the coupling step."""

    def after(self, theta: torch.Tensor) -> torch.Tensor:
        """Host operations that follow the coupling step."""

    def coefficients(self) -> Coefficients:
        """Pair coefficients of the coupling."""


class Model(Protocol):
    """A causal next-symbol model whose layers couple phases."""

    config: ModelConfig

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        """Phases (B,T,k) of the tokens (B,T)."""

    def coupling_layers(self) -> Sequence[Layer]:
        """Layers in the order they run."""

    def run(self, theta: torch.Tensor, advance: Advance | None = None) -> torch.Tensor:
        """Phases after all layers; `advance` replaces the coupling steps."""

    def read_out(self, theta: torch.Tensor) -> torch.Tensor:
        """Logits (B,T,V)."""


def build_model(config: ModelConfig, seed: int = 0) -> torch.nn.Module:
    """Model of a configuration with its start values drawn from the seed.

    Raises:
        RequestError: the family is not known.

    Example:
        >>> from oscc.models.config import ModelConfig
        >>> model = build_model(ModelConfig("kuramoto", k=16, layers=1, hidden=32))
        >>> sum(p.numel() for p in model.parameters())
        6277
    """
    require_choice("family", config.family, tuple(FAMILIES))
    module, _, name = FAMILIES[config.family].partition(":")
    model: torch.nn.Module = getattr(import_module(module), name)(config, seed)
    return model
