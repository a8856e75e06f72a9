"""Timing of a deck: gate opened where the free run has the wanted phase."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oscc.device import load_card
from oscc.device.piecewise import INSULATING, phase_of, waveform_V
from oscc.phases import circular_distance
from oscc_netlists.settings import DIALECTS, default_settings
from oscc_netlists.timing import closed_form, level_V
from oscc_netlists.vo2 import start_V

CARD = load_card("vo2-two-state-6k")


@pytest.mark.parametrize("dialect", DIALECTS)
@given(phi0=st.floats(-50.0, 50.0))
def test_the_gate_opens_at_the_wanted_phase(dialect: str, phi0: float) -> None:
    timing = closed_form(CARD, default_settings(dialect))
    opened = timing.gate_s(CARD, phi0)
    # fmod of a phase of 50 rad, in double precision
    assert circular_distance(timing.phase_rad(CARD, opened), phi0) < 1e-12 * 50
    assert 1 <= opened / timing.period_s <= 2 + 1e-12
    # the free run has crossed the level by then, so that crossings can be counted
    assert opened > timing.first_s


@pytest.mark.parametrize("dialect", DIALECTS)
def test_phase_zero_is_the_upward_crossing_of_v_imt(dialect: str) -> None:
    timing = closed_form(CARD, default_settings(dialect))
    at_level = timing.phase_rad(CARD, timing.first_s)
    wanted = phase_of(CARD, level_V(CARD), INSULATING)
    assert circular_distance(at_level, wanted) < 1e-12


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_closed_form_starts_where_the_deck_starts(dialect: str) -> None:
    timing = closed_form(CARD, default_settings(dialect))
    start = timing.phase_rad(CARD, 0.0)
    # gnucap starts a thousandth of the swing above v_imt, so that its switch closes
    slack = 2e-3 * (CARD.v_imt_V - CARD.v_mit_V)
    near = waveform_V(CARD, start + 1e-9)
    assert float(np.abs(near - start_V(CARD, dialect))) < slack
