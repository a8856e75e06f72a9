"""Pairs, counts and graphs, against loops over the definition of a coefficient."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from oscc.errors import RequestError
from oscc.ir import Coupling, Stage
from oscc.ir.interpret import field
from oscc.ir.views import coupled, coupled_pairs, pair_terms, pairs, to_networkx
from oscc.testing.strategies import dynamic_stages
from oscc.testing.tiny import tiny_stage


def by_hand(stage: Stage) -> dict[tuple[int, int, int, int, int], complex]:
    """Coefficient of each (target token, source token, coordinate, harmonic, route)."""
    found = {}
    for route, coupling in enumerate(stage.couplings):
        heads, targets, sources = coupling.weights.shape
        width = stage.phi0_rad.shape[1] // heads
        for k, n in enumerate(coupling.harmonics.tolist()):
            for j in range(stage.phi0_rad.shape[1]):
                for t in range(targets):
                    for u in range(sources):
                        weight = coupling.weights[j // width, t, u]
                        gamma = coupling.gamma[k, j]
                        if weight != 0 and gamma != 0:
                            turn = np.exp(1j * coupling.alpha_rad[k, j])
                            found[t, u, j, n, route] = weight * gamma * turn
    return found


def sparse(stage: Stage, seed: int) -> Stage:
    """The stage with a third of its weights and strengths set to zero."""
    random = np.random.default_rng(seed)
    thin = [
        replace(
            c,
            weights=c.weights * (random.random(c.weights.shape) > 1 / 3),
            gamma=c.gamma * (random.random(c.gamma.shape) > 1 / 3),
        )
        for c in stage.couplings
    ]
    return replace(stage, couplings=tuple(thin))


def listed(
    stage: Stage, tokens: int = 8
) -> dict[tuple[int, int, int, int, int], complex]:
    out = {}
    columns = stage.phi0_rad.shape[1]
    for chunk in pairs(stage, tokens=tokens):
        for k in range(chunk.target.size):
            t, j = divmod(int(chunk.target[k]), columns)
            u, other = divmod(int(chunk.source[k]), columns)
            assert j == other
            key = (t, u, j, int(chunk.harmonic[k]), int(chunk.route[k]))
            assert key not in out
            out[key] = chunk.strength[k] * np.exp(1j * chunk.frustration_rad[k])
    return out


@given(dynamic_stages())
def test_pairs_are_the_coefficients_and_nothing_else(stage: Stage) -> None:
    thin = sparse(stage, stage.targets)
    wanted, found = by_hand(thin), listed(thin, tokens=2)
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        assert abs(found[key] - value) <= 4 * np.finfo(float).eps * abs(value)
    assert pair_terms(thin) == len(wanted)
    merged = {key[:3] for key in wanted}
    assert coupled_pairs(thin) == len(merged)
    assert {tuple(int(i) for i in place) for place in np.argwhere(coupled(thin))} == {
        (j, t, u) for t, u, j in merged
    }


@given(dynamic_stages())
def test_pairs_sum_to_the_factored_form(stage: Stage) -> None:
    """C_n = sum over pairs of strength exp(i (n theta + frustration))."""
    columns = stage.phi0_rad.shape[1]
    sums: dict[tuple[int, int], complex] = defaultdict(complex)
    for chunk in pairs(stage):
        theta = stage.theta_rad.ravel()[chunk.source]
        terms = chunk.strength * np.exp(
            1j * (chunk.harmonic * theta + chunk.frustration_rad)
        )
        for target, harmonic, term in zip(
            chunk.target, chunk.harmonic, terms, strict=True
        ):
            sums[int(target), int(harmonic)] += term
    real, imaginary = field(stage)
    for slot, order in enumerate(stage.harmonics):
        for t in range(stage.phi0_rad.shape[0]):
            for j in range(columns):
                found = real[slot, t, j] + 1j * imaginary[slot, t, j]
                assert abs(found - sums[t * columns + j, order]) < 1e-13


def test_row_receives_column_sends_and_frustration_leads() -> None:
    """Asymmetric A, alpha other than zero, order 2: the convention in one number.

    Token 1 receives .25 from token 0 with offset .3: pull .25 sin(2 (0.5 - 2.0) + .3);
    token 0 receives nothing.
    """
    coupling = Coupling(
        route="present",
        harmonics=np.array([2]),
        weights=np.array([[[0.0, 0.0], [0.25, 0.0]]]),
        gamma=np.array([[-2.0]]),
        alpha_rad=np.array([[0.3]]),
    )
    zero = np.zeros((2, 1))
    stage = Stage(
        name="layer.0.coupling",
        theta_rad=np.array([[0.5], [0.7]]),
        phi0_rad=np.array([[1.0], [2.0]]),
        gain_rad=np.array([[5.0], [3.0]]),
        detuning_rad=zero,
        couplings=(coupling,),
        digital_rad=zero,
        model_update="euler",
        update="probe",
    )
    from oscc.ir.interpret import interpret

    moved = interpret(stage) - stage.phi0_rad
    assert moved[0, 0] == 0.0
    wanted = 3.0 * -2.0 * 0.25 * np.sin(2 * (0.5 - 2.0) + 0.3)
    assert abs(moved[1, 0] - wanted) < 1e-15
    (chunk,) = pairs(stage)
    assert (chunk.target.tolist(), chunk.source.tolist()) == ([1], [0])
    assert (chunk.strength.tolist(), chunk.frustration_rad.tolist()) == ([-0.5], [0.3])


def test_chunks_ascend_and_do_not_depend_on_their_size() -> None:
    stage = tiny_stage(tokens=5)
    whole = np.concatenate([c.target for c in pairs(stage, tokens=99)])
    parts = [c.target for c in pairs(stage, tokens=2)]
    assert len(parts) == 3
    assert np.concatenate(parts).tolist() == whole.tolist()
    assert (np.diff(whole) >= 0).all()


def test_graph_has_an_edge_a_term_with_its_attributes() -> None:
    stage = sparse(tiny_stage(), 3)
    graph = to_networkx(stage)
    wanted = by_hand(stage)
    assert graph.number_of_edges() == len(wanted)
    for source, target, data in graph.edges(data=True):
        assert (source[0], target[0]) == ("source", "target")
        route = [c.route for c in stage.couplings].index(data["route"])
        key = (target[1], source[1], target[2], data["harmonic"], route)
        assert source[2] == target[2]
        found = data["strength"] * np.exp(1j * data["frustration_rad"])
        assert abs(found - wanted[key]) < 1e-15
        for value in data.values():
            assert type(value) in (int, float, str)


def test_a_token_without_coupling_stays_and_is_flagged() -> None:
    stage = tiny_stage(tokens=3, routes=("present",))
    weights = np.array(stage.couplings[0].weights)
    weights[:, 1, :] = 0.0
    cut = replace(stage.couplings[0], weights=weights)
    graph = to_networkx(replace(stage, couplings=(cut,)))
    targets = {n: d for n, d in graph.nodes(data=True) if n[0] == "target"}
    assert len(targets) == 12
    for node, data in targets.items():
        assert data["isolated"] == (node[1] == 1)
    assert sum(node[0] == "source" for node in graph.nodes) == 12
    assert graph.nodes["target", 1, 2]["phi0_rad"] == stage.phi0_rad[1, 2]


def test_a_source_that_nobody_reads_is_flagged_too() -> None:
    stage = tiny_stage(tokens=3, routes=("present",))
    weights = np.array(stage.couplings[0].weights)
    weights[:, :, 2] = 0.0
    cut = replace(stage.couplings[0], weights=weights)
    graph = to_networkx(replace(stage, couplings=(cut,)), coordinate=0)
    assert graph.nodes["source", 2, 0]["isolated"]
    assert not graph.nodes["source", 1, 0]["isolated"]


def test_one_coordinate_alone() -> None:
    stage = tiny_stage()
    graph = to_networkx(stage, coordinate=2)
    assert {node[2] for node in graph.nodes} == {2}
    assert graph.number_of_edges() == sum(key[2] == 2 for key in by_hand(stage))


def test_the_limit_counts_the_edges_that_would_be_built() -> None:
    stage = tiny_stage()
    gamma = np.array(stage.couplings[0].gamma)
    gamma[:, 1:] = 0.0
    lone = replace(stage, couplings=(replace(stage.couplings[0], gamma=gamma),))
    edges = pair_terms(lone)
    assert to_networkx(lone, coordinate=0, limit=edges).number_of_edges() == edges
    with pytest.raises(RequestError) as caught:
        to_networkx(lone, coordinate=0, limit=edges - 1)
    assert str(caught.value) == (
        f"stage layer.0.coupling: a graph of {edges} edges is above the limit of "
        f"{edges - 1}. Give one coordinate, or raise the limit."
    )


def test_a_coordinate_that_does_not_exist_is_refused() -> None:
    with pytest.raises(RequestError, match=r"Coordinate 4 is not in 0\.\.3\."):
        to_networkx(tiny_stage(), coordinate=4)
