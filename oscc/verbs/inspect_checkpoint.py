"""Look into a checkpoint: tensors, parts of its layers, coupling functions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from oscc.models.config import ModelConfig


def inspect_checkpoint(
    path: Path,
    key: str | None = None,
    model_config: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Configuration, tensors, parts of the layers and coupling functions.

    Args:
        path: Checkpoint file.
        key: Which mapping of a foreign file holds the weights.
        model_config: Model section of the configuration, for a foreign file.

    Returns:
        Content of the JSON answer. `layers` and `outside` list every part with where
        it runs (`oscillators`, `host`, `refused`) and its tensors; `refusal` says why
        a part is refused; `coupling` is what `coupling_layers` returns.

    Raises:
        RequestError: it cannot be read.
    """
    from oscc.checkpoint import load_checkpoint
    from oscc.lower.parts import refusal
    from oscc.verbs.coupling_function import coupling_layers

    loaded = load_checkpoint(path, key=key, model_config=model_config)
    state = loaded.model.state_dict()
    return {
        "format": "oscc.inspect/1",
        "kind": "checkpoint",
        "digest": loaded.digest,
        "family": loaded.config.family,
        "update": loaded.config.update,
        "can_be_lowered": not refusal(loaded.config),
        "refusal": refusal(loaded.config),
        **_parts(loaded.config, list(state)),
        "coupling": coupling_layers(loaded),
        "parameters": int(sum(tensor.numel() for tensor in state.values())),
        "tensors": {name: list(tensor.shape) for name, tensor in state.items()},
        "characters": loaded.vocabulary.characters,
        "symbols_are": loaded.vocabulary.unit,
        "notes": list(loaded.notes),
        "largest_tensor_value": {
            name: float(np.abs(tensor.double().numpy()).max())
            for name, tensor in state.items()
        },
    }


def _parts(config: ModelConfig, tensors: list[str]) -> dict[str, Any]:
    """Parts of every layer and of what is around them, each with its tensors."""
    from oscc.lower.parts import Part, layer_parts, outer_parts

    def entry(part: Part, inside: str = "") -> dict[str, Any]:
        own = [
            name
            for name in tensors
            if name.startswith(inside) and part.holds(name.removeprefix(inside))
        ]
        return {"part": part.name, "where": part.where, "tensors": own}

    stem = "layers" if any(name.startswith("layers.") for name in tensors) else "blocks"
    return {
        "layers": [
            {
                "layer": number,
                "parts": [entry(p, f"{stem}.{number}.") for p in layer_parts(config)],
            }
            for number in range(config.layers)
        ],
        "outside": [entry(part) for part in outer_parts(config)],
    }
