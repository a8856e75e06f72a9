"""What is to be trained: bounds, and the command that repeats a run."""

import itertools
import json
import shlex
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oscc.errors import RequestError
from oscc.models.config import ModelConfig
from oscc.models.disturbance import Disturbance
from oscc.models.training_config import TrainingConfig
from oscc.strict_yaml import load_value
from oscc.verbs.train_settings import Request, command_line, settings

FSN = settings("fsn", "flow", 10, {})


def said(request, overrides):
    """Words after each --set of the command, as our configuration reads them."""
    words = shlex.split(command_line(*FSN, request, overrides))
    pairs = [
        w.partition("=") for flag, w in itertools.pairwise(words) if flag == "--set"
    ]
    return {key: load_value(value, key) for key, _, value in pairs}


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30),
    st.booleans(),
)
def test_any_vocabulary_comes_back_from_the_command(characters, other):
    vocabulary = {"characters": characters, "other": other}
    found = said(Request(vocabulary=vocabulary), {})["model.vocabulary"]
    assert found == vocabulary


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model.query_offset", True),
        ("model.query_offset", False),
        ("train.learning_rate", 1e-5),
        ("model.k", 48),
        ("model.bound", "B0"),
        ("model.drift", "zero"),
        ("model.feed_forward", "none"),
    ],
)
def test_values_come_back_from_the_command(key, value):
    found = said(Request(), {key.partition(".")[2]: value})[key]
    assert found == value
    assert type(found) is type(value)


def test_the_command_names_what_differs_from_the_default_and_no_folder():
    plain = command_line(*FSN, Request(), {})
    assert plain == (
        "oscc train --family fsn --update flow --seed 0 --set train.steps=10"
    )
    assert command_line(*FSN, Request(name="fsn-flow"), {}) == plain
    found = command_line(*FSN, Request(2, "a b.txt", "my run", "bytes", "cpu"), {})
    assert "--text 'a b.txt' --name 'my run' --seed 2 " in found
    assert found.endswith("--set train.vocabulary=bytes --set train.device=cpu")


@pytest.mark.parametrize(
    "change",
    [
        {"steps": 0},
        {"batch": 10**20},
        {"batch": 2.5},
        {"warm_up": -1},
        {"learning_rate": 0.0},
        {"learning_rate": 1e300},
        {"final_share": float("inf")},
        {"skip_norm": float("nan")},
        {"weight_bits": 25},
        {"weight_bits": -1},
        {"phase_noise_rad": float("nan")},
    ],
)
def test_training_settings_that_cannot_be_computed_with_are_refused(change):
    with pytest.raises(RequestError, match=f"Argument `{next(iter(change))}` must be"):
        replace(TrainingConfig(), **change)


@pytest.mark.parametrize(
    "change",
    [
        {"value_gain": 1e300},
        {"value_gain": float("nan")},
        {"beta": 1e300},
        {"gate_std": float("inf")},
    ],
)
def test_model_settings_that_cannot_be_computed_with_are_refused(change):
    with pytest.raises(RequestError, match=f"Argument `{next(iter(change))}` must be"):
        ModelConfig("fsn", **change)


@pytest.mark.parametrize(
    "change", [{"k": 10**18}, {"hidden": 10**20}, {"layers": 1001}, {"context": 10**7}]
)
def test_sizes_that_no_machine_trains_are_refused(change):
    with pytest.raises(RequestError, match=f"`{next(iter(change))}` must be a whole"):
        settings("fsn", "flow", None, change)


def test_weights_have_at_most_the_bits_of_float32():
    assert Disturbance(weight_bits=24).active
    with pytest.raises(RequestError, match=r"1 to 24, .* \(float32\) holds, but is 25"):
        Disturbance(weight_bits=25)


def test_a_configuration_of_before_is_taken_whole():
    content = json.loads(ModelConfig("transformer").to_json())
    assert content["bound"] == "B1"  # the default, of no meaning there
    assert asdict(ModelConfig.from_mapping(content)) == asdict(
        ModelConfig("transformer")
    )
