"""Backend `circuit`: the same drives as backend `phase`, found another way."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from hypothesis import given

from oscc.ir import Stage
from oscc.testing.strategies import dynamic_stages
from oscc.testing.tiny import tiny_program, tiny_stage
from oscc_backends import circuit, phase


@given(dynamic_stages(largest_gain=12.0))
def test_drive_equals_that_of_backend_phase(stage: Stage) -> None:
    assert np.abs(circuit.drive(stage) - phase.drive(stage)).max() < 1e-12


def test_problem_equals_that_of_backend_phase_but_for_the_drive() -> None:
    stage = tiny_stage(tokens=3, coordinates=2, update="probe")
    ours, theirs = circuit.problem(stage), phase.problem(stage)
    for field in fields(ours):
        mine, other = getattr(ours, field.name), getattr(theirs, field.name)
        if field.name != "drive":
            assert np.array_equal(mine, other), field.name


def test_artefact_carries_the_device_of_the_program() -> None:
    program = tiny_program()
    artefact = circuit.build(program)
    assert artefact.device == program.device
    assert artefact.program == program.digest()
