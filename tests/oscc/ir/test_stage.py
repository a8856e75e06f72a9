"""Construction of stages: shapes, words, causality with names, immutability."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest

from oscc.errors import RequestError
from oscc.ir import Coupling, Stage
from oscc.testing.tiny import tiny_stage


def refused(**changes: Any) -> str:
    with pytest.raises(RequestError) as caught:
        replace(tiny_stage(tokens=3, coordinates=4), **changes)
    return str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"gain_rad": np.zeros((3, 5))},
            "stage layer.0.coupling: Argument `gain_rad` must have shape "
            "(T, K) = (3, 4), but has shape (3, 5).",
        ),
        (
            {"phi0_rad": np.zeros((3, 5))},
            "stage layer.0.coupling: Argument `phi0_rad` must have shape (T, K), "
            "but has shape (3, 5).",
        ),
        (
            {"theta_rad": np.zeros(3)},
            "stage layer.0.coupling: Argument `theta_rad` must have shape (S, K), "
            "but has shape (3,).",
        ),
        (
            {"theta_rad": np.zeros((2, 4))},
            "stage layer.0.coupling / route present: Argument `weights` must have "
            "shape (H, T, S) = (any, 3, 2), but has shape (2, 3, 3).",
        ),
        (
            {"phi0_rad": np.full((3, 4), np.nan)},
            "stage layer.0.coupling: Argument `phi0_rad` holds 12 NaN, "
            "first at (0, 0), (0, 1), (0, 2).",
        ),
        (
            {"update": "euler"},
            "stage layer.0.coupling: Argument `update` must be one of flow, probe, "
            "but is 'euler'.",
        ),
        (
            {"scheme": "extrapolate"},
            "stage layer.0.coupling: Argument `scheme` must be one of corrected, "
            "extrapolated, plain, but is 'extrapolate'. Did you mean `extrapolated`?",
        ),
        (
            {"substeps": 0},
            "stage layer.0.coupling: Argument `substeps` must be a whole number from "
            "1 to 10000, but is 0.",
        ),
        (
            {"dwell_periods": 10**12},
            "stage layer.0.coupling: Argument `dwell_periods` must be a whole number "
            "from 1 to 1000000, but is 1000000000000.",
        ),
        (
            {"dwell_periods": 4.0},
            "stage layer.0.coupling: Argument `dwell_periods` must be a whole number "
            "from 1 to 1000000, but is 4.0.",
        ),
        (
            {"probe_epsilon": 1.0},
            "stage layer.0.coupling: Argument `probe_epsilon` must lie between 0 and "
            "1, but is 1.0.",
        ),
        (
            {"couplings": ()},
            "stage layer.0.coupling: a stage needs at least one coupling.",
        ),
        (
            {"couplings": tiny_stage(tokens=3).couplings[:1] * 2},
            "stage layer.0.coupling: each route may stand once among couplings.",
        ),
    ],
)
def test_refuses_with_a_message(changes: dict[str, Any], message: str) -> None:
    assert refused(**changes) == message


def test_coefficients_must_cover_every_coordinate() -> None:
    narrow = tiny_stage(tokens=3, coordinates=2, heads=2).couplings
    assert refused(couplings=narrow) == (
        "stage layer.0.coupling / route present: Argument `gamma` must have shape "
        "(N, K) = (any, 4), but has shape (2, 2)."
    )


def test_a_weight_from_a_later_token_names_target_and_source() -> None:
    stage = tiny_stage(tokens=3)
    successor = stage.couplings[1]
    weights = np.array(successor.weights)
    weights[1, 0, 2] = 1e-9
    found = refused(couplings=(stage.couplings[0], replace(successor, weights=weights)))
    assert found == (
        "stage layer.0.coupling / route successor / head 1: target token 0 receives "
        "from the later token 2, but the stage is causal."
    )


def test_a_stage_that_is_not_causal_may_read_later_tokens() -> None:
    stage = tiny_stage(tokens=3)
    full = replace(stage.couplings[0], weights=np.ones((2, 3, 3)))
    assert not replace(stage, couplings=(full,), causal=False).causal


@pytest.mark.parametrize("axis", [0, 1])
def test_an_empty_bank_is_refused(axis: int) -> None:
    shape = tuple(0 if k == axis else 1 for k in range(2))
    none = np.zeros(shape)
    coupling = Coupling(
        route="present",
        harmonics=np.array([1]),
        weights=np.zeros((1, shape[0], shape[0])),
        gamma=np.zeros((1, shape[1])),
        alpha_rad=np.zeros((1, shape[1])),
    )
    with pytest.raises(RequestError, match="at least one source and one target"):
        Stage("x", none, none, none, none, (coupling,), none)


def test_the_order_of_routes_is_always_the_same() -> None:
    stage = tiny_stage()
    turned = replace(stage, couplings=stage.couplings[::-1])
    assert [c.route for c in turned.couplings] == ["present", "successor"]


def test_nothing_in_a_stage_can_be_changed() -> None:
    gain = np.ones((4, 4))
    stage = tiny_stage(gain_rad=1.0)
    stage = replace(stage, gain_rad=gain)
    gain[:] = 7.0
    assert (stage.gain_rad == 1.0).all()
    with pytest.raises(ValueError, match="read-only"):
        stage.gain_rad[0, 0] = 0.0
    with pytest.raises(FrozenInstanceError):
        stage.substeps = 2  # type: ignore[misc]


def test_targets_and_harmonics_are_counted_over_routes() -> None:
    stage = tiny_stage(tokens=3, coordinates=4, harmonics=(1,))
    high = tiny_stage(tokens=3, coordinates=4, harmonics=(2, 5)).couplings[1]
    mixed = replace(stage, couplings=(stage.couplings[0], high))
    assert mixed.targets == 12
    assert mixed.harmonics == (1, 2, 5)
