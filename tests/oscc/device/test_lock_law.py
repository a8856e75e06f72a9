"""The lock law against an integrator, closed forms and published tables."""

from __future__ import annotations

import numpy as np
import pytest

from oscc.device.lock_law import (
    SETTLED,
    least_coherence,
    lock_rad_for,
    phase_difference_rad,
    settling_error,
    slip_time_rad,
    x_settled,
    x_slipped,
)
from oscc.errors import RequestError


@pytest.mark.parametrize("ratio", [0.0, 0.3, 0.9, 1 - 1e-9, 1.0, 1 + 1e-9, 1.05, -2.5])
@pytest.mark.parametrize("lock_rad", [0.1, 3.0, 12.6, 60.0])
def test_the_law_is_what_an_integrator_finds(ratio: float, lock_rad: float) -> None:
    from scipy.integrate import solve_ivp

    found = solve_ivp(
        lambda _, psi: ratio - np.sin(psi),
        (0.0, lock_rad),
        [0.0],
        method="DOP853",
        rtol=1e-12,
        atol=1e-13,
    )
    # the integrator's own error grows with the turns
    limit = 1e-10 * (1.0 + abs(found.y[0, -1]))
    assert float(phase_difference_rad(ratio, lock_rad)) == pytest.approx(
        found.y[0, -1], abs=limit
    )


def test_at_the_edge_the_cosine_is_rational() -> None:
    dwell = np.array([0.5, 6.3, 12.6, 125.7])
    wanted = 2 * (1 + dwell) / (1 + (1 + dwell) ** 2)
    np.testing.assert_allclose(
        np.cos(phase_difference_rad(1.0, dwell)), wanted, rtol=1e-13
    )


def test_a_locked_pair_settles_at_the_arc_sine() -> None:
    ratio = np.array([-0.9, 0.3, 0.6])
    found = phase_difference_rad(ratio, 100.0)
    np.testing.assert_allclose(found, np.arcsin(ratio), atol=1e-12)


def test_a_slipping_pair_turns_at_the_beat() -> None:
    """Whole turns take 2 pi / sqrt(x^2 - 1) of K t each."""
    ratio = np.array([1.02, 1.2, 2.0])
    turn = 2 * np.pi / np.sqrt(ratio**2 - 1)
    for turns in (1, 7):
        np.testing.assert_allclose(
            phase_difference_rad(ratio, turns * turn), 2 * np.pi * turns, rtol=1e-12
        )


# measured by an integrator on grids of x, design table of the lock cell: Kt, settled to
# .01 below x (grid .00025), decided as slipping above x (grid .001)
@pytest.mark.parametrize(
    ("lock_rad", "settled", "slipped"),
    [
        (6.28, 0.789, 1.091),
        (9.4, 0.910, 1.045),
        (12.6, 0.955, 1.027),
        (18.8, 0.984, 1.013),
        (25.1, 0.992, 1.008),
        (37.7, 0.998, 1.004),
    ],
)
def test_edges_are_those_of_the_table(
    lock_rad: float, settled: float, slipped: float
) -> None:
    assert x_settled(lock_rad) == pytest.approx(settled, abs=1e-3)
    assert x_slipped(lock_rad) == pytest.approx(slipped, abs=1.1e-3)


def test_the_edges_are_where_they_are_defined() -> None:
    for lock_rad in (0.5, 3.0, 12.6, 60.0):
        edge = x_settled(lock_rad)
        assert float(settling_error(edge, lock_rad)) == pytest.approx(SETTLED, abs=1e-9)
        assert float(settling_error(0.99 * edge, lock_rad)) < SETTLED
        beyond = x_slipped(lock_rad)
        assert float(phase_difference_rad(beyond, lock_rad)) >= np.pi / 2 - 1e-9
        assert float(phase_difference_rad(beyond - 1e-6, lock_rad)) < np.pi / 2
        assert slip_time_rad(beyond) == pytest.approx(lock_rad, rel=1e-9)
        assert least_coherence(lock_rad) == pytest.approx(np.sqrt(1 - edge**2))
    assert x_settled(500.0) == 1.0  # 2/(1 + Kt) is below .01 even at the edge


@pytest.mark.parametrize("margin", [0.9, 0.21, 0.045, 0.01, 1e-6])
def test_the_dwell_for_a_margin_is_the_shortest(margin: float) -> None:
    dwell = lock_rad_for(margin)

    def decides(lock_rad: float) -> bool:
        return (
            float(settling_error(1 - margin, lock_rad)) <= SETTLED
            and float(phase_difference_rad(1 + margin, lock_rad)) >= np.pi / 2
        )

    assert decides(dwell * (1 + 1e-9))
    assert not decides(dwell * (1 - 1e-6))


def test_what_is_out_of_range_is_refused() -> None:
    for margin in (0.0, 1.0, float("nan")):
        with pytest.raises(RequestError, match="`margin` must lie between 0 and 1"):
            lock_rad_for(margin)
    with pytest.raises(RequestError, match="no dwell decides"):
        lock_rad_for(1e-16)
    for edge in (x_settled, x_slipped):
        with pytest.raises(RequestError, match="`lock_rad` must be above zero"):
            edge(0.0)
