"""Read-out of lock cells: decisions, margins, counted crossings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oscc.device import lock_law
from oscc.device.lock_law import phase_difference_rad
from oscc.device.lock_readout import (
    decide,
    elapsed_rad,
    least_coherence,
    phase_difference_at,
    ratio_of,
    read_crossings,
)
from oscc.errors import RequestError
from oscc.ir.lock import LOCKED, SLIPPING, UNDECIDED


def test_the_law_is_decided_as_the_table_says() -> None:
    """At K t 12.6: settled below .955, slipping above 1.027, undecided between."""
    ratio = np.array([-0.6, 0.0, 0.94, 0.97, 1.0, 1.02, 1.04, -1.3])
    psi = phase_difference_rad(ratio, 12.6)
    seen = decide(psi, np.abs(psi) > np.pi / 2, 12.6)
    assert seen.locked.dtype == np.int8
    wanted = [LOCKED, LOCKED, LOCKED, *[UNDECIDED] * 3, SLIPPING, SLIPPING]
    assert seen.locked.tolist() == wanted
    np.testing.assert_allclose(seen.margin, 1 - np.abs(ratio), atol=1e-12)
    settled = np.sqrt(np.maximum(0, 1 - ratio**2))
    decided = seen.locked != UNDECIDED
    assert np.abs(seen.coherence - settled)[decided].max() < 0.01
    assert (seen.coherence >= settled - 1e-12).all()
    assert not seen.coherence[seen.locked == SLIPPING].any()


def test_a_flag_outlives_a_whole_turn() -> None:
    """A pair that slipped once reads 0, though its cosine is back at 1."""
    seen = decide([2 * np.pi + 0.1], [True], 12.6)
    assert seen.locked.tolist() == [SLIPPING]
    assert seen.coherence.tolist() == [0.0]
    assert seen.margin[0] < 0


def test_the_least_cosine_is_kept_to() -> None:
    least = least_coherence(12.6)
    psi = np.arccos([least + 1e-6, least - 1e-6])
    assert decide(psi, [False, False], 12.6).locked.tolist() == [LOCKED, UNDECIDED]


def test_the_margin_knows_when_it_was_read() -> None:
    psi = phase_difference_rad(1.3, 11.0)
    seen = decide([psi], [True], 12.6, read_rad=[11.0])
    assert seen.margin[0] == pytest.approx(-0.3, abs=1e-12)


def test_crossings_are_counted() -> None:
    """Two steady oscillators: psi grows evenly, from the common start."""
    fast, slow = (np.arange(1, 40) / f for f in (1.05, 0.97))
    psi = phase_difference_at(fast, slow)
    inside = (fast >= slow[0]) & (fast <= slow[-1])
    np.testing.assert_allclose(psi[inside], 2 * np.pi * 0.08 * fast[inside], atol=1e-12)
    assert np.isnan(psi[~inside]).all()
    swapped = phase_difference_at(slow, fast)
    assert np.nanmax(swapped) <= 0


def test_the_last_crossing_of_the_dwell_is_read() -> None:
    fast, slow = (np.arange(1, 40) / f for f in (1.05, 0.97))
    seen = read_crossings(fast, slow, 10.0)
    assert seen is not None
    psi, passed, time = seen
    assert time == fast[fast <= 10.0][-1]
    assert psi == pytest.approx(2 * np.pi * 0.08 * time)
    assert passed  # 5.0 rad
    early = read_crossings(fast, slow, 3.0)
    assert early is not None
    assert not early[1]


def test_missing_crossings_give_nothing() -> None:
    times = np.arange(1.0, 5.0)
    assert read_crossings(times, times[:2], 4.5) is None
    assert read_crossings(times, times, 0.5) is None
    assert read_crossings(times, times[:0], 4.5) is None


@pytest.mark.parametrize("ratio", [0.3, 0.999, 1.0, 1.001, 1.5, 4.0])
def test_elapsed_time_is_the_integral_of_the_law(ratio: float) -> None:
    from scipy.integrate import quad

    for psi in (0.05, 0.29, 1.4, 3.0, 9.5):
        found = float(elapsed_rad(psi, ratio))
        if ratio <= 1 and psi >= np.arcsin(ratio):
            assert found == np.inf
            continue
        wanted, left = quad(lambda p: 1 / (ratio - np.sin(p)), 0, psi, limit=500)
        assert found == pytest.approx(wanted, abs=10 * left + 1e-9 * wanted)


@given(st.floats(-60, 60), st.floats(0.05, 200))
def test_the_law_and_its_inverse_agree(ratio: float, lock_rad: float) -> None:
    """Two closed forms of one law, each in a module of its own."""
    back = float(ratio_of(phase_difference_rad(ratio, lock_rad), lock_rad))
    # the last bits of psi, over d psi/dx >= (1 - e^{-K t})/2; settled: sin psi = x
    assert back == pytest.approx(
        ratio, abs=1e-12 * (1 + abs(ratio)) * (1 + 1 / lock_rad)
    )


@pytest.mark.parametrize("lock_rad", [0.5, 6.3, 12.6, 60.0, 190.0, 500.0])
def test_the_least_cosine_is_that_of_the_law(lock_rad: float) -> None:
    assert least_coherence(lock_rad) == pytest.approx(
        lock_law.least_coherence(lock_rad), abs=1e-9
    )
    with pytest.raises(RequestError, match="`lock_rad` must be above zero"):
        least_coherence(-1.0)
