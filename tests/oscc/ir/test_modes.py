"""Coefficients of modes in the IR: checks, file, graph."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from oscc.errors import RequestError
from oscc.ir import Modes, Stage
from oscc.ir.codec import decode, encode
from oscc.ir.modes import MODE_ARRAYS
from oscc.ir.views import coupled_pairs, pairs, to_networkx
from oscc.lower import lower
from oscc.testing.flat import cells_stage, modes_stage
from oscc.testing.tiny import tiny_model, tiny_program, tiny_stage
from oscc.trace import trace


def lowered() -> Stage:
    found = trace(tiny_model("fsn-mf"), [3, 1, 4])
    return lower(found, tiny_program().device).stages[1]


def modes(**changes: Any) -> Modes:
    one = np.ones((2, 3))
    values: dict[str, Any] = {
        "order": [1, 2],
        "into_gamma": one,
        "into_alpha_rad": one,
        "out_gamma": one.T,
        "out_alpha_rad": one.T,
        "pin_gamma": one,
        "pin_alpha_rad": one,
    }
    return Modes(**(values | changes))


def test_the_coefficients_survive_the_file() -> None:
    program = tiny_program(lowered())
    back = decode(encode(program))
    assert back == program
    assert encode(back) == encode(program)
    one, other = program.stages[0].modes, back.stages[0].modes
    assert one is not None
    assert other is not None
    for name in MODE_ARRAYS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert other.response == "linear"
    square = replace(lowered(), modes=replace(one, response="square"))
    again = decode(encode(tiny_program(square)))
    assert again != program
    assert again.stages[0].modes is not None
    assert again.stages[0].modes.response == "square"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"order": [1.0, 2.0]}, "whole orders"),
        ({"order": [0, 1]}, "orders of 1 to 64"),
        ({"order": [[1, 2]]}, "whole orders"),
        ({"into_gamma": np.ones((3, 3))}, "shape"),
        ({"out_alpha_rad": np.ones((2, 3))}, "shape"),
        ({"pin_alpha_rad": np.ones((1, 3))}, "shape"),
        ({"out_gamma": np.full((3, 2), np.inf)}, "infinite|not finite|inf"),
        ({"response": "cube"}, "linear, square"),
    ],
)
def test_coefficients_that_are_none_are_refused(
    changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(RequestError, match=words):
        modes(**changes)


def test_coefficients_of_another_stage_are_refused() -> None:
    with pytest.raises(RequestError, match="3 sources a token for 3 coordinates"):
        replace(lowered(), modes=modes())
    with pytest.raises(RequestError, match="read as phases"):
        cells_stage(modes=modes())
    with pytest.raises(RequestError, match="for flat banks"):
        tiny_stage(modes=modes())


def test_the_graph_holds_every_pair_of_a_token() -> None:
    stage = lowered()
    graph = to_networkx(stage)
    assert graph.number_of_edges() == 3 * 4 * 8
    listed = sum(len(chunk.target) for chunk in pairs(stage))
    assert listed == graph.number_of_edges()
    met = {(one, other) for one, other in graph.edges()}
    assert len(met) == coupled_pairs(stage)
    _, _, facts = next(iter(graph.out_edges(("source", 1, 6), data=True)))
    assert facts["route"] == "edges"


def test_the_graph_of_one_coordinate() -> None:
    stage = modes_stage(tokens=3, coordinates=4, modes=2)
    graph = to_networkx(stage, coordinate=1, limit=6)
    assert graph.number_of_edges() == 3 * 2
    targets = [node for node in graph.nodes if node[0] == "target"]
    assert targets == [("target", t, 1) for t in range(3)]
    with pytest.raises(RequestError, match=r"not in 0\.\.3"):
        to_networkx(stage, coordinate=4)
