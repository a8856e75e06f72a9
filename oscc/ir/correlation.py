"""Correlation: a bank of queries and a bank of keys, every visible pair read out.

    s_htu = sum over j in head h of a_tj b_uj cos(q_tj - k_uj)

Oscillators of both banks run free from their written phases. The voltage of each goes
through a tuned tank; a mixer a coordinate multiplies two of them, gates weigh the
product, and an integrator adds a head's products up over whole periods. The score of
attention is one (drift as a phase offset of both banks), the logits of a phase read-out
are another, with prototypes for keys.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oscc.arrays import BoolArray, FloatArray, frozen
from oscc.checks import require_finite, require_positive, require_shape, require_whole
from oscc.errors import RequestError

MOST_PERIODS = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class Correlation:
    """One correlation of a program; checked on construction.

    T queries, S keys, K coordinates, H heads of K/H coordinates each.

    Args:
        name: `layer.0.score`, or `read_out.logits`.
        query_rad: Phases of the queries, shape (T, K), [rad].
        key_rad: Phases of the keys, shape (S, K), [rad].
        query_gain: Signed gates of the queries, the scale in them, shape (T, K).
        key_gain: Signed gates of the keys, shape (S, K).
        digital: What the digital layer computed, shape (H, T, S), [nat]; what no
            query may see is 0.
        causal: Whether no query may see a later key.
        first_token: Token of the first query; keys begin with token 0.
        quality: Q of the tanks.
        settle_periods: Periods before the integrator opens.
        periods: Whole periods of the integral.

    Raises:
        RequestError: shapes disagree, a value is not finite or out of range, or a
            causal correlation holds a value for a later key.
    """

    name: str
    query_rad: FloatArray
    key_rad: FloatArray
    query_gain: FloatArray
    key_gain: FloatArray
    digital: FloatArray
    causal: bool = True
    first_token: int = 0
    quality: float = 5.0
    settle_periods: int = 12
    periods: int = 4

    def __post_init__(self) -> None:
        where = f"correlation {self.name}"
        for name in ("query_rad", "key_rad", "query_gain", "key_gain", "digital"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
            require_finite(name, getattr(self, name), where=where)
        object.__setattr__(self, "causal", bool(self.causal))
        object.__setattr__(self, "quality", float(self.quality))
        require_positive("quality", self.quality, where=where)
        require_whole("first_token", self.first_token, least=0, where=where)
        require_whole(
            "settle_periods",
            self.settle_periods,
            least=0,
            most=MOST_PERIODS,
            where=where,
        )
        require_whole("periods", self.periods, most=MOST_PERIODS, where=where)
        self._check_shapes(where)
        if self.causal and self.digital[:, ~self.visible].any():
            raise RequestError(
                f"{where}: a query has a value for a later key, but it is causal."
            )

    def _check_shapes(self, where: str) -> None:
        require_shape("query_rad", self.query_rad, (-1, -1), axes="(T, K)", where=where)
        queries, coordinates = self.query_rad.shape
        require_shape(
            "key_rad", self.key_rad, (-1, coordinates), axes="(S, K)", where=where
        )
        keys = self.key_rad.shape[0]
        if not (queries and keys and coordinates):
            raise RequestError(f"{where}: it needs a query, a key and a coordinate.")
        for name, shape in (
            ("query_gain", (queries, coordinates)),
            ("key_gain", (keys, coordinates)),
        ):
            require_shape(
                name, getattr(self, name), shape, axes=f"{shape}", where=where
            )
        require_shape(
            "digital",
            self.digital,
            (-1, queries, keys),
            axes=f"(H, T, S) = (any, {queries}, {keys})",
            where=where,
        )
        if not self.heads or coordinates % self.heads:
            raise RequestError(
                f"{where}: {coordinates} coordinates do not part into {self.heads} "
                "heads."
            )

    @property
    def heads(self) -> int:
        """Sums that each pair of tokens has."""
        return int(self.digital.shape[0])

    @property
    def width(self) -> int:
        """Coordinates of a head."""
        return int(self.query_rad.shape[1]) // self.heads

    @property
    def visible(self) -> BoolArray:
        """Which keys a query may see, shape (T, S)."""
        queries, keys = self.query_rad.shape[0], self.key_rad.shape[0]
        if not self.causal:
            return np.ones((queries, keys), dtype=np.bool_)
        tokens = self.first_token + np.arange(queries)
        out: BoolArray = np.arange(keys)[None, :] <= tokens[:, None]
        return out

    @property
    def outputs(self) -> int:
        """Sums that are read: visible pairs of tokens times heads."""
        return int(self.visible.sum()) * self.heads

    @property
    def mixers(self) -> int:
        """Products of two oscillators: outputs times the coordinates of a head."""
        return self.outputs * self.width

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the same sums on the host: two a mixer."""
        return 2 * self.mixers

    @property
    def periods_in_all(self) -> int:
        """Periods that both banks run for."""
        return self.settle_periods + self.periods

    def columns(self, head: int) -> slice:
        """Coordinates of a head."""
        return slice(head * self.width, (head + 1) * self.width)
