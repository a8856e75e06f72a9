"""Small stages whose banks are flat: collective modes, and pair cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from oscc.arrays import IntArray
from oscc.ir import Edges, Stage
from oscc.seeds import stream


def grid_index(tokens: int, columns: int) -> IntArray:
    """Token and column of every oscillator, shape (tokens * columns, 2).

    Example:
        >>> grid_index(1, 2).tolist()
        [[0, 0], [0, 1]]
    """
    places = np.unravel_index(np.arange(tokens * columns), (tokens, columns))
    return np.stack(places, axis=1).astype(np.int64)


def modes_stage(
    seed: int = 0,
    *,
    tokens: int = 3,
    coordinates: int = 4,
    modes: int = 2,
    **changes: Any,
) -> Stage:
    """Every coordinate of a token pulled by all modes of that token.

    Mode 0 pulls at the first harmonic, mode 1 at the second, and so on in turn.

    Example:
        >>> modes_stage().grid
        (3, 4)
    """
    random = stream(seed, "modes stage")
    size = tokens * coordinates
    target, mode = np.divmod(np.arange(size * modes), modes)
    phi = random.uniform(-np.pi, np.pi, size)
    values: dict[str, Any] = {
        "name": "layer.0.modes",
        "theta_rad": random.uniform(-np.pi, np.pi, tokens * modes),
        "phi0_rad": phi,
        "gain_rad": random.uniform(0.5, 1.5, size),
        "detuning_rad": np.zeros(size),
        "couplings": (
            Edges(
                target=target,
                source=target // coordinates * modes + mode,
                harmonic=1 + mode % 2,
                gamma=random.normal(0, 1, target.size),
                alpha_rad=random.uniform(-np.pi, np.pi, target.size),
            ),
        ),
        "digital_rad": phi,
        "index": grid_index(tokens, coordinates),
        "source_index": grid_index(tokens, modes),
    }
    return Stage(**(values | changes))


def cells_stage(
    x: Any = (0.0, 0.6, 1.2), *, gain_rad: float = 12.6, **changes: Any
) -> Stage:
    """Pair cells of one head with the detunings x of their lock range.

    Cell number p stands for the pair of token p and token 0.

    Example:
        >>> cells_stage().targets
        3
    """
    ratio = np.asarray(x, dtype=np.float64)
    count, zero = ratio.size, np.zeros(ratio.size)
    row = np.arange(count)
    index = np.stack([zero, row, zero], axis=1).astype(np.int64)
    locked = np.abs(ratio) < 1
    values: dict[str, Any] = {
        "name": "layer.0.locks",
        "theta_rad": zero,
        "phi0_rad": zero,
        "gain_rad": np.full(count, gain_rad),
        "detuning_rad": gain_rad * ratio,
        "couplings": (Edges(row, row, np.ones(count, np.int64), zero + 1, zero),),
        "digital_rad": np.where(locked, np.arcsin(np.clip(ratio, -1, 1)), 0),
        "digital_coherence": np.sqrt(np.maximum(1 - ratio**2, 0)),
        "index": index,
        "source_index": index,
        "scheme": "plain",
        "substeps": 1,
        "readout": "coherence",
    }
    return Stage(**(values | changes))
