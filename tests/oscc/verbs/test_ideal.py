"""Ideal elements: one count, whatever the order in which simulators ran."""

from __future__ import annotations

from itertools import permutations

import pytest

from oscc.observables import Observables
from oscc.testing.tiny import tiny_program, tiny_stage
from oscc.verbs.ideal import ideal_elements


def seen(engine: str, count: dict[str, int] | None) -> Observables:
    facts = {} if count is None else {"ideal_elements": count}
    return Observables(engine, "0" * 64, {}, facts)


RUNS = [seen("circuit", None), seen("gnucap", {"E": 2}), seen("ngspice", {"B": 1})]


@pytest.mark.parametrize("order", list(permutations(RUNS)))
def test_the_order_of_the_runs_does_not_matter(order: tuple[Observables, ...]) -> None:
    assert ideal_elements(tiny_program(), order) == {"B": 1}


def test_other_simulators_count_where_ngspice_has_not_run() -> None:
    assert ideal_elements(tiny_program(), RUNS[:2]) == {"E": 2}
    assert ideal_elements(tiny_program(), RUNS[:1]) is None


def test_real_cells_have_the_count_of_their_tile() -> None:
    program = tiny_program(tiny_stage(fidelity="oscillators"))
    assert ideal_elements(program, RUNS, tile={"ideal_elements": {"G": 3}}) == {"G": 3}
    assert ideal_elements(program, RUNS) is None
