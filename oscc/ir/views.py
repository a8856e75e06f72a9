"""Views of a stage: the expanded edge list, counts of pairs, a graph.

A coupled pair is one target oscillator and one source oscillator with any coefficient
other than zero; harmonics and routes merge, and the self pair counts. A pair term is
one (pair, harmonic, route).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from oscc.arrays import BoolArray, FloatArray, IntArray
from oscc.errors import RequestError
from oscc.ir.stage import Stage

if TYPE_CHECKING:
    import networkx

_EDGES = 65_536
CELL_MACS = 9
"""Of sqrt(1 - x^2): one multiply-accumulate, and 8 for the root, as an exponential."""


@dataclass(frozen=True, slots=True, eq=False)
class PairTerms:
    """A chunk of the expanded edge list, all arrays of shape (pairs,).

    `target` and `source` are rows of the flat banks, t*K + j for grids; `route` indexes
    the stage's couplings. strength * exp(i frustration_rad) is the pair's coefficient
    c_n, the gain of the target left out.
    """

    target: IntArray
    source: IntArray
    harmonic: IntArray
    route: IntArray
    strength: FloatArray
    frustration_rad: FloatArray


def pairs(stage: Stage, *, tokens: int = 8) -> Iterator[PairTerms]:
    """Expanded edge list in chunks of target tokens, zero coefficients left out.

    Args:
        tokens: Target tokens a chunk; memory grows with it.

    Yields:
        Chunks in ascending order of target.
    """
    if stage.flat:
        yield from _listed(stage)
        return
    for first in range(0, stage.phi0_rad.shape[0], tokens):
        last = min(first + tokens, stage.phi0_rad.shape[0])
        parts = [
            _terms(stage, route, number, first, last)
            for route in range(len(stage.couplings))
            for number in range(stage.factored[route].harmonics.size)
        ]
        order = np.argsort(np.concatenate([p.target for p in parts]), kind="stable")
        yield PairTerms(
            *(
                np.concatenate([getattr(p, name) for p in parts])[order]
                for name in PairTerms.__slots__
            )
        )


def _listed(stage: Stage) -> Iterator[PairTerms]:
    edges = stage.edges
    kept = np.flatnonzero(edges.gamma)
    for first in range(0, len(kept), _EDGES):
        part = kept[first : first + _EDGES]
        yield PairTerms(
            target=edges.target[part],
            source=edges.source[part],
            harmonic=edges.harmonic[part],
            route=np.zeros(part.size, dtype=np.int64),
            strength=edges.gamma[part],
            frustration_rad=edges.alpha_rad[part],
        )


def _terms(stage: Stage, route: int, number: int, first: int, last: int) -> PairTerms:
    coupling = stage.factored[route]
    coordinates = stage.phi0_rad.shape[1]
    shared = coupling.weights[coupling.head_of_coordinate, first:last]
    strength = shared * coupling.gamma[number][:, None, None]
    j, t, u = np.nonzero(strength)
    return PairTerms(
        target=(t + first) * coordinates + j,
        source=u * coordinates + j,
        harmonic=np.full(j.size, coupling.harmonics[number]),
        route=np.full(j.size, route),
        strength=strength[j, t, u],
        frustration_rad=coupling.alpha_rad[number][j],
    )


def edges_of(stage: Stage, row: int) -> IntArray:
    """Numbers of the edges of one target of a flat bank, those of zero left out.

    Args:
        row: Row of the target.

    Example:
        >>> from oscc.testing.flat import modes_stage
        >>> edges_of(modes_stage(modes=2), 3).tolist()
        [6, 7]
    """
    first, last = np.searchsorted(stage.edges.target, [row, row + 1])
    return np.asarray(first + np.flatnonzero(stage.edges.gamma[first:last]))


def pair_terms(stage: Stage) -> int:
    """Number of coefficients other than zero: pairs, harmonics and routes apart."""
    if stage.flat:
        return int(np.count_nonzero(stage.edges.gamma))
    return int(terms_of_coordinates(stage).sum())


def pair_macs(stage: Stage) -> int:
    """Real multiply-accumulates that a digital sum of all pair terms takes.

    A real weight times a phasor is two, as is a complex constant. A pair of a list
    turns its phasor by an offset of its own, which no sum over sources shares: four.
    What several readers receive is one sum. A pair cell stands for one square root.

    Example:
        >>> from oscc.testing.flat import modes_stage
        >>> stage = modes_stage(tokens=1, coordinates=4, modes=2)
        >>> pair_terms(stage), pair_macs(stage)
        (8, 32)
    """
    if stage.readout == "coherence":
        return CELL_MACS * stage.targets
    terms = 2 * pair_terms(stage)
    if not stage.flat:
        return terms
    edges = stage.edges
    turned = (edges.alpha_rad != 0) & (stage.theta_rad[edges.source] != 0)
    terms += 2 * int(np.count_nonzero(turned & (edges.gamma != 0)))
    return terms // stage.readers


def terms_of_coordinates(stage: Stage) -> IntArray:
    """Number of pair terms of each coordinate, shape (K,)."""
    total = np.zeros(stage.phi0_rad.shape[1], dtype=np.int64)
    for coupling in stage.factored:
        weights = (coupling.weights != 0).sum(axis=(1, 2))
        active = (coupling.gamma != 0).sum(axis=0)
        total += weights[coupling.head_of_coordinate] * active
    return total


def coupled(stage: Stage) -> BoolArray:
    """Whether target (t, j) and source (u, j) are coupled, shape (K, T, S)."""
    coordinates = stage.phi0_rad.shape[1]
    shape = (coordinates, stage.phi0_rad.shape[0], stage.theta_rad.shape[0])
    out = np.zeros(shape, dtype=bool)
    for coupling in stage.factored:
        active = (coupling.gamma != 0).any(axis=0)
        shared = coupling.weights[coupling.head_of_coordinate] != 0
        out |= shared & active[:, None, None]
    return out


def coupled_pairs(stage: Stage) -> int:
    """Number of coupled pairs of a stage."""
    if stage.flat:
        edges = stage.edges
        there = edges.gamma != 0
        key = edges.target * stage.theta_rad.size + edges.source
        return int(np.unique(key[there]).size)
    return int(coupled(stage).sum())


def to_networkx(
    stage: Stage, *, coordinate: int | None = None, limit: int = 100_000
) -> networkx.MultiDiGraph[Any]:
    """Graph with an edge for every pair term, from source to target.

    Nodes are `("source", u, j)` and `("target", t, j)`, or the entries of the index of
    a flat bank behind its name; one without coupling is kept and carries
    `isolated=True`. Edges carry `harmonic`, `route`, `strength` and
    `frustration_rad`.

    Args:
        coordinate: One coordinate alone, or all of them.
        limit: Largest number of edges that is built.

    Raises:
        RequestError: the graph would have more edges than the limit.
    """
    import networkx

    if coordinate is not None and not 0 <= coordinate < stage.grid[1]:
        raise RequestError(f"Coordinate {coordinate} is not in 0..{stage.grid[1] - 1}.")
    if stage.flat:
        return _listed_graph(stage, coordinate, limit)
    columns = stage.phi0_rad.shape[1]
    wanted = range(columns) if coordinate is None else (coordinate,)
    edges = int(terms_of_coordinates(stage)[list(wanted)].sum())
    _require_few(stage, edges, limit)
    graph: networkx.MultiDiGraph[Any] = networkx.MultiDiGraph(stage=stage.name)
    for j in wanted:
        for u in range(stage.theta_rad.shape[0]):
            graph.add_node(("source", u, j), theta_rad=float(stage.theta_rad[u, j]))
        for row, phase in enumerate(stage.phi0_rad[:, j].tolist()):
            graph.add_node(("target", stage.begins + row, j), phi0_rad=phase)
    _add_edges(graph, stage, coordinate)
    for node in graph.nodes:
        graph.nodes[node]["isolated"] = graph.degree(node) == 0
    return graph


def _listed_graph(
    stage: Stage, coordinate: int | None, limit: int
) -> networkx.MultiDiGraph[Any]:
    import networkx

    assert stage.index is not None
    assert stage.source_index is not None
    wanted = np.ones(stage.targets, dtype=bool)
    if coordinate is not None:
        wanted = stage.index[:, 1] == coordinate
    kept = wanted[stage.edges.target] & (stage.edges.gamma != 0)
    _require_few(stage, int(np.count_nonzero(kept)), limit)
    graph: networkx.MultiDiGraph[Any] = networkx.MultiDiGraph(stage=stage.name)
    sources = [("source", *map(int, row)) for row in stage.source_index]
    targets = [("target", *map(int, row)) for row in stage.index]
    for node, phase in zip(sources, stage.theta_rad, strict=True):
        graph.add_node(node, theta_rad=float(phase))
    for row in np.flatnonzero(wanted):
        graph.add_node(targets[row], phi0_rad=float(stage.phi0_rad[row]))
    edges = stage.edges
    for k in np.flatnonzero(kept):
        graph.add_edge(
            sources[int(edges.source[k])],
            targets[int(edges.target[k])],
            harmonic=int(edges.harmonic[k]),
            route="edges",
            strength=float(edges.gamma[k]),
            frustration_rad=float(edges.alpha_rad[k]),
        )
    for node in graph.nodes:
        graph.nodes[node]["isolated"] = graph.degree(node) == 0
    return graph


def _require_few(stage: Stage, edges: int, limit: int) -> None:
    if edges > limit:
        raise RequestError(
            f"stage {stage.name}: a graph of {edges} edges is above the limit of "
            f"{limit}. Give one coordinate, or raise the limit."
        )


def _add_edges(
    graph: networkx.MultiDiGraph[Any], stage: Stage, coordinate: int | None
) -> None:
    columns = stage.phi0_rad.shape[1]
    for chunk in pairs(stage):
        token, column = np.divmod(chunk.target, columns)
        kept = np.arange(column.size)
        if coordinate is not None:
            kept = np.flatnonzero(column == coordinate)
        for k in kept:
            j = int(column[k])
            graph.add_edge(
                ("source", int(chunk.source[k]) // columns, j),
                ("target", stage.begins + int(token[k]), j),
                harmonic=int(chunk.harmonic[k]),
                route=stage.factored[int(chunk.route[k])].route,
                strength=float(chunk.strength[k]),
                frustration_rad=float(chunk.frustration_rad[k]),
            )
