"""Lowering of FSN: the present route, and the successors through shifted weights.

    C_n = w0_n sum_{u<=t} A_tu z_u^n + w1_n sum_{u<t} A_tu z_{u+1}^n

The data-dependent frustration n (theta_{u+1} - theta_u) comes free from coupling to
the successor's own oscillator: column v of the second route carries A_{t,v-1}. The
weight A_tt meets no successor and is dropped, not wrapped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oscc.arrays import FloatArray
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


def couplings(layer: LayerTrace) -> tuple[Coupling, ...]:
    """The routes of one traced layer.

    Raises:
        RequestError: the trace holds no successor coefficients.
    """
    gamma, alpha = layer.successor_gamma, layer.successor_alpha_rad
    if gamma is None or alpha is None:
        raise RequestError("An FSN layer needs successor coefficients; there are none.")
    successor = Coupling(
        route="successor",
        harmonics=layer.harmonics,
        weights=shifted(layer.weights),
        gamma=gamma,
        alpha_rad=alpha,
    )
    return (*kuramoto.couplings(layer), successor)
