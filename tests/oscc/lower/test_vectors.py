"""Unit vectors of two parts are phases; blocks that turn with them are coefficients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from oscc.errors import RequestError
from oscc.lower import block_coefficients, vector_phases

ANGLE = st.floats(-3.1, 3.1)
SIZE = st.floats(-3.0, 3.0)


def vector(angle: float) -> np.ndarray:
    return np.array([np.cos(angle), np.sin(angle)])


@given(ANGLE, ANGLE, SIZE, SIZE)
def test_the_projected_pull_is_the_sine_law(
    phi: float, theta: float, p: float, q: float
) -> None:
    """Proj_x(J s) = |a| sin(theta - phi + arg a) times the tangent, a = p + i q."""
    block = np.array([[p, -q], [q, p]])
    x, y = vector(phi), block @ vector(theta)
    projected = y - (x @ y) * x
    a = complex(block_coefficients(block))
    pull = abs(a) * np.sin(theta - phi + np.angle(a))
    tangent = np.array([-np.sin(phi), np.cos(phi)])
    assert np.abs(projected - pull * tangent).max() < 1e-14
    assert vector_phases(x) == pytest.approx(phi, abs=1e-14)


@given(ANGLE, ANGLE, SIZE, SIZE)
def test_a_reflection_pulls_on_the_sum_of_two_phases(
    phi: float, theta: float, r: float, s: float
) -> None:
    """Why it is refused: turning both vectors alike changes what it does."""
    block = np.array([[r, s], [s, -r]])
    x, y = vector(phi), block @ vector(theta)
    tangent = np.array([-np.sin(phi), np.cos(phi)])
    pull = np.hypot(r, s) * np.sin(np.arctan2(s, r) - theta - phi)
    assert (y - (x @ y) * x) @ tangent == pytest.approx(pull, abs=1e-13)
    if np.hypot(r, s) > 1e-3:
        with pytest.raises(RequestError, match="does not commute with rotations"):
            block_coefficients(block)


def test_a_block_that_cannot_be_lowered_is_named() -> None:
    blocks = np.zeros((2, 3, 2, 2))
    blocks[..., 0, 0] = blocks[..., 1, 1] = 1.0
    assert (block_coefficients(blocks) == 1.0).all()
    blocks[1, 2, 0, 1] = 0.25
    with pytest.raises(RequestError) as caught:
        block_coefficients(blocks)
    assert str(caught.value) == (
        "Block (1, 2) of `blocks` does not commute with rotations: its part of size "
        "0.125 pulls on the sum of two phases, and coupled oscillators feel their "
        "difference alone. Only [[p, -q], [q, p]] can be lowered; train the layer with "
        "such blocks."
    )


@pytest.mark.parametrize("n", [1, 3, 4])
def test_more_or_fewer_parts_than_two_are_refused(n: int) -> None:
    x = np.eye(n)
    with pytest.raises(RequestError, match="a phase needs n = 2"):
        vector_phases(x)
    with pytest.raises(RequestError, match="a phase needs n = 2"):
        block_coefficients(x[None])


def test_vectors_that_are_not_unit_are_refused_with_their_place() -> None:
    x = np.stack([vector(0.3), 1.5 * vector(1.0)])[None]
    with pytest.raises(RequestError, match=r"has length 1\.5 at \(0, 1\)"):
        vector_phases(x)
    with pytest.raises(RequestError, match="holds 1 NaN"):
        vector_phases([[np.nan, 1.0]])


def test_tensors_are_taken_too() -> None:
    x = torch.tensor([[0.0, -1.0]], requires_grad=True)
    assert vector_phases(x).tolist() == [-np.pi / 2]
