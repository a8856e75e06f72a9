"""Routes of FSN and Kuramoto attention, against loops over their equations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oscc.errors import RequestError
from oscc.ir.interpret import field
from oscc.lower import fsn, kuramoto, lower_layer
from oscc.testing.tiny import attention, tiny_model
from oscc.trace import LayerTrace, trace


def traced(family: str = "fsn", tokens: int = 6, **settings: object) -> LayerTrace:
    model = tiny_model(family, **settings)  # type: ignore[arg-type]
    return trace(model, list(range(tokens))).layers[0]


def test_shifted_rows_lose_what_meets_no_successor() -> None:
    weights = attention(np.random.default_rng(0), 3, 7)
    moved = fsn.shifted(weights)
    own = np.diagonal(weights, axis1=1, axis2=2)
    assert np.abs(moved.sum(axis=2) - (1.0 - own)).max() < 1e-15
    assert not moved[:, 0].any()
    assert not moved[:, :, 0].any()
    assert not np.triu(moved, 1).any()
    for t in range(7):
        for v in range(1, t + 1):
            assert (moved[:, t, v] == weights[:, t, v - 1]).all()


def test_nothing_wraps_to_the_other_end() -> None:
    """A weight in the last column alone would come back in the first by a roll."""
    weights = np.zeros((1, 3, 3))
    weights[0, 2, 2] = 1.0
    assert not fsn.shifted(weights).any()


def test_renormalised_rows_sum_to_one_but_the_first() -> None:
    weights = fsn.shifted(attention(np.random.default_rng(1), 2, 5))
    total = fsn.renormalised(weights).sum(axis=2)
    assert not total[:, 0].any()
    assert np.abs(total[:, 1:] - 1.0).max() < 1e-15


@pytest.mark.parametrize("tokens", [1, 6])
def test_field_of_fsn_is_the_sum_over_tokens_and_successors(tokens: int) -> None:
    """C_n = w0 sum_{u<=t} A_tu z_u^n + w1 sum_{u<t} A_tu z_{u+1}^n, by loops."""
    layer = traced(tokens=tokens, harmonics=3)
    stage = lower_layer("fsn", "flow", 0, layer)
    assert layer.successor_gamma is not None
    assert layer.successor_alpha_rad is not None
    real, imaginary = field(stage)
    z = np.exp(1j * layer.theta_rad)
    present = layer.present_gamma * np.exp(1j * layer.present_alpha_rad)
    successor = layer.successor_gamma * np.exp(1j * layer.successor_alpha_rad)
    for n in (1, 2, 3):
        for t in range(tokens):
            for j in range(4):
                row = layer.weights[j // 2, t]
                wanted = present[n - 1, j] * sum(
                    row[u] * z[u, j] ** n for u in range(t + 1)
                ) + successor[n - 1, j] * sum(
                    row[u] * z[u + 1, j] ** n for u in range(t)
                )
                found = real[n - 1, t, j] + 1j * imaginary[n - 1, t, j]
                assert abs(found - wanted) < 1e-13


def test_coupling_to_the_successor_is_frustration_from_the_data() -> None:
    """Im(conj(z_t) w1 z_{u+1}) = gamma sin(theta_u - theta_t + delta_u + alpha)."""
    layer = traced(harmonics=1)
    _, successor = fsn.couplings(layer)
    theta, t, j = layer.theta_rad, 4, 3
    by_successor = sum(
        successor.weights[1, t, v] * np.sin(theta[v, j] - theta[t, j])
        for v in range(t + 1)
    )
    by_frustration = sum(
        layer.weights[1, t, u]
        * np.sin(theta[u, j] - theta[t, j] + (theta[u + 1, j] - theta[u, j]))
        for u in range(t)
    )
    assert abs(by_successor - by_frustration) < 1e-12


def test_kuramoto_is_one_route_of_order_one_without_frustration() -> None:
    (coupling,) = kuramoto.couplings(traced("kuramoto"))
    assert coupling.route == "present"
    assert coupling.harmonics.tolist() == [1]
    assert (coupling.gamma == 1.0).all()
    assert not coupling.alpha_rad.any()


def test_fsn_without_successor_coefficients_is_refused() -> None:
    layer = replace(traced(), successor_gamma=None)
    with pytest.raises(RequestError) as caught:
        fsn.couplings(layer)
    assert str(caught.value) == (
        "An FSN layer needs successor coefficients; there are none."
    )


def test_an_unknown_rule_for_the_successor_is_refused() -> None:
    with pytest.raises(RequestError, match="`successor` must be one of dropped, renor"):
        fsn.couplings(traced(), "wrapped")
