"""Edges: pairs listed one by one, for what no shared weight matrix can express.

    c_{n,a,b} = sum over the edges e with (target, source, harmonic) = (a, b, n) of
                gamma_e exp(i alpha_e)

Collective modes (every mode pulls every coordinate of its token with a strength of its
own) and pair cells (one cell a pair) are coupled so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oscc.arrays import ComplexArray, FloatArray, IntArray, frozen
from oscc.checks import require_finite, require_shape
from oscc.errors import RequestError
from oscc.ir.coupling import LARGEST_HARMONIC


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Coupled pairs of flat banks, one edge an entry, in ascending order of target.

    Args:
        target: Row in the bank of targets, shape (E,).
        source: Row in the bank of sources, shape (E,).
        harmonic: Orders n >= 1, shape (E,).
        gamma: Signed strengths, shape (E,), without unit.
        alpha_rad: Frustration offsets, shape (E,), [rad].

    Raises:
        RequestError: no edge, shapes disagree, a value is not finite, a row below 0, an
            order out of range, targets that do not ascend, or an edge twice.
    """

    target: IntArray
    source: IntArray
    harmonic: IntArray
    gamma: FloatArray
    alpha_rad: FloatArray

    def __post_init__(self) -> None:
        for name in ("target", "source", "harmonic"):
            given = np.asarray(getattr(self, name))
            if given.dtype.kind not in "iu":
                raise RequestError(f"edges: Argument `{name}` must hold whole numbers.")
            object.__setattr__(self, name, frozen(given, np.int64))
        for name in ("gamma", "alpha_rad"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
            require_finite(name, getattr(self, name), where="edges")
        require_shape("target", self.target, (-1,), axes="(E,)", where="edges")
        if not self.target.size:
            raise RequestError("edges: a stage needs at least one edge.")
        for name in ("source", "harmonic", "gamma", "alpha_rad"):
            require_shape(
                name, getattr(self, name), self.target.shape, axes="(E,)", where="edges"
            )
        self._check_rows()

    def _check_rows(self) -> None:
        if self.target.min() < 0 or self.source.min() < 0:
            raise RequestError("edges: a row is below 0.")
        if self.harmonic.min() < 1 or self.harmonic.max() > LARGEST_HARMONIC:
            raise RequestError(
                f"edges: Argument `harmonic` must hold orders of 1 to "
                f"{LARGEST_HARMONIC}, but holds {int(self.harmonic.min())} to "
                f"{int(self.harmonic.max())}."
            )
        if (np.diff(self.target) < 0).any():
            raise RequestError("edges: Argument `target` must ascend.")
        order = np.lexsort((self.harmonic, self.source, self.target))
        rows = np.stack([self.target, self.source, self.harmonic])[:, order]
        twice = (np.diff(rows, axis=1) == 0).all(axis=0)
        if twice.any():
            target, source, harmonic = rows[:, int(np.argmax(twice))]
            raise RequestError(
                f"edges: the edge from source {source} to target {target} of order "
                f"{harmonic} stands twice."
            )

    @property
    def coefficients(self) -> ComplexArray:
        """The complex gamma exp(i alpha), shape (E,)."""
        out: ComplexArray = self.gamma * np.exp(1j * self.alpha_rad)
        return out

    @property
    def orders(self) -> tuple[int, ...]:
        """Orders that stand in the list, ascending."""
        return tuple(int(n) for n in np.unique(self.harmonic))
