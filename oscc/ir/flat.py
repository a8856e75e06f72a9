"""What must hold of a stage whose banks are flat and coupled by edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oscc.arrays import IntArray
from oscc.checks import require_shape
from oscc.errors import RequestError

if TYPE_CHECKING:
    from oscc.ir.stage import Stage

_CELL = 3  # head, token, partner


def check_banks(stage: Stage, where: str) -> None:
    """Refuse flat banks whose shapes, indices or edges do not fit together.

    Raises:
        RequestError: shapes disagree, an edge names a row that is not there, phase
            targets are no grid in order, pair cells have no digital coherence, or a
            target of a causal stage receives from a later token.
    """
    require_shape("theta_rad", stage.theta_rad, (-1,), axes="(S',)", where=where)
    require_shape("phi0_rad", stage.phi0_rad, (-1,), axes="(T',)", where=where)
    shape = stage.phi0_rad.shape
    for name in ("gain_rad", "detuning_rad", "digital_rad"):
        require_shape(
            name, getattr(stage, name), shape, axes=f"(T',) = {shape}", where=where
        )
    if stage.first_token and stage.readout == "phase":
        raise RequestError(f"{where}: the index of flat targets names their tokens.")
    index = _index("index", stage.index, shape[0], where)
    sources = _index("source_index", stage.source_index, stage.theta_rad.size, where)
    edges = stage.edges
    for name, size in (("target", shape[0]), ("source", stage.theta_rad.size)):
        largest = int(getattr(edges, name).max())
        if largest >= size:
            raise RequestError(
                f"{where}: an edge names {name} {largest}, but there are {size}."
            )
    if stage.readout == "phase":
        _check_grid(index, where)
        if stage.digital_coherence is not None:
            raise RequestError(f"{where}: `digital_coherence` is for pair cells.")
        tokens, read = index[:, 0], sources[:, 0]
        _check_modes(stage, sources, where)
    else:
        if stage.modes is not None:
            raise RequestError(f"{where}: `modes` is for targets read as phases.")
        _check_cells(stage, index, sources, where)
        tokens, read = index[:, 1], index[:, 2]
    if stage.causal:
        sender = edges.source if stage.readout == "phase" else edges.target
        _check_causality(tokens[edges.target], read[sender], where)


def _check_causality(tokens: IntArray, received: IntArray, where: str) -> None:
    late = received > tokens
    if late.any():
        first = int(np.argmax(late))
        raise RequestError(
            f"{where}: target token {int(tokens[first])} receives from the later token "
            f"{int(received[first])}, but the stage is causal."
        )


def _index(name: str, given: IntArray | None, rows: int, where: str) -> IntArray:
    if given is None:
        raise RequestError(f"{where}: flat banks need `{name}`.")
    require_shape(name, given, (rows, -1), axes=f"({rows}, n)", where=where)
    if given.shape[1] < 1 or (given < 0).any():
        raise RequestError(f"{where}: Argument `{name}` must hold numbers from 0.")
    return given


def _check_grid(index: IntArray, where: str) -> None:
    """Targets that are read as phases are every coordinate of successive tokens."""
    require_shape("index", index, (-1, 2), axes="(T', 2)", where=where)
    first = index.min(axis=0)
    sizes = index.max(axis=0) - first + 1
    whole = int(sizes.prod()) == len(index) and not first[1]
    rows = np.stack(np.unravel_index(np.arange(len(index)), tuple(sizes)), axis=1)
    if not whole or (rows + first != index).any():
        raise RequestError(
            f"{where}: Argument `index` must name every coordinate of successive "
            "tokens, in order."
        )


def _check_modes(stage: Stage, sources: IntArray, where: str) -> None:
    """Coefficients and readers must be of the stage's coordinates and sources."""
    tokens, coordinates = stage.grid
    if coordinates % stage.readers:
        raise RequestError(
            f"{where}: {stage.readers} readers of each field do not divide the "
            f"{coordinates} targets of a token."
        )
    if stage.modes is None:
        return
    width = stage.modes.into_gamma.shape[1]
    if width != coordinates or len(sources) != tokens * stage.modes.sources:
        raise RequestError(
            f"{where}: `modes` are {stage.modes.sources} sources a token for {width} "
            f"coordinates, but the stage has {len(sources)} sources for {tokens} "
            f"tokens of {coordinates} coordinates."
        )


def _check_cells(stage: Stage, index: IntArray, sources: IntArray, where: str) -> None:
    require_shape("index", index, (-1, _CELL), axes="(pairs, 3)", where=where)
    require_shape("source_index", sources, (-1, _CELL), axes="(S', 3)", where=where)
    if stage.digital_coherence is None:
        raise RequestError(f"{where}: pair cells need `digital_coherence`.")
    require_shape(
        "digital_coherence",
        stage.digital_coherence,
        stage.phi0_rad.shape,
        axes="(pairs,)",
        where=where,
    )
    if stage.edges.orders != (1,):
        raise RequestError(f"{where}: pair cells lock at the first harmonic alone.")
    if int(index[:, 1].min()) < stage.first_token:
        raise RequestError(
            f"{where}: a pair cell is of token {int(index[:, 1].min())}, but the first "
            f"token is {stage.first_token}."
        )
    if len(np.unique(index, axis=0)) < len(index):
        raise RequestError(f"{where}: a pair cell stands twice.")
