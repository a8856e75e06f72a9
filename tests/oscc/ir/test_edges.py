"""Flat banks coupled by edges: meaning, checks, views, file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oscc.errors import RequestError
from oscc.ir import Coupling, Edges, Stage
from oscc.ir.codec import decode, encode, to_parts
from oscc.ir.interpret import interpret
from oscc.ir.outline import outline
from oscc.ir.views import coupled_pairs, pair_terms, pairs, to_networkx
from oscc.testing.flat import cells_stage, grid_index, modes_stage
from oscc.testing.tiny import tiny_program, tiny_stage


def as_edges(stage: Stage) -> Stage:
    """A grid stage of shared weights, with every pair term listed on its own."""
    parts = list(pairs(stage))
    terms = {
        name: np.concatenate([getattr(p, name) for p in parts])
        for name in ("target", "source", "harmonic", "strength", "frustration_rad")
    }
    order = np.argsort(terms["target"], kind="stable")
    edges = Edges(
        terms["target"][order],
        terms["source"][order],
        terms["harmonic"][order],
        terms["strength"][order],
        terms["frustration_rad"][order],
    )
    tokens, coordinates = stage.grid
    index = grid_index(tokens, coordinates)
    return Stage(
        name=stage.name,
        theta_rad=stage.theta_rad.ravel(),
        phi0_rad=stage.phi0_rad.ravel(),
        gain_rad=stage.gain_rad.ravel(),
        detuning_rad=stage.detuning_rad.ravel(),
        couplings=(edges,),
        digital_rad=stage.digital_rad.ravel(),
        index=index,
        source_index=index,
    )


@pytest.mark.parametrize("update", ["flow", "euler"])
def test_edges_mean_what_weights_mean(update: str) -> None:
    grid = tiny_stage(3, routes=("present",), harmonics=(1, 2), model_update=update)
    flat = Stage(**{**_fields(as_edges(grid)), "model_update": update})
    assert flat.grid == grid.grid
    np.testing.assert_allclose(
        interpret(flat).reshape(flat.grid), interpret(grid), rtol=0, atol=1e-10
    )


def _fields(stage: Stage) -> dict[str, Any]:
    return {name: getattr(stage, name) for name in Stage.__slots__}


@pytest.mark.parametrize("backend", ["phase", "circuit"])
def test_every_backend_adds_the_edges_alike(backend: str) -> None:
    from oscc_backends import circuit, phase

    drive = {"phase": phase.drive, "circuit": circuit.drive}[backend]
    grid = tiny_stage(4, routes=("present",), harmonics=(1, 3))
    np.testing.assert_allclose(drive(as_edges(grid)), drive(grid), atol=1e-13)
    stage = modes_stage(2)
    edges, out = stage.edges, np.zeros((stage.targets, 2), complex)
    for e in range(edges.target.size):
        a, b, n = int(edges.target[e]), int(edges.source[e]), int(edges.harmonic[e])
        c = edges.gamma[e] * np.exp(1j * (edges.alpha_rad[e] + n * stage.theta_rad[b]))
        out[a, n - 1] += stage.gain_rad[a] * c
    np.testing.assert_allclose(drive(stage), out, atol=1e-13)


def test_views_count_the_edges() -> None:
    grid = tiny_stage(5, routes=("present",), harmonics=(1, 2))
    flat = as_edges(grid)
    assert coupled_pairs(flat) == coupled_pairs(grid)
    assert pair_terms(flat) == pair_terms(grid)
    graph = to_networkx(modes_stage())
    assert graph.number_of_edges() == 3 * 4 * 2
    assert graph.has_edge(("source", 2, 1), ("target", 2, 3))
    assert not graph.has_edge(("source", 1, 1), ("target", 2, 3))
    with pytest.raises(RequestError, match="above the limit"):
        to_networkx(modes_stage(), limit=3)


@pytest.mark.parametrize("stage", [modes_stage(), cells_stage()], ids=lambda s: s.name)
def test_flat_stages_survive_the_file(stage: Stage) -> None:
    program = tiny_program(stage)
    data = encode(program)
    back = decode(data)
    assert back == program
    assert encode(back) == data
    for name in ("index", "source_index", "digital_coherence"):
        np.testing.assert_array_equal(
            getattr(back.stages[0], name), getattr(stage, name)
        )
    assert outline(program)["stages"][0]["couplings"][0]["form"] == "edges"


def test_programs_of_before_are_the_same_bytes() -> None:
    arrays, header = to_parts(tiny_program())
    assert not [name for name in arrays if "index" in name or "edges" in name]
    assert "first_token" not in header["stages"][0]


def test_a_first_token_moves_what_causality_forbids() -> None:
    whole = tiny_stage(1, tokens=4)
    last = [
        Coupling(c.route, c.harmonics, c.weights[:, 3:], c.gamma, c.alpha_rad)
        for c in whole.factored
    ]
    row = {
        name: getattr(whole, name)[3:]
        for name in ("phi0_rad", "gain_rad", "detuning_rad", "digital_rad")
    }
    fields = {**_fields(whole), **row, "couplings": tuple(last)}
    one = Stage(**{**fields, "first_token": 3})
    np.testing.assert_allclose(interpret(one), interpret(whole)[3:], atol=1e-12)
    assert decode(encode(tiny_program(one))).stages[0].first_token == 3
    with pytest.raises(RequestError, match="token 2 receives from the later token 3"):
        Stage(**{**fields, "first_token": 2})


def edges(**changes: Any) -> Edges:
    values: dict[str, Any] = {
        "target": [0, 0, 1],
        "source": [0, 1, 1],
        "harmonic": [1, 1, 2],
        "gamma": [1.0, 2.0, 3.0],
        "alpha_rad": [0.0, 0.1, 0.2],
    }
    return Edges(**(values | changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"target": [1, 0, 1]}, "must ascend"),
        ({"target": [0.0, 0.5, 1.0]}, "whole numbers"),
        ({"source": [0, 0, 1]}, "order 1 stands twice"),
        ({"source": [0, -1, 1]}, "below 0"),
        ({"harmonic": [1, 65, 1]}, "orders of 1 to 64"),
        ({"gamma": [1.0, np.nan, 1.0]}, "1 NaN"),
        ({"alpha_rad": [0.0]}, "shape"),
    ],
)
def test_edges_that_are_none_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(RequestError, match=words):
        edges(**changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"index": None}, "need `index`"),
        ({"source_index": None}, "need `source_index`"),
        ({"index": grid_index(3, 4)[::-1]}, "every coordinate of successive"),
        (
            {"theta_rad": np.zeros(5), "source_index": grid_index(5, 1)},
            "names source 5",
        ),
        ({"theta_rad": np.zeros((6, 1))}, "shape"),
        ({"first_token": 1}, "names their tokens"),
        ({"digital_coherence": np.zeros(12)}, "for pair cells"),
        ({"source_index": grid_index(3, 2)[::-1]}, "from the later token"),
    ],
)
def test_banks_that_do_not_fit_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(RequestError, match=words):
        modes_stage(**changes)


def test_pair_cells_are_checked() -> None:
    with pytest.raises(RequestError, match="need `digital_coherence`"):
        cells_stage(digital_coherence=None)
    row = np.arange(3)
    second = Edges(row, row, row + 1, row + 1.0, row * 0.0)
    with pytest.raises(RequestError, match="first harmonic"):
        cells_stage(couplings=(second,))
    with pytest.raises(RequestError, match="stands twice"):
        cells_stage(index=np.zeros((3, 3), np.int64))
    with pytest.raises(RequestError, match="later token"):
        cells_stage(index=np.array([[0, 0, 0], [0, 1, 2], [0, 2, 0]]))
    with pytest.raises(RequestError, match="of token 0, but the first token is 1"):
        cells_stage(first_token=1)
    with pytest.raises(RequestError, match="pair cells, no grid"):
        _ = cells_stage().grid


def test_what_needs_shared_weights_says_so() -> None:
    with pytest.raises(RequestError, match="listed as edges"):
        _ = modes_stage().factored
    with pytest.raises(RequestError, match="no edges"):
        _ = tiny_stage().edges
    with pytest.raises(RequestError, match="listed as edges"):
        Stage(
            **{
                **_fields(tiny_stage()),
                "couplings": (*tiny_stage().couplings, modes_stage().edges),
            }
        )
    with pytest.raises(RequestError, match="for pair cells"):
        tiny_stage(readout="coherence")
    with pytest.raises(RequestError, match="for flat banks"):
        tiny_stage(index=grid_index(2, 2))
