"""Offsets of a checkpoint: which shapes stand for which coordinates.

The rule, first that fits: the model's own shape; () or (1,) for all of them; (H,) for
the coordinates of each head. A vector of H numbers belongs to heads even where the
tokens are as many. An offset of shape (H, T, T) depends on the pair of tokens and has
no place in the model.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from oscc.tensor_values import Fault, Float32, Shape

if TYPE_CHECKING:
    from oscc.models.config import ModelConfig

_NAMES = re.compile(r"^layers\.\d+\.(alpha|score\.offset|score\.drift)$")


def is_offset(name: str) -> bool:
    """Whether a tensor holds angles of coordinates: frustration, query offset, drift.

    Example:
        >>> is_offset("layers.0.alpha"), is_offset("layers.0.gamma")
        (True, False)
    """
    return _NAMES.match(name) is not None


def spread_offset(
    name: str, array: Float32, wanted: Shape, heads: int
) -> tuple[Float32, str] | Fault:
    """An offset in the model's own shape, and a note if it was of another.

    Args:
        name: Of the tensor, for messages.
        array: As stored, [rad] (a drift in rad a token).
        wanted: The model's own shape, its last axis the k coordinates.
        heads: H, which divides k.

    Example:
        >>> found = spread_offset("layers.0.alpha", np.float32([1, 2]), (1, 4), 2)
        >>> found[0].tolist()
        [[1.0, 1.0, 2.0, 2.0]]
    """
    shape = tuple(array.shape)
    if shape == wanted:
        return array, ""
    if shape in ((), (1,)):
        whole = np.full(wanted, array.reshape(()), np.float32)
        return whole, f"offset `{name}` {shape} stands for all of {wanted}"
    if shape == (heads,):
        row = np.repeat(array, wanted[-1] // heads)
        note = f"offset `{name}` {shape} stands for the coordinates of each head, "
        whole = np.array(np.broadcast_to(row, wanted), np.float32, order="C")
        return whole, f"{note}{wanted}"
    mend = f"Store it as {wanted}, as () for all, or as ({heads},), one for each head."
    if len(shape) in (2, 3) and shape[-1] == shape[-2] and shape[-1] > 1:
        detail = f"offset `{name}` {shape} depends on the pair of tokens, which has no "
        return Fault(name, shape, f"{detail}place in the model", mend)
    return Fault(
        name, shape, f"tensor `{name}` {shape}: shape should be {wanted}", mend
    )


def frozen_fault(name: str, array: Float32, config: ModelConfig) -> Fault | None:
    """Fault of a frustration that is not zero where the model's is frozen at zero.

    Args:
        name: Of the tensor.
        array: As stored, [rad].
        config: Of the model; its `offsets` say whether they are zero.
    """
    if config.offsets != "zero" or not name.endswith(".alpha"):
        return None
    places = np.argwhere(np.isfinite(array) & (array != 0))
    if not len(places):
        return None
    first = tuple(int(i) for i in places[0])
    more = f" and {len(places) - 1} more that are not zero" if len(places) > 1 else ""
    detail = f"tensor `{name}` holds {array[first]:.4g} at {first}{more}, but "
    if config.family == "fsn-no-phase":
        detail += "the offsets of family fsn-no-phase are zero"
        mend = "Save the model as family fsn, which has offsets."
    else:
        detail += f"with `offsets: zero` those of family {config.family} are zero"
        mend = "Save the model with `offsets: learned`."
    return Fault(name, tuple(array.shape), detail, mend)
