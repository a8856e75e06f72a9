"""Names and shapes of a model's tensors, without its memory or its random draws."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oscc.models.config import ModelConfig

_FIRST_LAYER = re.compile(r"^(layers|blocks)\.0\.")


def tensor_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Shape of every tensor of the model by name, in the order of its state dict.

    One layer is built on the device `meta`, where tensors have shapes alone; the
    others are the same.

    Args:
        config: Any configuration whose sizes torch can multiply.

    Example:
        >>> from oscc.models.config import ModelConfig
        >>> tensor_shapes(ModelConfig("fsn", k=8, layers=2))["layers.1.gamma"]
        (2, 2, 8)
    """
    import torch

    from oscc.models.base import build_model

    with torch.device("meta"):
        state = build_model(config.with_changes(layers=1)).state_dict()
    shapes = {name: tuple(tensor.shape) for name, tensor in state.items()}
    layer = {name: shape for name, shape in shapes.items() if _FIRST_LAYER.match(name)}
    out: dict[str, tuple[int, ...]] = {}
    for name, shape in shapes.items():
        if name not in layer:
            out[name] = shape
        elif name == next(iter(layer)):
            for number in range(config.layers):
                for inner, inner_shape in layer.items():
                    out[_FIRST_LAYER.sub(rf"\g<1>.{number}.", inner)] = inner_shape
    return out
