"""Unit vectors in the plane are phases, and matrices that turn with them are pairs.

    x = (cos theta, sin theta),    J x = a e^{i theta} + b e^{-i theta} as a number
    a = (J11 + J22 + i (J21 - J12)) / 2,    b = (J11 - J22 + i (J21 + J12)) / 2

The tangent of x is (-sin, cos), so a pull y moves a phase phi by Im[e^{-i phi} (y1 + i
y2)]. Of the part a that is |a| sin(theta - phi + arg a): the sine law with its
frustration. The part b gives |b| sin(arg b - theta - phi), which goes with the sum of
two phases.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from oscc.arrays import ComplexArray, FloatArray
from oscc.checks import require_finite
from oscc.errors import RequestError

_UNIT = 1e-5
_REFLECTION = 1e-6


def vector_phases(vectors: npt.ArrayLike) -> FloatArray:
    """Phases of unit vectors, in (-pi, pi].

    Args:
        vectors: Shape (..., 2).

    Returns:
        Shape (...) [rad].

    Raises:
        RequestError: the vectors have more or fewer than two parts, or are no unit
            vectors.

    Example:
        >>> vector_phases([[0.0, 1.0]]).round(6).tolist()
        [1.570796]
    """
    given = _array(vectors)
    _require_two("vectors", given.shape[-1:], given.shape)
    length = np.hypot(given[..., 0], given[..., 1])
    off = np.abs(length - 1.0)
    if off.size and off.max() > _UNIT:
        place = tuple(int(i) for i in np.unravel_index(int(off.argmax()), off.shape))
        raise RequestError(
            f"Argument `vectors` has length {length[place]:.6g} at {place}: a phase "
            "needs unit vectors. Normalise them first."
        )
    out: FloatArray = np.arctan2(given[..., 1], given[..., 0])
    return out


def block_coefficients(blocks: npt.ArrayLike) -> ComplexArray:
    """Complex pair coefficients of matrices that commute with rotations.

    Args:
        blocks: Shape (..., 2, 2); the first index of a block receives.

    Returns:
        a = J11 + i J21 of every block, shape (...).

    Raises:
        RequestError: the blocks are not 2 x 2, or one has a part that does not commute
            with rotations.

    Example:
        >>> block_coefficients([[0.0, -2.0], [2.0, 0.0]]).tolist()
        2j
    """
    given = _array(blocks)
    _require_two("blocks", given.shape[-2:], given.shape)
    j11, j12, j21, j22 = (given[..., i, j] for i in (0, 1) for j in (0, 1))
    turning = 0.5 * ((j11 + j22) + 1j * (j21 - j12))
    mirroring = 0.5 * np.hypot(j11 - j22, j21 + j12)
    size = np.abs(turning) + mirroring
    bad = mirroring > _REFLECTION * np.max(size, initial=0.0)
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        raise RequestError(
            f"Block {place} of `blocks` does not commute with rotations: its part of "
            f"size {mirroring[place]:.3g} pulls on the sum of two phases, and coupled "
            "oscillators feel their difference alone. Only [[p, -q], [q, p]] can be "
            "lowered; train the layer with such blocks."
        )
    out: ComplexArray = np.asarray(turning, dtype=np.complex128)
    return out


def _require_two(name: str, found: tuple[int, ...], shape: tuple[int, ...]) -> None:
    if not found or any(n != 2 for n in found):
        raise RequestError(
            f"Argument `{name}` has shape {shape}: a phase needs n = 2, and a rotating "
            "vector of more parts has more angles than one oscillator."
        )


def _array(values: Any) -> FloatArray:
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    array = np.asarray(values, dtype=np.float64)
    require_finite("vectors or blocks", array)
    return array
