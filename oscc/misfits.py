"""Tensors of a file that are not those of the model: which, and what is near."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from difflib import SequenceMatcher

import numpy as np

from oscc.tensor_values import Fault, Float32, Shape

# Likeness of the parts of two names that differ, 0 to 1, from which on one is offered
# in the place of the other; a tensor of another shape must be nearer.
_NEAR, _NEAR_OF_ANOTHER_SHAPE = 0.55, 0.7
_UNIT = 1e-2  # of a length 1: bfloat16 keeps a part to 2^-9
_PARTS = range(3, 17)  # of vectors; longer ones are no oscillators
_PARTS_OF_ROWS = range(3, 9)  # of the rows of a matrix, which are often normalised

_RENAME = "Rename it in the state_dict that you save."
_SIZES = "Correct the sizes of the configuration, or take the checkpoint that fits."
_LEAVE_OUT = "Leave it out of the state_dict that you save."


def misfits(wanted: Mapping[str, Shape], found: Mapping[str, Shape]) -> Iterator[Fault]:
    """Every missing, unknown or misshapen tensor, with the nearest name if it is near.

    Args:
        wanted: Shapes of the model's tensors by name.
        found: Shapes of the file's tensors by name.

    Example:
        >>> (fault,) = misfits({"beta": ()}, {"bta": ()})
        >>> fault.detail
        'tensor `bta` (): unknown; nearest `beta`, which is missing'
    """
    pairs = near_pairs(wanted, found)
    for name, near in pairs.items():
        misfit = wanted[near] != found[name]
        beside = f"; nearest `{near}`, which is missing"
        beside += f" and has shape {wanted[near]}" if misfit else ""
        yield _unknown(name, found[name], beside, _RENAME)
    unknown = [name for name in found if name not in wanted and name not in pairs]
    for name in unknown:
        there = [other for other in wanted if other in found]
        near = _nearest(name, found[name], {n: wanted[n] for n in there})
        beside = f"; nearest `{near}`, which is there" if near else ""
        yield _unknown(name, found[name], beside, _LEAVE_OUT)
    paired = set(pairs.values())
    missing = [name for name in wanted if name not in found and name not in paired]
    for name in missing:
        shape, mend = wanted[name], _SIZES
        alike = [other for other in unknown if found[other] == shape]
        beside = ""
        if len(alike) == 1 and [wanted[n] for n in missing].count(shape) == 1:
            beside = f"; `{alike[0]}`, which is unknown, alone has its shape"
            mend = f"Rename `{alike[0]}` if it is the same."
        yield Fault(name, shape, f"tensor `{name}` {shape}: missing{beside}", mend)
    for name, shape in wanted.items():
        if found.get(name, shape) != shape:
            detail = f"tensor `{name}` {found[name]}: shape should be {shape}"
            yield Fault(name, found[name], detail, _SIZES)


def _unknown(name: str, shape: Shape, beside: str, mend: str) -> Fault:
    return Fault(name, shape, f"tensor `{name}` {shape}: unknown{beside}", mend)


def near_pairs(
    wanted: Mapping[str, Shape], found: Mapping[str, Shape]
) -> dict[str, str]:
    """Unknown tensors and the missing one that each is near to, the nearest first.

    Example:
        >>> near_pairs({"gamma": (2,)}, {"gama": (2,), "x": (2,)})
        {'gama': 'gamma'}
    """
    missing = [name for name in wanted if name not in found]
    unknown = [name for name in found if name not in wanted]
    scores = [
        (_likeness(name, found[name], near, wanted[near]), name, near)
        for name in unknown
        for near in missing
    ]
    out: dict[str, str] = {}
    for score, name, near in sorted(scores, key=lambda entry: -entry[0]):
        if score > 0 and name not in out and near not in out.values():
            out[name] = near
    return {name: out[name] for name in unknown if name in out}


def _nearest(name: str, shape: Shape, others: Mapping[str, Shape]) -> str:
    scores = [(_likeness(name, shape, n, s), n) for n, s in others.items()]
    best = max(scores, default=(0.0, ""), key=lambda entry: entry[0])
    return best[1] if best[0] > 0 else ""


def _likeness(name: str, shape: Shape, other: str, other_shape: Shape) -> float:
    """Likeness of the parts in which two names differ; 0 where they are not near.

    Parts that both begin or end with say nothing: `layers.0.` is in all of them.
    """
    left, right = name.split("."), other.split(".")
    if [x for x in left if x.isdigit()] != [x for x in right if x.isdigit()]:
        return 0.0  # of another layer
    while left and right and left[0] == right[0]:
        left, right = left[1:], right[1:]
    while left and right and left[-1] == right[-1]:
        left, right = left[:-1], right[:-1]
    alike = shape == other_shape
    if not left or not right:  # one is the other, further in
        return 1.0 if alike else 0.0
    ratio = SequenceMatcher(None, ".".join(left), ".".join(right)).ratio()
    limit = _NEAR if alike else _NEAR_OF_ANOTHER_SHAPE
    return ratio + alike if ratio >= limit else 0.0


def vector_faults(
    arrays: Mapping[str, Float32], wanted: Mapping[str, Shape]
) -> Iterator[Fault]:
    """Oscillators that are unit vectors of n parts, where a phase needs n = 2.

    Among the tensors that do not fit the model: those whose last axis of n = 3 to 16
    parts has length 1 throughout, and with them couplings of shape (…, n, n). Vectors
    of 2 parts are refused too, as the model takes their angles.

    Args:
        arrays: Of the file, by name.
        wanted: Shapes of the model's tensors by name.
    """
    others = {n: a for n, a in arrays.items() if wanted.get(n) != tuple(a.shape)}
    parts = {name: _vector_parts(name, array, wanted) for name, array in others.items()}
    for name, array in others.items():
        shape, n = tuple(array.shape), parts[name]
        detail = f"tensor `{name}` {shape} holds unit vectors of n = {n} parts, but "
        if n == 2:
            mend = "Save their angles, torch.atan2(x[..., 1], x[..., 0])."
            yield Fault(name, shape, detail + "the model reads angles", mend)
        elif n:
            yield Fault(name, shape, detail + "a phase needs n = 2", _NO_PHASE)
        elif _couples(shape, set(parts.values())):
            detail = f"tensor `{name}` {shape} couples oscillators of n = {shape[-1]} "
            yield Fault(
                name, shape, detail + "parts, but a phase needs n = 2", _NO_PHASE
            )


_NO_PHASE = (
    "Oscillators of more than two parts have no circuit here; train a model of phases."
)


def _vector_parts(name: str, array: Float32, wanted: Collection[str]) -> int:
    """Parts of unit vectors along the last axis, 0 where there are none."""
    if array.ndim < 2 or array.size == 0 or not np.isfinite(array).all():
        return 0
    n = array.shape[-1]
    rows = array.ndim == 2
    allowed = n in (_PARTS_OF_ROWS if rows else _PARTS) and not (
        rows and name in wanted
    )
    if not allowed and n != 2:
        return 0
    lengths = np.linalg.norm(array.astype(np.float64), axis=-1)
    whole = lengths.size > 1 and bool((np.abs(lengths - 1) < _UNIT).all())
    return n if whole else 0


def _couples(shape: Shape, parts: set[int]) -> bool:
    square = len(shape) >= 3 and shape[-1] == shape[-2]
    return square and shape[-1] > 2 and shape[-1] in parts
