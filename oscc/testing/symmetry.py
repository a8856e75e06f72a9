"""Models moved by a symmetry of the equation: what they compute must move with them.

    dphi_a/dtau = g_a sum_n Im[exp(-i n phi_a) sum_b c_nab exp(i n theta_b)]

depends on n (theta_b - phi_a) + alpha alone. So coordinates may change places, a
coordinate may be turned as a whole whatever its offsets, and a mirror of all phases,
offsets and drifts mirrors what every target does.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from oscc.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    import torch

    from oscc.models.phase import PhaseLayer, PhaseModel


def coordinate_order(heads: IntArray, within: list[IntArray]) -> IntArray:
    """Old coordinate at each new place: heads change places, coordinates within them.

    Args:
        heads: Old head at each new place, shape (H,).
        within: Order of the coordinates in each old head, H arrays of shape (K / H,).

    Example:
        >>> coordinate_order(np.array([1, 0]), [np.array([1, 0]), np.array([0, 1])])
        array([2, 3, 1, 0])
    """
    width = len(within[0])
    return np.concatenate([head * width + within[head] for head in heads])


def permuted(model: PhaseModel, heads: IntArray, order: IntArray) -> PhaseModel:
    """Model in float64 whose coordinates, and whose heads, have changed places.

    Args:
        model: Any model that couples phases.
        heads: Old head at each new place, shape (H,).
        order: Old coordinate at each new place, of `coordinate_order`, shape (K,).
    """
    from oscc.models.fsn_mf import FsnMfLayer

    out, k = copy.deepcopy(model).double(), order.size
    lifted = np.concatenate([order, order + k])
    for place in (out.embedding, out.prototypes):
        _take(place, order)
    for layer in out.coupling_layers():
        score = layer.score
        _take(score.drift, order)
        _take(score.sharpness, heads)
        maps = [layer.value, *([score.query, score.key] if score.gated else [])]
        for one in maps:
            _take(one.bias, order)
            _take(one.weight, lifted)
            _take(one.weight, order, axis=0)
        if score.offset is not None:
            _take(score.offset, order)
        for name in ("gamma", "alpha"):
            if hasattr(layer, name):
                _take(getattr(layer, name), order)
        if hasattr(layer, "feed_forward"):
            wide = lifted if layer.feed_forward.on_lift else order
            _take(layer.feed_forward.gate, wide)
            _take(layer.feed_forward.up, wide)
            _take(layer.feed_forward.down, order, axis=0)
        if isinstance(layer, FsnMfLayer):
            _take(layer.mode_in, order)
            _take(layer.mode_out, order, axis=1)
            _take(layer.pin, order)
    return out


def turned(model: PhaseModel, delta_rad: FloatArray) -> PhaseModel:
    """Model in float64 with every symbol's phases turned by coordinate.

    Its increments stay only where nothing else reads absolute phases: gates of the
    score off, value gate constant, one layer or no feed-forward.

    Args:
        model: Any model that couples phases.
        delta_rad: Turn of each coordinate, shape (K,) [rad].
    """
    out = copy.deepcopy(model).double()
    _put(out.embedding, _numpy(out.embedding) + delta_rad)
    return out


def mirrored(model: PhaseModel) -> PhaseModel:
    """Model in float64 with phases, offsets and drifts of the other sign.

    The maps of the gates read the mirrored sines, so their gates stay what they were.
    The feed-forward is left alone: on raw angles it has no mirror.
    """
    out = copy.deepcopy(model).double()
    _put(out.embedding, -_numpy(out.embedding))
    for layer in out.coupling_layers():
        _mirror(layer)
    return out


def _mirror(layer: PhaseLayer) -> None:
    score = layer.score
    _put(score.drift, -_numpy(score.drift))
    if score.offset is not None:
        _put(score.offset, -_numpy(score.offset))
    for one in [layer.value, *([score.query, score.key] if score.gated else [])]:
        weight = np.array(_numpy(one.weight))
        weight[:, weight.shape[1] // 2 :] *= -1.0
        _put(one.weight, weight)
    alpha = getattr(layer, "alpha", None)
    if alpha is not None:
        _put(alpha, -_numpy(alpha))
    for name in ("mode_in", "mode_out", "pin"):
        if hasattr(layer, name):  # complex: a mirror is the conjugate
            both = np.array(_numpy(getattr(layer, name)))
            both[1] *= -1.0
            _put(getattr(layer, name), both)


def _numpy(parameter: torch.Tensor) -> FloatArray:
    return np.asarray(parameter.detach().numpy())


def _take(parameter: torch.Tensor, order: IntArray, axis: int = -1) -> None:
    _put(parameter, np.take(_numpy(parameter), order, axis=axis))


def _put(parameter: torch.Tensor, values: npt.NDArray[np.float64]) -> None:
    import torch

    parameter.data.copy_(torch.from_numpy(np.ascontiguousarray(values)))
