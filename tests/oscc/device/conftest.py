"""Cards and an independent integrator for the device tests."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from oscc.device import load_card


@pytest.fixture(params=["vo2-two-state-20k", "vo2-two-state-6k", "vo2-two-state-5k5"])
def card(request):
    return load_card(request.param)


@pytest.fixture
def card_20k():
    return load_card("vo2-two-state-20k")


@pytest.fixture
def card_6k():
    return load_card("vo2-two-state-6k")


def _crossings(card, v, state, t_end, kick=None):
    """Times of upward V_IMT crossings by DOP853 with events; `kick` is (time, charge).

    Written from the node equation alone: nothing of the package's closed forms.
    """
    resistance = (card.r_met_ohm, card.r_ins_ohm)
    target = (card.v_mit_V, card.v_imt_V)
    t, hits = 0.0, []
    step = 1e-8
    while t < t_end:
        stop = kick[0] if kick is not None and kick[0] > t else t_end

        def slope(_, y, state=state):
            pulled = (card.vdd_V - y) / card.r_series_ohm - y / resistance[state]
            return pulled / card.c_F

        def event(_, y, state=state):
            return y[0] - target[state]

        event.terminal, event.direction = True, (-1, 1)[state]
        run = solve_ivp(
            slope,
            (t, stop),
            [v],
            method="DOP853",
            rtol=1e-12,
            atol=1e-13,
            events=event,
            max_step=step,
        )
        t, v = run.t[-1], run.y[0, -1]
        if run.status == 1:
            if state == 1:
                hits.append(t)
            v, state = target[state], 1 - state
        elif kick is not None and stop == kick[0]:
            v, kick = v + kick[1] / card.c_F, None
    return np.array(hits)


@pytest.fixture
def crossings():
    return _crossings
