"""Correlations in phase dynamics: pure tones, tanks settled, whole periods."""

from __future__ import annotations

import numpy as np

from oscc.arrays import FloatArray
from oscc.ir.correlation import Correlation


def solve(stage: Correlation) -> FloatArray:
    """Sums of every head, shape (H, T, S), [nat]; 0 where a query may not see.

    s = Re[Q conj(K)^T],   Q = a exp(i q),   K = b exp(i k)
    """
    query = stage.query_gain * np.exp(1j * stage.query_rad)
    key = stage.key_gain * np.exp(1j * stage.key_rad)
    out = np.zeros(stage.digital.shape)
    for head in range(stage.heads):
        columns = stage.columns(head)
        # no BLAS: its sums depend on the number of threads
        whole = np.einsum("tj,uj->tu", query[:, columns], np.conj(key[:, columns])).real
        out[head] = np.where(stage.visible, whole, 0.0)
    return out
