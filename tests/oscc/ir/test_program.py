"""Programs: checks, value equality, a digest of content alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from oscc.errors import RequestError
from oscc.ir import HostOperation, Program
from oscc.testing.tiny import tiny_program, tiny_stage


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stages": ()}, "Argument `stages` must hold at least one stage."),
        (
            {"stages": (tiny_stage(), tiny_stage(1))},
            "stage layer.0.coupling stands twice in the program.",
        ),
        (
            {"accuracy_rad": float("nan")},
            "Argument `accuracy_rad` must be above zero rad, but is nan.",
        ),
        (
            {"coupler": "native-r"},
            "Argument `coupler` must be one of shaped, but is 'native-r'.",
        ),
        (
            {"deck_targets": 0},
            "Argument `deck_targets` must be a whole number >= 1, but is 0.",
        ),
        ({"seed": -1}, "Argument `seed` must be a whole number >= 0, but is -1."),
        (
            {"tokens": np.array([1.5])},
            "Argument `tokens` must hold whole numbers >= 0.",
        ),
        (
            {"tokens": np.zeros((2, 2), int)},
            "Argument `tokens` must have shape (T,), but has shape (2, 2).",
        ),
        (
            {"device": {"vdd": float("nan")}},
            "Argument `device` must be plain JSON content, but is not",
        ),
    ],
)
def test_refuses_with_a_message(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError) as caught:
        tiny_program().replace(**changes)
    assert str(caught.value).split(": Out of range")[0] == message


def test_a_host_operation_counts_whole_numbers() -> None:
    with pytest.raises(RequestError, match="operation score: Argument `count` must be"):
        HostOperation("score", 0, -1)


def test_an_unknown_stage_is_refused_with_those_there_are() -> None:
    with pytest.raises(RequestError) as caught:
        tiny_program().stage("layer.7.coupling")
    assert str(caught.value) == (
        "The program has no stage `layer.7.coupling`; it has layer.0.coupling."
    )


def rebuilt(program: Program) -> Program:
    """Same content: other order of arguments, layouts, zero signs, number types."""
    stage = program.stages[0]
    mirrored = tuple(
        replace(c, weights=np.asfortranarray(c.weights), gamma=c.gamma.T.copy().T)
        for c in stage.couplings[::-1]
    )
    zero = np.where(stage.detuning_rad == 0, -0.0, stage.detuning_rad)
    strided = np.repeat(stage.theta_rad, 2, axis=1)[:, ::2]
    again = replace(
        stage, couplings=mirrored, detuning_rad=zero, theta_rad=strided, causal=1
    )
    device = dict(reversed(list(program.device.items())))
    return program.replace(
        provenance={"when": "later"},
        tokens=program.tokens.astype(np.uint8),
        device=device,
        stages=[again],
        accuracy_rad=program.accuracy_rad,
    )


def test_digest_ignores_construction_order_layout_and_zero_signs() -> None:
    program = tiny_program(accuracy_rad=1, provenance={"when": "now"})
    again = rebuilt(program)
    assert again.digest() == program.digest()
    assert again == program
    assert hash(again) == hash(program)
    assert again.provenance != program.provenance


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"notes": ("a note",)},
        {"accuracy_rad": 0.02},
        {"deck_targets": 9},
        {"family": "kuramoto"},
        {"tokens": np.array([1, 2, 3, 5])},
        {"device": {"name": "another"}},
        {"host_operations": ()},
    ],
)
def test_digest_changes_with_every_field(change: dict[str, Any]) -> None:
    program = tiny_program()
    assert program.replace(**change) != program


@pytest.mark.parametrize(
    "name",
    ["theta_rad", "phi0_rad", "gain_rad", "detuning_rad", "digital_rad"],
)
def test_digest_changes_with_one_bit_of_an_array(name: str) -> None:
    program = tiny_program()
    stage = program.stages[0]
    array = np.array(getattr(stage, name))
    array[1, 2] = np.nextafter(array[1, 2], np.inf)
    assert program.replace(stages=(replace(stage, **{name: array}),)) != program


@pytest.mark.parametrize(
    "change",
    [
        {"substeps": 5},
        {"dwell_periods": 13},
        {"scheme": "plain"},
        {"update": "probe"},
        {"model_update": "euler"},
        {"probe_epsilon": 0.01},
        {"fidelity": "summed"},
        {"causal": False},
        {"first_token": 1},
        {"name": "layer.1.coupling"},
    ],
)
def test_digest_changes_with_every_word_of_a_stage(change: dict[str, Any]) -> None:
    program = tiny_program()
    changed = replace(program.stages[0], **change)
    assert program.replace(stages=(changed,)) != program


def test_a_program_does_not_change_with_what_it_was_made_from() -> None:
    device = {"name": "card", "parameters": {"c_F": 1e-10}}
    program = tiny_program(device=device)
    before = program.digest()
    device["parameters"]["c_F"] = 2e-10
    assert program.digest() == before


def test_programs_are_no_equal_of_other_things() -> None:
    assert tiny_program() != "program"
