"""What the score and the read-out of a model multiply, as phasors of oscillators.

The score of a head is the real part of query times conjugate key, whose sizes are the
gates and whose angles are the phases with their drift; a logit is the same of the last
phases and a prototype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from oscc.arrays import ComplexArray, FloatArray, frozen

if TYPE_CHECKING:
    import torch

    from oscc.models.base import Layer, LayerState, Model

Scoring = Callable[[int, ComplexArray, ComplexArray], FloatArray]
"""Layer index, queries and keys [T,K] of one window -> scores [H,T,T], [nat]; later
keys are masked afterwards. With index -1 the last phases and the prototypes, and logits
[1,T,V] come back."""


def scored(scoring: Scoring, number: int) -> Callable[..., torch.Tensor]:
    """The score of one layer by a callable, window by window."""
    import torch

    def scores(query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        rows = [
            scoring(number, phasors(q), phasors(k))
            for q, k in zip(query, key, strict=True)
        ]
        return torch.from_numpy(np.stack(rows))

    return scores


def put_in(model: Any, scoring: Scoring | None) -> None:
    """Have a callable form the scores of every layer; None leaves them as they are."""
    for number, layer in enumerate(model.coupling_layers() if scoring else ()):
        layer.score.correlate = scored(cast("Scoring", scoring), number)


def phasors(lifted: torch.Tensor) -> ComplexArray:
    """Complex phasors (T, K) of lifted pairs by head, (H, T, 2d)."""
    pairs = (
        lifted.detach()
        .double()
        .numpy()
        .reshape(*lifted.shape[:2], -1, 2)
        .transpose(1, 0, 2, 3)
    )
    both = pairs.reshape(pairs.shape[0], -1, 2)
    return np.asarray(both[..., 0] + 1j * both[..., 1])


def read_out(model: Model, theta: FloatArray) -> tuple[ComplexArray, ComplexArray]:
    """Phasors of the last phases, and prototypes with the scale of the logits."""
    own = cast("Any", model)
    scale = float(own.beta.detach().double()) / np.sqrt(model.config.k)
    prototypes = own.prototypes.detach().double().numpy()
    return (
        frozen(np.exp(1j * theta), np.complex128),
        frozen(scale * np.exp(1j * prototypes), np.complex128),
    )


def projections(layer: Layer, state: LayerState) -> tuple[Any, Any]:
    """Queries and keys of a layer's score, (B, H, T, 2d) each."""
    from oscc.models.host import lift

    score = cast("Any", layer).score
    found: tuple[Any, Any] = score.projections(state.theta, lift(state.theta))
    return found
