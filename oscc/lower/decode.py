"""Decoding: the stage of one new token, cut from the stage of a whole window.

A new token reads what is there already: its targets are the last token's oscillators,
its sources the bank of all tokens so far, its own among them. What the earlier tokens
receive belongs to steps of before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from oscc.errors import RequestError
from oscc.ir.coupling import Coupling
from oscc.ir.edges import Edges
from oscc.ir.stage import Stage

_ROWS = ("phi0_rad", "gain_rad", "detuning_rad", "digital_rad")


def last_token(stage: Stage, token: int | None = None) -> Stage:
    """The stage with the targets of its last token alone, all their couplings kept.

    A grid keeps its whole bank of sources: it is held while tokens are added. Of flat
    banks the sources stay that the last token's targets are coupled to.

    Args:
        stage: Stage of T tokens.
        token: The last token, for pair cells, which not every token has; the last one
            that has any without it.

    Returns:
        Stage of one token, whose number is the last one's; its rows are the same
        numbers as in the whole stage.

    Raises:
        RequestError: no target is of that token.

    Example:
        >>> from oscc.testing.tiny import tiny_stage
        >>> one = last_token(tiny_stage(tokens=4))
        >>> one.grid, one.begins, one.theta_rad.shape
        ((1, 4), 3, (4, 4))
    """
    if stage.flat:
        return _last_of_list(stage, token)
    rows = stage.grid[0] - 1
    return replace(
        stage,
        couplings=tuple(_last_row(coupling) for coupling in stage.factored),
        first_token=stage.begins + rows,
        **{name: getattr(stage, name)[rows:] for name in _ROWS},
    )


def _last_row(coupling: Coupling) -> Coupling:
    return replace(coupling, weights=coupling.weights[:, -1:])


def _last_of_list(stage: Stage, last: int | None) -> Stage:
    assert stage.index is not None
    assert stage.source_index is not None
    edges = stage.edges
    token = stage.index[:, 0 if stage.readout == "phase" else 1]
    chosen_token = int(token.max()) if last is None else last
    kept = np.flatnonzero(token == chosen_token)
    if not kept.size:
        raise RequestError(f"stage {stage.name}: no target is of token {chosen_token}.")
    chosen = np.isin(edges.target, kept)
    sources = np.unique(edges.source[chosen])
    changes: dict[str, Any] = {name: getattr(stage, name)[kept] for name in _ROWS}
    if stage.digital_coherence is not None:
        changes["digital_coherence"] = stage.digital_coherence[kept]
        changes["first_token"] = chosen_token
    listed = Edges(
        np.searchsorted(kept, edges.target[chosen]),
        np.searchsorted(sources, edges.source[chosen]),
        edges.harmonic[chosen],
        edges.gamma[chosen],
        edges.alpha_rad[chosen],
    )
    return replace(
        stage,
        theta_rad=stage.theta_rad[sources],
        index=stage.index[kept],
        source_index=stage.source_index[sources],
        couplings=(listed,),
        **changes,
    )
