"""Coupling: weights shared by a head times coefficients of each coordinate.

    c_{n,(t,j),(u,j)} = gamma_nj exp(i alpha_nj) A_{h(j),t,u}

The row index of the weights receives, the column index sends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from oscc.arrays import ComplexArray, FloatArray, IntArray, frozen
from oscc.checks import require_choice, require_finite, require_shape
from oscc.errors import RequestError

ROUTES = ("present", "successor")
LARGEST_HARMONIC = 64


@dataclass(frozen=True, slots=True, eq=False)
class Coupling:
    """One route from the sources of a stage to its targets, never expanded.

    Args:
        route: `present` pulls towards the token itself; `successor` carries the
            weights shifted by one column, so that it pulls towards token u+1.
        harmonics: Orders n >= 1, ascending, shape (N,).
        weights: Attention, shape (H, T, S); row t receives from column u.
        gamma: Signed strengths, shape (N, K), without unit.
        alpha_rad: Frustration offsets, shape (N, K), [rad].

    Raises:
        RequestError: shapes disagree, a value is not finite, or an order is not a whole
            number from 1 to `LARGEST_HARMONIC`.
    """

    route: str
    harmonics: IntArray
    weights: FloatArray
    gamma: FloatArray
    alpha_rad: FloatArray

    def __post_init__(self) -> None:
        require_choice("route", self.route, ROUTES)
        object.__setattr__(self, "harmonics", _orders(self.harmonics))
        for name in ("weights", "gamma", "alpha_rad"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
            require_finite(name, getattr(self, name), where=f"route {self.route}")
        orders = self.harmonics
        require_shape("weights", self.weights, (-1, -1, -1), axes="(H, T, S)")
        require_shape("gamma", self.gamma, (orders.size, -1), axes="(N, K)")
        require_shape("alpha_rad", self.alpha_rad, self.gamma.shape, axes="(N, K)")
        heads, coordinates = self.weights.shape[0], self.gamma.shape[1]
        if not heads or coordinates % heads:
            raise RequestError(
                f"Argument `weights` has {heads} heads, which do not divide "
                f"{coordinates} coordinates."
            )

    @property
    def coefficients(self) -> ComplexArray:
        """The complex gamma exp(i alpha), shape (N, K)."""
        out: ComplexArray = self.gamma * np.exp(1j * self.alpha_rad)
        return out

    @property
    def head_of_coordinate(self) -> IntArray:
        """Head that each coordinate belongs to, shape (K,)."""
        heads, coordinates = self.weights.shape[0], self.gamma.shape[1]
        return np.repeat(np.arange(heads), coordinates // heads)


def _orders(given: npt.ArrayLike) -> IntArray:
    """Orders as whole numbers, refused before anything is sized by them."""
    orders = np.asarray(given)
    if orders.ndim != 1 or not orders.size or orders.dtype.kind not in "iu":
        raise RequestError("Argument `harmonics` must list whole orders >= 1.")
    if orders[0] < 1 or (np.diff(orders.astype(np.int64)) <= 0).any():
        raise RequestError(
            "Argument `harmonics` must ascend from 1 or more without repeats, "
            f"but is {orders.tolist()}."
        )
    if orders[-1] > LARGEST_HARMONIC:
        raise RequestError(
            f"Argument `harmonics` goes up to {orders[-1]}; the largest order is "
            f"{LARGEST_HARMONIC}."
        )
    return frozen(orders, np.int64)
