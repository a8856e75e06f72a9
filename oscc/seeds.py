"""Named random streams: every draw comes from (seed, purpose, index)."""

from __future__ import annotations

import hashlib

import numpy as np


def stream(seed: int, purpose: str, index: int = 0) -> np.random.Generator:
    """Generator of one purpose, independent of every other purpose and index.

    Args:
        seed: The run's seed, >= 0.
        purpose: What is drawn, such as `deck sample`.
        index: Number of the draw within the purpose (a sample, not a worker).

    Example:
        >>> a = stream(0, "sample").integers(1000)
        >>> bool(a == stream(0, "sample").integers(1000))
        True
    """
    name = int.from_bytes(hashlib.sha256(purpose.encode()).digest()[:8], "little")
    return np.random.Generator(
        np.random.Philox(np.random.SeedSequence([seed, name, index]))
    )
