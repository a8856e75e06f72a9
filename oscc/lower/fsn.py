"""Lowering of FSN: the present route, and the successors through shifted weights.

    C_n = w0_n sum_{u<=t} A_tu z_u^n + w1_n sum_{u<t} A_tu z_{u+1}^n

The data-dependent frustration n (theta_{u+1} - theta_u) comes free from coupling to
the successor's own oscillator: column v of the second route carries A_{t,v-1}. The
weight A_tt meets no successor; it is dropped, or spread over the others where the
model was trained so. It never wraps to another token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oscc.arrays import FloatArray
from oscc.checks import require_choice
from oscc.errors import RequestError
from oscc.ir.coupling import Coupling
from oscc.lower import kuramoto

if TYPE_CHECKING:
    from oscc.trace import LayerTrace


def shifted(weights: FloatArray) -> FloatArray:
    """Weights of the successor route, A'[t, v] = A[t, v-1] for 1 <= v <= t, else 0.

    Row t sums to the row of A less A_tt.

    Example:
        >>> shifted(np.tril(np.ones((1, 2, 2))))[0].tolist()
        [[0.0, 0.0], [0.0, 1.0]]
    """
    out = np.zeros_like(weights)
    out[:, :, 1:] = weights[:, :, :-1]
    return np.tril(out)


def renormalised(weights: FloatArray) -> FloatArray:
    """Rows that sum to 1 again where anything is left; row 0 stays empty.

    Example:
        >>> renormalised(np.array([[[0.0, 0.0], [0.0, 0.5]]]))[0].tolist()
        [[0.0, 0.0], [0.0, 1.0]]
    """
    total = weights.sum(axis=-1, keepdims=True)
    out: FloatArray = weights / np.where(total > 0, total, 1.0)
    return out


def couplings(layer: LayerTrace, successor: str = "dropped") -> tuple[Coupling, ...]:
    """The routes of one traced layer.

    Args:
        layer: Traced layer.
        successor: What becomes of the weight that meets no successor: `dropped`, or
            `renormalised` over the others.

    Raises:
        RequestError: the trace holds no successor coefficients, or the rule is not
            known.
    """
    require_choice("successor", successor, ("dropped", "renormalised"))
    gamma, alpha = layer.successor_gamma, layer.successor_alpha_rad
    if gamma is None or alpha is None:
        raise RequestError("An FSN layer needs successor coefficients; there are none.")
    weights = shifted(layer.weights)
    following = Coupling(
        route="successor",
        harmonics=layer.harmonics,
        weights=weights if successor == "dropped" else renormalised(weights),
        gamma=gamma,
        alpha_rad=alpha,
    )
    return (*kuramoto.couplings(layer), following)
