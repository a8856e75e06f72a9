"""Level phase against level ir, on random models lowered as they are trained."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings

from oscc.arrays import FloatArray
from oscc.device import card_to_mapping, load_card
from oscc.ir import Stage
from oscc.ir.interpret import interpret
from oscc.lower import lower
from oscc.testing.strategies import phase_models
from oscc.trace import trace
from oscc_backends import phase
from oscc_sims.phase import solve

CARD = card_to_mapping(load_card("vo2-two-state-6k"))
LEVEL_PHASE_RAD = 1e-6

Case = tuple[Any, list[int]]


def phases(stage: Stage) -> FloatArray:
    return solve(phase.problem(stage)).reshape(stage.phi0_rad.shape)


@settings(max_examples=40)
@given(phase_models(update="flow"))
def test_the_engine_runs_what_a_flow_model_means(case: Case) -> None:
    for mode in ("prefill", "decode"):
        for stage in lower(trace(*case, mode=mode), CARD).stages:
            assert np.abs(phases(stage) - interpret(stage)).max() < LEVEL_PHASE_RAD


@settings(max_examples=25)
@given(phase_models(update="euler"))
def test_an_euler_model_that_is_run_as_a_flow_is_a_flow(case: Case) -> None:
    for stage in lower(trace(*case), CARD, update="flow").stages:
        flow = replace(stage, model_update="flow")
        assert np.abs(phases(stage) - interpret(flow)).max() < LEVEL_PHASE_RAD


@settings(max_examples=25)
@given(phase_models(update="euler"))
def test_a_probe_misses_the_euler_step_by_no_more_than_its_bias(case: Case) -> None:
    """Half the difference of the flows at +e g and -e g, over e, less g f:

        e^2 (f f'^2 + f^2 f'') / 6 + terms of order 5, 7, ...

    with f the drive and |f^(m)| <= F_m = sum n^m |g C_n|. A term of order k is a sum of
    (k-1)! trees over k!; a leaf that is cut off takes a factor of at most N F_0 along
    (N the largest order), so the terms of order k are below 6/k (e N F_0)^(k-3) of the
    bound of the first: all of them below 2 % at e N F_0 <= 0.1."""
    for stage in lower(trace(*case), CARD).stages:
        assert stage.update == "probe"
        orders = np.array(stage.harmonics)
        drive = np.abs(phase.drive(stage))
        f0, f1, f2 = ((drive * orders**m).sum(axis=1) for m in range(3))
        most = 0.1 / max(float(orders.max() * f0.max()), 1e-9)
        epsilon = min(stage.probe_epsilon, most)
        bias = epsilon**2 * (f0 * f1**2 + f0**2 * f2) / 6
        small = replace(stage, probe_epsilon=epsilon)
        error = np.abs(phases(small) - interpret(small)).ravel()
        # two increments to 1e-11 each, over 2 epsilon
        assert (error <= 1.02 * bias + 1e-11 / epsilon).all()
