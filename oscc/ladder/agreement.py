"""Agreement of two models on the same text, from their logits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from oscc.arrays import FloatArray


def log_softmax(logits: FloatArray) -> FloatArray:
    """Natural logarithms of the symbol probabilities, shape (..., V).

    Example:
        >>> float(np.exp(log_softmax(np.zeros(4))).sum())
        1.0
    """
    shifted = logits - logits.max(axis=-1, keepdims=True)
    out: FloatArray = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return out


def bits(logs: FloatArray, following: npt.ArrayLike) -> FloatArray:
    """Bits that the next symbol costs at every position, shape (...).

    Args:
        logs: Log-probabilities, shape (..., V).
        following: Number of the next symbol, shape (...).

    Example:
        >>> bits(log_softmax(np.zeros((1, 8))), [3]).tolist()
        [3.0]
    """
    chosen = np.asarray(following, dtype=np.int64)[..., None]
    out: FloatArray = -np.take_along_axis(logs, chosen, axis=-1)[..., 0] / np.log(2.0)
    return out


def top1(one: FloatArray, other: FloatArray) -> FloatArray:
    """1 where both find the same symbol likeliest, else 0, shape (...)."""
    return np.asarray(one.argmax(-1) == other.argmax(-1), dtype=np.float64)


def divergence_nats(one: FloatArray, other: FloatArray) -> FloatArray:
    """Kullback-Leibler divergence of log-probabilities, shape (...) [nats]."""
    out: FloatArray = (np.exp(one) * (one - other)).sum(axis=-1)
    return out
