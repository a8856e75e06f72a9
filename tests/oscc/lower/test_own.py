"""Layers that state their own coupling: every form means the one equation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from oscc.errors import RequestError
from oscc.ir import Edges, Stage
from oscc.ir.interpret import field, interpret
from oscc.lower import PhaseCoupling, lower_layer, stage_from
from oscc.testing.flat import modes_stage
from oscc.testing.tiny import tiny_model, tiny_program, tiny_stage
from oscc.trace import trace

SHAPE = (3, 2)


def stated(**changes: Any) -> PhaseCoupling:
    """Three tokens, two coordinates, one head, one harmonic."""
    random = np.random.default_rng(1)
    values: dict[str, Any] = {
        "theta_rad": random.uniform(-3, 3, SHAPE),
        "gain_rad": random.uniform(-2, 2, SHAPE),
        "digital_rad": random.uniform(-3, 3, SHAPE),
        "weights": random.uniform(-1, 1, (1, 3, 3)),
    }
    return PhaseCoupling(**(values | changes))


def listed(**changes: Any) -> PhaseCoupling:
    pairs = np.random.default_rng(2).normal(size=(1, 6, 6)) * (1 + 1j)
    return stated(**({"weights": None, "coefficients": pairs} | changes))


@pytest.mark.parametrize("update", ["flow", "euler"])
def test_what_a_family_lowers_can_be_stated(update: str) -> None:
    layer = trace(tiny_model("kuramoto", update, seed=3), range(5)).layers[0]
    own = PhaseCoupling(
        theta_rad=layer.theta_rad,
        gain_rad=layer.gain_rad,
        digital_rad=layer.next_rad,
        weights=layer.weights,
        update=update,
        causal=True,
    )
    wanted = lower_layer("kuramoto", update, 0, layer)
    assert tiny_program(stage_from(own)) == tiny_program(wanted)
    other = stage_from(own, "my.layer", update="flow", fidelity="summed")
    assert (other.name, other.update, other.fidelity) == ("my.layer", "flow", "summed")


def test_coefficients_are_the_pairs_of_the_equation() -> None:
    """Omega + g sum_n sum_b |c| sin(n theta_b + arg c - n phi), by loops."""
    random = np.random.default_rng(5)
    shape = (2, 6, 4)  # orders 1 and 3; targets 3 x 2; sources 2 x 2
    pairs = random.normal(size=shape) + 1j * random.normal(size=shape)
    pairs[random.random(shape) < 0.3] = 0
    own = stated(
        weights=None,
        coefficients=pairs,
        harmonics=[1, 3],
        theta_rad=random.uniform(-3, 3, (2, 2)),
        phi0_rad=random.uniform(-3, 3, SHAPE),
        detuning_rad=random.uniform(-1, 1, SHAPE),
        update="euler",
    )
    stage = stage_from(own)
    assert stage.grid == SHAPE
    assert stage.edges.target.size == np.count_nonzero(pairs)
    theta = np.ravel(np.asarray(own.theta_rad))
    start = np.ravel(np.asarray(own.phi0_rad))
    for a in range(6):
        pull = sum(
            abs(pairs[k, a, b])
            * np.sin(n * theta[b] + np.angle(pairs[k, a, b]) - n * start[a])
            for k, n in enumerate((1, 3))
            for b in range(4)
        )
        step = np.ravel(own.detuning_rad)[a] + np.ravel(own.gain_rad)[a] * pull
        assert interpret(stage)[a] - start[a] == pytest.approx(step, abs=1e-12)


def test_weights_and_their_own_coefficients_are_one_layer() -> None:
    grid = tiny_stage(2, routes=("present",), harmonics=(1, 2), heads=2)
    (coupling,) = grid.factored
    tokens, k = grid.grid
    pairs = np.zeros((2, tokens, k, tokens, k), complex)
    for j in range(k):
        head = coupling.head_of_coordinate[j]
        for n in range(2):
            pairs[n, :, j, :, j] = coupling.weights[head] * coupling.coefficients[n, j]
    shared = {
        "theta_rad": grid.theta_rad,
        "gain_rad": grid.gain_rad,
        "digital_rad": grid.digital_rad,
        "causal": True,
    }
    one = stage_from(
        PhaseCoupling(
            weights=coupling.weights,
            gamma=coupling.gamma,
            alpha_rad=coupling.alpha_rad,
            **shared,
        )
    )
    flat = (2, tokens * k, tokens * k)
    other = stage_from(PhaseCoupling(coefficients=pairs.reshape(flat), **shared))
    np.testing.assert_allclose(np.ravel(field(one)), np.ravel(field(other)), atol=1e-13)
    np.testing.assert_allclose(
        interpret(one), interpret(other).reshape(tokens, k), atol=1e-9
    )


def test_edges_are_taken_as_they_are() -> None:
    plain = modes_stage(4)
    own = PhaseCoupling(
        theta_rad=plain.theta_rad.reshape(3, 2),
        phi0_rad=plain.phi0_rad.reshape(3, 4),
        gain_rad=plain.gain_rad.reshape(3, 4),
        digital_rad=plain.digital_rad.reshape(3, 4),
        edges=plain.edges,
        causal=True,
    )
    assert tiny_program(stage_from(own, plain.name)) == tiny_program(plain)


def test_tensors_with_gradients_are_taken_too() -> None:
    arrays = stated()
    tensors = stated(
        **{
            name: torch.tensor(np.asarray(getattr(arrays, name)), requires_grad=True)
            for name in ("theta_rad", "gain_rad", "digital_rad", "weights")
        }
    )
    assert tiny_program(stage_from(tensors)) == tiny_program(stage_from(arrays))


EDGES = Edges(
    np.array([0]), np.array([1]), np.array([1]), np.array([1.0]), np.array([0.0])
)
WRONG: list[tuple[PhaseCoupling, str]] = [
    (stated(weights=None), "in one form of weights, coefficients, edges, not in none"),
    (stated(edges=EDGES), "not in weights and edges"),
    (listed(gamma=[[1.0]]), "`gamma` goes with `weights`; coefficients hold it"),
    (listed(alpha_rad=[[1.0]]), "`alpha_rad` goes with `weights`"),
    (stated(weights=None, edges=EDGES, harmonics=[1]), "edges hold it already"),
    (stated(update="probe"), "`update` must be one of euler, flow, but is 'probe'"),
    (stated(gain_rad=np.ones((2, 2))), "`gain_rad` must have shape .T, K. = .3, 2."),
    (stated(digital_rad=np.ones(6)), "`digital_rad` must have shape"),
    (stated(theta_rad=np.ones(6)), "`theta_rad` must have shape .S, M."),
    (stated(weights=np.ones((1, 3, 4))), "`weights` must have shape"),
    (stated(weights=np.full((1, 3, 3), np.nan)), "holds 9 NaN"),
    (listed(coefficients=np.ones((1, 6, 5))), "`coefficients` must have shape"),
    (listed(harmonics=[1, 2]), "`harmonics` must have shape"),
    (listed(coefficients=np.zeros((1, 6, 6))), "at least one edge"),
    (stated(causal=True), "the stage is causal"),
    (listed(causal=True), "the stage is causal"),
]


@pytest.mark.parametrize(("coupling", "match"), WRONG)
def test_what_is_no_layer_is_refused_with_the_stage(
    coupling: PhaseCoupling, match: str
) -> None:
    with pytest.raises(RequestError, match=match) as caught:
        stage_from(coupling, "mine")
    if "at least one edge" not in match and "NaN" not in match:
        assert str(caught.value).startswith("stage mine")


def test_sources_and_targets_may_be_other_banks() -> None:
    stage: Stage = stage_from(
        stated(
            theta_rad=np.zeros((5, 2)),
            phi0_rad=np.ones(SHAPE),
            weights=np.ones((2, 3, 5)),
        )
    )
    assert stage.theta_rad.shape == (5, 2)
    assert stage.grid == SHAPE
