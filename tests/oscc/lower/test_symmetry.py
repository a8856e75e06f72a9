"""Laws of the equation through lowering: permutation, turn, mirror.

Each holds in the interpreter and in the drives of both backends: of a stage as it is,
and of a whole model that is moved before it is traced and lowered.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oscc.arrays import ComplexArray, FloatArray
from oscc.device import card_to_mapping, load_card
from oscc.ir import Coupling, Program, Stage
from oscc.ir.interpret import interpret
from oscc.lower import LOWERINGS, lower
from oscc.testing.strategies import dynamic_stages, phase_models
from oscc.testing.symmetry import coordinate_order, mirrored, permuted, turned
from oscc.testing.tiny import tiny_stage
from oscc.trace import trace
from oscc_backends import circuit, phase

CARD = card_to_mapping(load_card("vo2-two-state-6k"))
RAD = 1e-6
ROUNDING = 1e-10
ANGLE = st.floats(-9.0, 9.0)
ORDERS = ((1,), (2,), (1, 2), (2, 3), (1, 2, 3), (2, 4), (3,))

ATTENTION = tuple(family for family in LOWERINGS if family != "fsn-mf")

Case = tuple[Any, list[int]]
Drive = Callable[[Stage], ComplexArray]
BACKENDS: tuple[Drive, ...] = (phase.drive, circuit.drive)


def grids(stage: Stage, drive: Drive) -> ComplexArray:
    """Drive by token, coordinate and harmonic, (T, K, N)."""
    return drive(stage).reshape(*stage.grid, -1)


def moved(stage: Stage) -> FloatArray:
    """Increment of every target, (T, K)."""
    return stage.on_grid(interpret(stage) - stage.phi0_rad)


def routes(stage: Stage) -> tuple[Coupling, ...]:
    """Shared weights; none where pairs are listed."""
    return () if stage.flat else stage.factored


def lowered(model: Any, tokens: list[int]) -> Program:
    return lower(trace(model, tokens), CARD)


# A stage as it is.


@given(dynamic_stages(largest_gain=8.0, harmonics=ORDERS), ANGLE)
def test_a_turn_of_everything_keeps_every_increment(stage: Stage, delta: float) -> None:
    """For all orders and offsets alike: a pair sees n (theta - phi) + alpha alone."""
    both = replace(
        stage, theta_rad=stage.theta_rad + delta, phi0_rad=stage.phi0_rad + delta
    )
    assert np.abs(moved(both) - moved(stage)).max() < RAD
    turn = np.exp(1j * np.array(stage.harmonics) * delta)
    for drive in BACKENDS:
        assert np.abs(drive(both) - turn * drive(stage)).max() < ROUNDING


@given(dynamic_stages(largest_gain=8.0, harmonics=ORDERS), ANGLE)
def test_offsets_take_up_a_turn_of_the_sources(stage: Stage, delta: float) -> None:
    """alpha_n - n delta: order n turns n times as far."""
    couplings = tuple(
        replace(c, alpha_rad=c.alpha_rad - delta * c.harmonics[:, None])
        for c in stage.factored
    )
    other = replace(stage, theta_rad=stage.theta_rad + delta, couplings=couplings)
    assert np.abs(moved(other) - moved(stage)).max() < RAD
    for drive in BACKENDS:
        assert np.abs(drive(other) - drive(stage)).max() < ROUNDING


@given(
    dynamic_stages(largest_gain=8.0, harmonics=ORDERS), st.integers(-4, 4), st.data()
)
def test_sources_may_turn_by_a_share_of_the_circle_that_all_orders_divide(
    stage: Stage, turns: int, data: st.DataObject
) -> None:
    """2 pi m / gcd(orders); by a part of it the drive of order n turns n times."""
    common = math.gcd(*stage.harmonics)
    other = replace(stage, theta_rad=stage.theta_rad + 2 * np.pi * turns / common)
    assert np.abs(moved(other) - moved(stage)).max() < RAD
    for drive in BACKENDS:
        assert np.abs(drive(other) - drive(stage)).max() < ROUNDING
    part = 2 * np.pi * data.draw(st.floats(0.0, 1.0)) / common
    off = replace(stage, theta_rad=stage.theta_rad + part)
    turn = np.exp(1j * part * np.array(stage.harmonics))
    for drive in BACKENDS:
        assert np.abs(drive(off) - turn * drive(stage)).max() < ROUNDING


@pytest.mark.parametrize(
    ("harmonics", "delta", "same"),
    [
        ((2,), np.pi, True),
        ((2, 4), np.pi, True),
        ((3,), 2 * np.pi / 3, True),
        ((1, 2), np.pi, False),
        ((2, 3), np.pi, False),
        ((2,), np.pi / 2, False),
    ],
)
def test_half_a_turn_of_the_sources_is_nothing_to_even_orders_alone(
    harmonics: tuple[int, ...], delta: float, same: bool
) -> None:
    stage = tiny_stage(2, harmonics=harmonics)
    other = replace(stage, theta_rad=stage.theta_rad + delta)
    change = float(np.abs(moved(other) - moved(stage)).max())
    assert (change < RAD) is same
    assert same or change > 0.1


@given(dynamic_stages(largest_gain=8.0, harmonics=ORDERS), st.integers(0, 2**32))
def test_a_mirror_of_phases_offsets_and_detunings_mirrors_every_increment(
    stage: Stage, seed: int
) -> None:
    random = np.random.default_rng(seed)
    detuned = replace(stage, detuning_rad=random.uniform(-3, 3, stage.grid))
    other = replace(
        detuned,
        theta_rad=-stage.theta_rad,
        phi0_rad=-stage.phi0_rad,
        detuning_rad=-detuned.detuning_rad,
        couplings=tuple(replace(c, alpha_rad=-c.alpha_rad) for c in stage.factored),
    )
    assert np.abs(moved(other) + moved(detuned)).max() < RAD
    for drive in BACKENDS:
        assert np.abs(drive(other) - drive(stage).conj()).max() < ROUNDING


def test_offsets_that_stay_break_the_mirror() -> None:
    """The law above is about the sign of alpha, not about symmetric numbers."""
    stage = tiny_stage(2)
    other = replace(stage, theta_rad=-stage.theta_rad, phi0_rad=-stage.phi0_rad)
    assert np.abs(moved(other) + moved(stage)).max() > 0.1


# A model that is moved before it is lowered.


@settings(max_examples=25)
@given(phase_models(), st.integers(0, 2**32))
def test_coordinates_and_heads_that_change_places_do_so_in_every_stage(
    case: Case, seed: int
) -> None:
    model, tokens = case
    count, k = model.config.heads, model.config.k
    random = np.random.default_rng(seed)
    heads = random.permutation(count)
    order = coordinate_order(
        heads, [random.permutation(k // count) for _ in range(count)]
    )
    one, other = lowered(model, tokens), lowered(permuted(model, heads, order), tokens)
    for stage, found in zip(one.stages, other.stages, strict=True):
        for before, after in zip(routes(stage), routes(found), strict=True):
            np.testing.assert_allclose(
                after.weights, before.weights[heads], rtol=0, atol=1e-9
            )
            np.testing.assert_array_equal(after.gamma, before.gamma[:, order])
            np.testing.assert_array_equal(after.alpha_rad, before.alpha_rad[:, order])
        assert np.abs(moved(found) - moved(stage)[:, order]).max() < RAD
        for drive in BACKENDS:
            change = grids(found, drive) - grids(stage, drive)[:, order]
            assert np.abs(change).max() < 1e-7


@settings(max_examples=25)
@given(
    st.sampled_from(ATTENTION).flatmap(
        lambda family: phase_models(family=family, layers=1, gates="none")
    ),
    st.integers(0, 2**32),
)
def test_a_turn_of_each_coordinate_keeps_what_the_layer_does(
    case: Case, seed: int
) -> None:
    """Another turn for each coordinate: none is coupled to another."""
    model, tokens = case
    for layer in model.coupling_layers():
        layer.value.weight.data.zero_()  # the value gate reads absolute phases
    delta = np.random.default_rng(seed).uniform(-9, 9, model.config.k)
    (one,) = lowered(model, tokens).stages
    (other,) = lowered(turned(model, delta), tokens).stages
    for before, after in zip(one.factored, other.factored, strict=True):
        np.testing.assert_allclose(after.weights, before.weights, rtol=0, atol=1e-9)
    assert np.abs(moved(other) - moved(one)).max() < RAD
    turn = np.exp(1j * delta[:, None] * np.array(one.harmonics))
    for drive in BACKENDS:
        change = grids(other, drive) - turn * grids(one, drive)
        assert np.abs(change).max() < 1e-7


@settings(max_examples=25)
@given(phase_models(layers=1))
def test_a_mirrored_layer_does_the_mirrored_thing(case: Case) -> None:
    model, tokens = case
    stages = (lowered(each, tokens).stages for each in (model, mirrored(model)))
    for one, other in zip(*stages, strict=True):
        np.testing.assert_allclose(other.gain_rad, one.gain_rad, rtol=0, atol=1e-9)
        assert np.abs(moved(other) + moved(one)).max() < RAD
        digital = other.on_grid(other.digital_rad - other.phi0_rad)
        assert np.abs(digital + moved(one)).max() < RAD
        for drive in BACKENDS:
            assert np.abs(drive(other) - drive(one).conj()).max() < 1e-7
