"""Values of one stored tensor: cast to float32, or what is wrong with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from oscc.checks import not_finite, places_of
from oscc.state_dicts import Unread
from oscc.tensors import CAST

Float32 = npt.NDArray[np.float32]
Shape = tuple[int, ...]

DIVERGED = (
    "A model that has diverged can't be lowered; train again or take an earlier "
    "checkpoint."
)
_HIDDEN = -1e4  # added to a score: nothing is left of it after the softmax
_LEAVE_OUT = "Leave it out of the state_dict that you save."


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one tensor, and how to mend it; no shape: not known."""

    tensor: str
    shape: Shape | None
    detail: str
    mend: str

    def __str__(self) -> str:
        return f"{self.detail}. {self.mend}".rstrip()


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A tensor in float32 (None where it cannot be), and what was found.

    `kind` is the element type that was stored; `mask` says that the values are those
    of a causal mask.
    """

    array: Float32 | None
    kind: str = "float32"
    faults: tuple[Fault, ...] = ()
    mask: bool = False


def value_of(name: str, value: Any, stored: str = "") -> Value:
    """Float32 copy of a tensor, C-ordered and with its own memory.

    Args:
        name: Of the tensor, for messages.
        value: Array of numpy, tensor of torch, or anything else.
        stored: Element type that the file states, such as `BF16`.
    """
    import torch

    if isinstance(value, np.ndarray):
        value = torch.from_numpy(np.array(value, order="C"))
    if fault := _unusable(name, value):
        return Value(None, faults=(fault,))
    try:
        return _number_value(name, value.detach(), stored)
    # torch lists nowhere which element types it can cast: it says so when asked to.
    # That alone is a fault of the file, anything else is ours and goes on.
    except (RuntimeError, NotImplementedError) as error:
        if "not implemented for" not in str(error):
            raise
        return Value(None, faults=(_unread(name, _word(value.dtype), value.shape),))


def _number_value(name: str, value: Any, stored: str) -> Value:
    """Value of a plain dense tensor."""
    import torch

    # a tensor with the negative bit has its sign outside its memory
    array = np.array(
        value.to(torch.float32).resolve_neg().numpy(), np.float32, order="C", copy=True
    )
    if is_causal_mask(value):
        return Value(array, mask=True)
    if not value.dtype.is_floating_point:
        detail = f"tensor `{name}` {tuple(value.shape)} holds {_word(value.dtype)}"
        detail += ", but weights are floating-point numbers"
        mend = f"{_LEAVE_OUT[:-1]}, or cast it to float32 if it is a weight."
        return Value(None, faults=(Fault(name, tuple(value.shape), detail, mend),))
    kind = "bfloat16" if stored == "BF16" else _word(value.dtype)
    overflown = np.zeros(array.shape, np.bool_)
    if value.dtype == torch.float64:  # the only wider one
        overflown = np.isfinite(value.resolve_neg().numpy()) & np.isinf(array)
    return Value(array, kind, tuple(_value_faults(name, array, overflown)))


def _word(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


def _unusable(name: str, value: Any) -> Fault | None:
    """Fault of something that has no plain array of numbers."""
    import torch

    if isinstance(value, Unread):
        return _unread(name, value.kind, value.shape)
    if not isinstance(value, torch.Tensor):
        word = type(value).__name__
        detail = f"`{name}` is {_article(word)} {word}, not a tensor"
        return Fault(name, None, detail, _LEAVE_OUT)
    shape = () if value.is_nested else tuple(value.shape)
    what, mend = "", ""
    if value.device.type == "meta":
        what = "has no values (it is on the device `meta`)"
        mend = "Save the model once its weights are loaded."
    elif value.is_nested or value.layout != torch.strided:
        what = f"is stored as {_word(value.layout)}"
        what += " and nested" if value.is_nested else ""
        mend = "Save it dense, with tensor.to_dense()."
    elif value.is_quantized:
        what, mend = f"holds {_word(value.dtype)}", "Save it with tensor.dequantize()."
        what += ", but weights are floating-point numbers"
    elif value.is_complex():
        what = f"holds {_word(value.dtype)}, but weights are real numbers"
        mend = _LEAVE_OUT
    return Fault(name, shape, f"tensor `{name}` {shape} {what}", mend) if what else None


def _unread(name: str, kind: str, shape: Shape) -> Fault:
    detail = f"tensor `{name}` {tuple(shape)} holds {kind}, an element type that is "
    return Fault(name, tuple(shape), f"{detail}not read", CAST)


def _article(word: str) -> str:
    return "an" if word[:1] in "aeiou" else "a"


def _value_faults(
    name: str, array: Float32, overflown: npt.NDArray[np.bool_]
) -> list[Fault]:
    """Faults of values that are not finite, and of those too large for float32."""
    out = []
    shape = tuple(array.shape)
    if text := not_finite(np.where(overflown, np.float32(0), array)):
        out.append(Fault(name, shape, f"tensor `{name}` holds {text}", DIVERGED))
    if overflown.any():
        count = int(overflown.sum())
        detail = f"tensor `{name}` holds {count} value{'s' if count > 1 else ''} too "
        detail += f"large for float32, first at {places_of(overflown)}"
        mend = "Weights are used in float32, which ends at 3.4e38: scale them down."
        out.append(Fault(name, shape, detail, mend))
    return out


def is_causal_mask(value: Any) -> bool:
    """Whether a tensor of torch is a causal mask that a model kept as a buffer.

    Of shape (T, T), (1, T, T) or (1, 1, T, T) with T >= 2: ones on and below the
    diagonal and zeros above; or the opposite, ones where nothing is read; or zeros on
    and below it and -inf (or below -1e4) above, to be added to scores.

    Example:
        >>> import torch
        >>> is_causal_mask(torch.ones(3, 3).tril()), is_causal_mask(torch.ones(3, 3))
        (True, False)
    """
    import torch

    shape = tuple(value.shape)
    if not 2 <= len(shape) <= 4 or set(shape[:-2]) - {1}:
        return False
    if shape[-1] != shape[-2] or shape[-1] < 2:
        return False
    square = value.detach().reshape(shape[-2:]).to(torch.float32)
    below = torch.ones(shape[-2:], dtype=torch.bool).tril()
    read, hidden = square[below], square[~below]
    ones_below = (read == 1).all() and (hidden == 0).all()
    zeros_below = (read == 0).all()
    return bool(
        ones_below
        or (zeros_below and ((hidden == 1).all() or (hidden < _HIDDEN).all()))
    )
