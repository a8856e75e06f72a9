"""Read-only arrays in fixed precision: the only array form that the IR holds."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
ComplexArray: TypeAlias = npt.NDArray[np.complex128]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


def frozen(
    values: npt.ArrayLike, dtype: npt.DTypeLike = np.float64
) -> npt.NDArray[Any]:
    """Copy of the values, C-ordered, read-only, in the given type.

    Always a copy: a read-only view would still change with its owner. Negative zero
    becomes zero, so that equal values are equal bytes.

    Args:
        values: Any array-like, shape (...).

    Returns:
        Array of the same shape that cannot be written to.

    Example:
        >>> frozen([1, -0.0]).flags.writeable
        False
    """
    out = np.array(values, dtype=dtype, order="C", copy=True)
    if out.dtype.kind in "fc":
        out += 0.0
    out.flags.writeable = False
    return out
