"""Why a training run stopped: the weight, coupling step or gradient to blame."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import nn

from oscc.errors import UndecidedError
from oscc.models.base import Advance, LayerState
from oscc.models.config import ModelConfig
from oscc.models.phase import couple

MEND = "Lower the learning rate, or choose another bound."


class Diverged(UndecidedError):
    """A loss is not finite, or too many gradients were too large."""


def _coupled(config: ModelConfig, index: int, state: LayerState) -> torch.Tensor:
    return couple(config, state)


def first_not_finite(
    model: nn.Module,
    config: ModelConfig,
    forward: Callable[[Advance], torch.Tensor],
    advance: Advance | None,
) -> str:
    """Where a loss stopped being finite: weight, coupling step or logits, as words.

    Args:
        model: The model.
        config: Its configuration.
        forward: Runs the model on the text in question, with given coupling steps.
        advance: Coupling steps that were used in the place of the model's own.
    """
    for name, parameter in model.named_parameters():
        if not torch.isfinite(parameter).all():
            return f"for `{name}` holds such values"
    place: list[str] = []

    def watched(index: int, state: LayerState) -> torch.Tensor:
        after = (advance or partial(_coupled, config))(index, state)
        for name, value in (*zip(state._fields, state, strict=True), ("phi", after)):
            if not torch.isfinite(value).all():
                place.append(f"`{name}` of coupling step {index}")
        return after

    with torch.no_grad():
        forward(watched)
    return f"first {[*place, 'the logits'][0]}"


def largest_gradient(model: nn.Module) -> str:
    """Name of the parameter with the largest gradient, or the first not finite one."""
    name, largest = "", -1.0
    for key, parameter in model.named_parameters():
        if parameter.grad is not None:
            size = float(parameter.grad.norm())
            if not math.isfinite(size):
                return key
            if size > largest:
                name, largest = key, size
    return name
