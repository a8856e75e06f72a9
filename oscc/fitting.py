"""A file's tensors put into the places of a model's, or what keeps them out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oscc.misfits import misfits, vector_faults
from oscc.offsets import frozen_fault, is_offset, spread_offset
from oscc.tensor_values import Fault, Float32, Shape
from oscc.weights import Weights

if TYPE_CHECKING:
    from oscc.models.config import ModelConfig

_LAYER = re.compile(r"^(?:layers|blocks)\.(\d+)\.")
_SIZES = ("symbols", "k", "heads", "hidden", "harmonics", "modes")
_PLAUSIBLE = 10_000  # a size up to here may be one that the family does not use
_FEW_LAYERS = 16  # their tensors are named one by one, however few the file has


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """Tensors in the model's shapes as far as they fit.

    `faults` are what no model has (vectors, offsets by pairs, sizes beyond the file);
    `misfits` are missing, unknown and misshapen tensors. `wanted` is empty where the
    sizes alone tell that nothing fits.
    """

    arrays: Mapping[str, Float32]
    wanted: Mapping[str, Shape]
    notes: tuple[str, ...]
    faults: tuple[Fault, ...]
    misfits: tuple[Fault, ...]


def fit(config: ModelConfig, weights: Weights) -> Fitted:
    """Compare a file's tensors with those of a model, without building the model.

    Args:
        config: Of the model.
        weights: Of the file; tensors with faults are passed over here.
    """
    from oscc.models.shapes import tensor_shapes

    beyond = tuple(_beyond_the_file(config, weights))
    if beyond:
        return Fitted({}, {}, (), beyond, ())
    wanted = tensor_shapes(config)
    faults, notes = list(_layer_faults(config, weights)), []
    arrays = dict(weights.arrays)
    for name, mask in weights.masks.items():
        if name in wanted:
            arrays[name] = mask
        elif config.family == "ssa" and config.mask == "none":
            faults.append(_causal(name, mask))
        else:
            notes.append(
                f"causal mask `{name}` {tuple(mask.shape)} ignored: the model makes "
                "its own for every length"
            )
    for name in [name for name in arrays if name in wanted and is_offset(name)]:
        if fault := frozen_fault(name, arrays[name], config):
            faults.append(fault)
        found = spread_offset(name, arrays[name], wanted[name], config.heads)
        if isinstance(found, Fault):
            faults.append(found)
        else:
            arrays[name], note = found
            notes += [note] if note else []
    faults += vector_faults(
        {name: a for name, a in arrays.items() if not is_offset(name)}, wanted
    )
    unusable = [f for f in weights.faults if f.tensor not in weights.arrays]
    settled = {fault.tensor for fault in (*unusable, *faults)}
    shapes = _shapes_left(arrays, settled, wanted)
    found_misfits = tuple(misfits(wanted, shapes))
    return Fitted(arrays, wanted, tuple(notes), tuple(faults), found_misfits)


def _shapes_left(
    arrays: Mapping[str, Float32], settled: set[str], wanted: Mapping[str, Shape]
) -> dict[str, Shape]:
    """Shapes by name, without the tensors whose fault has been named already."""
    shapes = {n: tuple(array.shape) for n, array in arrays.items() if n not in settled}
    return shapes | {name: wanted[name] for name in wanted if name in settled}


def _beyond_the_file(config: ModelConfig, weights: Weights) -> Iterator[Fault]:
    """Sizes that no tensor of the file can have, told before anything is built."""
    names = {*weights.arrays, *(fault.tensor for fault in weights.faults)}
    mend = "Correct the sizes, or take the checkpoint that fits."
    if config.layers > max(len(names), _FEW_LAYERS):
        detail = f"the model has {config.layers} layers, but the file holds "
        yield Fault("", None, detail + _held(weights), mend)
    numbers = sum(array.size for array in weights.arrays.values())
    for size in _SIZES:
        value = getattr(config, size)
        if value > max(numbers, _PLAUSIBLE):
            detail = f"the model has {size} = {value}, but all tensors of the file "
            yield Fault("", None, f"{detail}hold {numbers} numbers", mend)


def _layer_faults(config: ModelConfig, weights: Weights) -> Iterator[Fault]:
    found = _layers(weights)
    if found and found != config.layers:
        detail = f"the model has {config.layers} layers, but the file holds tensors "
        mend = "Correct `layers`, or take the checkpoint that fits."
        yield Fault("", None, f"{detail}of {found}", mend)


def _held(weights: Weights) -> str:
    tensors, layers = len(weights.arrays), _layers(weights)
    words = f"{tensors} tensor{'' if tensors == 1 else 's'}"
    return f"{words}, of {layers} layer{'' if layers == 1 else 's'}"


def _layers(weights: Weights) -> int:
    names = (_LAYER.match(name) for name in weights.arrays)
    return len({match[1] for match in names if match})


def _causal(name: str, mask: Float32) -> Fault:
    shape = tuple(mask.shape)
    detail = f"tensor `{name}` {shape} is a causal mask, but the model has `mask: none`"
    return Fault(
        name, shape, detail, "Set `mask: causal`, or leave it out of the file."
    )
