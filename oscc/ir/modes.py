"""Modes: what a token's collective modes are made of, and how they pull it.

    Z_tm  = sum_j c_mj exp(i n_m phi0_tj)                         formed by the host
    C_ntj = pin_nj + sum_{m: n_m = n} d_jm f(|Z_tm|) Z_tm         summed by oscillators

f is 1 (`linear`) or |Z|^2 (`square`). The source of mode m of token t is held at
arg(Z_tm) / n_m, so that it shows arg(Z_tm) at its harmonic n_m, and pulls with strength
|d_jm| f(|Z_tm|) |Z_tm| and frustration arg(d_jm). Pins are edges from one more source
of the token, held at phase 0; its number is M.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from oscc.arrays import ComplexArray, FloatArray, IntArray, frozen
from oscc.checks import require_choice, require_finite, require_shape
from oscc.errors import RequestError
from oscc.ir.coupling import LARGEST_HARMONIC
from oscc.ir.edges import Edges

RESPONSES = ("linear", "square")
MODE_ARRAYS = (
    *("order", "into_gamma", "into_alpha_rad"),
    *("out_gamma", "out_alpha_rad", "pin_gamma", "pin_alpha_rad"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Modes:
    """Coefficients of both couplings of M modes to K coordinates.

    Args:
        order: Harmonic n_m of each mode, shape (M,).
        into_gamma: Strengths |c| with which a token forms its modes, shape (M, K).
        into_alpha_rad: Offsets arg(c), shape (M, K), [rad].
        out_gamma: Strengths |d| with which the modes pull, shape (K, M).
        out_alpha_rad: Offsets arg(d), shape (K, M), [rad].
        pin_gamma: Strengths of the fixed fields of harmonics 1..N, shape (N, K).
        pin_alpha_rad: Their offsets, shape (N, K), [rad].
        response: f, `linear` or `square`.

    Raises:
        RequestError: shapes disagree, a value is not finite, an order is out of range,
            or the response is not known.
    """

    order: IntArray
    into_gamma: FloatArray
    into_alpha_rad: FloatArray
    out_gamma: FloatArray
    out_alpha_rad: FloatArray
    pin_gamma: FloatArray
    pin_alpha_rad: FloatArray
    response: str = "linear"

    def __post_init__(self) -> None:
        given = np.asarray(self.order)
        if given.ndim != 1 or not given.size or given.dtype.kind not in "iu":
            raise RequestError("modes: Argument `order` must list whole orders >= 1.")
        if given.min() < 1 or given.max() > LARGEST_HARMONIC:
            raise RequestError(
                f"modes: Argument `order` must hold orders of 1 to {LARGEST_HARMONIC}."
            )
        object.__setattr__(self, "order", frozen(given, np.int64))
        for name in MODE_ARRAYS[1:]:
            object.__setattr__(self, name, frozen(getattr(self, name)))
            require_finite(name, getattr(self, name), where="modes")
        require_choice("response", self.response, RESPONSES, where="modes")
        require_shape("into_gamma", self.into_gamma, (given.size, -1), axes="(M, K)")
        width = self.into_gamma.shape[1]
        wanted = {"into": (given.size, width), "out": (width, given.size)}
        wanted["pin"] = (-1, width)
        for name, shape in wanted.items():
            for part in ("gamma", "alpha_rad"):
                word = f"{name}_{part}"
                require_shape(word, getattr(self, word), shape, axes=str(shape))
        require_shape("pin_alpha_rad", self.pin_alpha_rad, self.pin_gamma.shape)

    @property
    def pinned(self) -> bool:
        """Whether any fixed field is other than zero."""
        return bool(self.pin_gamma.any())

    @property
    def sources(self) -> int:
        """Sources of one token: its modes, and one for the pins where there are any."""
        return int(self.order.size) + self.pinned

    def sums(self, phi0_rad: FloatArray) -> ComplexArray:
        """The modes Z of every token, shape (T, K) -> (T, M)."""
        into = self.into_gamma * np.exp(1j * self.into_alpha_rad)
        out = np.empty((len(phi0_rad), self.order.size), dtype=np.complex128)
        for n in np.unique(self.order):
            mine = np.flatnonzero(self.order == n)
            out[:, mine] = np.exp(1j * n * phi0_rad) @ into[mine].T
        return out


@dataclass(frozen=True, slots=True, eq=False)
class HeldModes:
    """Sources and pairs of a stage of modes.

    Args:
        theta_rad: Phases at which the sources are held, shape (S',), [rad].
        source_index: Token and number of each source, shape (S', 2).
        edges: Pairs of the flat banks.
    """

    theta_rad: FloatArray
    source_index: IntArray
    edges: Edges


def held(
    modes: Modes, phi0_rad: FloatArray, sums: ComplexArray | None = None
) -> HeldModes:
    """The banks of sources and the pairs that follow from the targets' phases.

    Args:
        modes: Coefficients.
        phi0_rad: Phases of the targets at the start, shape (T, K), unwrapped [rad].
        sums: The modes Z of every token, shape (T, M); formed here without it.

    Example:
        >>> one, zero = np.ones((1, 1)), np.zeros((1, 1))
        >>> alone = Modes(np.array([2]), one, zero, 3 * one, zero, zero, zero)
        >>> found = held(alone, np.array([[0.4]]))
        >>> round(float(found.theta_rad[0]), 12), found.edges.gamma.tolist()
        (0.4, [3.0])
    """
    tokens, width = phi0_rad.shape
    sums, each = modes.sums(phi0_rad) if sums is None else sums, modes.sources
    theta = np.zeros((tokens, each))
    theta[:, : modes.order.size] = np.angle(sums) / modes.order
    size = np.abs(sums) ** (1 if modes.response == "linear" else 3)
    place = np.unravel_index(np.arange(tokens * each), (tokens, each))
    index = np.stack(place, axis=1).astype(np.int64)
    return HeldModes(theta.ravel(), index, _edges(modes, size, width))


def _edges(modes: Modes, size: FloatArray, width: int) -> Edges:
    """Pairs of every token, for modes of the sizes f(|Z|) |Z|, shape (T, M)."""
    tokens, count = size.shape
    orders = np.arange(1, len(modes.pin_gamma) + 1)
    shape = (tokens, width, count + orders.size)
    gamma = np.empty(shape)
    gamma[:, :, :count] = modes.out_gamma * size[:, None, :]
    gamma[:, :, count:] = modes.pin_gamma.T
    alpha = np.concatenate([modes.out_alpha_rad, modes.pin_alpha_rad.T], axis=1)
    number = np.concatenate([np.arange(count), np.full(orders.size, count)])
    source = modes.sources * np.arange(tokens)[:, None, None] + number
    target = np.arange(tokens * width).reshape(tokens, width, 1)
    harmonic = np.concatenate([modes.order, orders])
    # a mode is kept whatever its size, a fixed field only where there is one
    there = np.ones((width, count), dtype=bool)
    kept = np.concatenate([there, modes.pin_gamma.T != 0], axis=1)

    def listed(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        out: npt.NDArray[Any] = np.broadcast_to(values, shape)[:, kept].ravel()
        return out

    return Edges(*map(listed, (target, source, harmonic, gamma, alpha)))
