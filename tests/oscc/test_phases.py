"""Angles: means are circular, distances go the short way."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oscc.phases import TURN, circular_distance, order_parameter, wrap

angles = st.floats(-1e3, 1e3)
# adding and taking away turns rounds to the unit in the last place of the largest
# number met, about 2 (|x| + turn) eps
ROUNDING = 4 * (1e3 + TURN) * np.finfo(float).eps


@given(angles)
def test_wrapped_angle_is_the_same_direction(angle: float) -> None:
    found = float(wrap(angle))
    assert -math.pi < found <= math.pi
    assert abs(math.remainder(found - angle, TURN)) <= ROUNDING


def test_the_edge_belongs_to_plus_pi() -> None:
    assert wrap(np.array([np.pi, -np.pi, 3 * np.pi])).tolist() == [np.pi] * 3


@given(angles, angles)
def test_distance_is_the_short_way_and_symmetric(left: float, right: float) -> None:
    found = float(circular_distance(left, right))
    assert 0 <= found <= math.pi
    assert found == pytest.approx(
        abs(math.remainder(left - right, TURN)), abs=2 * ROUNDING
    )
    assert found == pytest.approx(
        float(circular_distance(right, left)), abs=2 * ROUNDING
    )


def test_angles_near_plus_and_minus_pi_are_near() -> None:
    # 2 pi - 6.26
    assert float(circular_distance(3.13, -3.13)) == pytest.approx(0.023185, abs=1e-6)


def test_ten_turns_more_are_the_same_phase() -> None:
    assert float(circular_distance(0.1, 0.1 + 20 * np.pi)) == pytest.approx(
        0.0, abs=ROUNDING
    )


def test_order_parameter_of_known_sets() -> None:
    assert abs(order_parameter([0.3] * 7)) == pytest.approx(1.0)
    # a third of a turn apart: the sum of the cube roots of one
    assert abs(order_parameter([0.0, TURN / 3, 2 * TURN / 3])) < 1e-15
    assert np.angle(order_parameter([3.13, -3.13])) == pytest.approx(np.pi)
    by_row = order_parameter(np.array([[0.0, np.pi / 2], [0.0, 0.0]]), axis=1)
    assert np.abs(by_row).tolist() == pytest.approx([math.sqrt(0.5), 1.0])
