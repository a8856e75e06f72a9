"""Rounds of a stage of pair cells whose oscillators are the tokens' own.

One oscillator cannot sit in two cells, since coupled oscillators have one joint
frequency. So each visits its partners one after the other, and the pairs of a round
are an edge colouring of the graph of pairs: of T tokens all to all it takes T - 1
rounds for an even T, T for an odd one, in which one token rests each time; of one
token with its partners a round each.
"""

from __future__ import annotations

import numpy as np

from oscc.arrays import IntArray
from oscc.ir.stage import Stage


def rounds(stage: Stage) -> int:
    """How often a stage of pair cells runs its dwell; 1 where each has its own pair.

    Heads run side by side.

    Example:
        >>> from oscc.testing.flat import cells_stage
        >>> every = [[0, 1, 0], [0, 2, 0], [0, 2, 1]]
        >>> rounds(cells_stage(index=every, source_index=every, lock_mode="native"))
        3
    """
    if stage.lock_mode == "host":
        return 1
    return max(_rounds_of(places[:, 1:]) for places in _heads(stage))


def oscillators(stage: Stage) -> int:
    """Oscillators of a stage of pair cells: two a cell, or one a token and head.

    Example:
        >>> from oscc.testing.flat import cells_stage
        >>> oscillators(cells_stage())
        6
    """
    if stage.lock_mode == "host":
        return 2 * stage.targets
    return sum(np.unique(places[:, 1:]).size for places in _heads(stage))


def _heads(stage: Stage) -> list[IntArray]:
    """Rows of the index of each head."""
    assert stage.index is not None
    head = stage.index[:, 0]
    return [stage.index[head == one] for one in np.unique(head)]


def _rounds_of(pairs: IntArray) -> int:
    tokens, visits = np.unique(pairs, return_counts=True)
    every = tokens.size * (tokens.size - 1) // 2
    rests = len(pairs) == every and tokens.size % 2 == 1
    return int(visits.max()) + int(rests)
