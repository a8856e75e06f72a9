"""Backend `phase`: drives of targets, against a sum over the edge list."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from oscc.errors import RequestError
from oscc.ir import Stage
from oscc.ir.plan import dwells
from oscc.ir.views import pairs
from oscc.testing.strategies import dynamic_stages
from oscc.testing.tiny import tiny_program, tiny_stage
from oscc_backends import phase


@given(dynamic_stages(largest_gain=12.0))
def test_drive_is_the_sum_over_edges(stage: Stage) -> None:
    """D_n = g sum c_n e^{i n theta}, edge by edge."""
    wanted = np.zeros((stage.targets, len(stage.harmonics)), complex)
    theta, gain = stage.theta_rad.ravel(), stage.gain_rad.ravel()
    for chunk in pairs(stage):
        column = np.searchsorted(stage.harmonics, chunk.harmonic)
        lag = chunk.harmonic * theta[chunk.source] + chunk.frustration_rad
        np.add.at(wanted, (chunk.target, column), chunk.strength * np.exp(1j * lag))
    assert np.abs(phase.drive(stage) - wanted * gain[:, None]).max() < 1e-12


def test_problem_lists_targets_token_by_token() -> None:
    stage = tiny_stage(tokens=3, coordinates=2, scheme="plain", substeps=2)
    problem = phase.problem(stage)
    assert problem.index.tolist() == [[t, j] for t in range(3) for j in range(2)]
    assert problem.phi0_rad.tolist() == stage.phi0_rad.ravel().tolist()
    assert problem.harmonics.tolist() == [1, 2]
    assert problem.dwells == dwells(stage)
    assert (problem.scheme, problem.substeps, problem.update) == ("plain", 2, "flow")


def test_build_takes_all_stages_or_those_named() -> None:
    program = tiny_program(tiny_stage(), tiny_stage(1, name="layer.1.coupling"))
    assert phase.build(program).program == program.digest()
    names = [p.stage for p in phase.build(program).problems]
    assert names == ["layer.0.coupling", "layer.1.coupling"]
    some = phase.build(program, stages=["layer.1.coupling"])
    assert [p.stage for p in some.problems] == ["layer.1.coupling"]
    with pytest.raises(RequestError, match="has no stage `layer"):
        phase.build(program, stages=["layer.2.coupling"])
