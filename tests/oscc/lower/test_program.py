"""Lowering against the digital layer: equal phases on real and on random models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from oscc import tensors
from oscc.checkpoint import load_checkpoint
from oscc.device import card_to_mapping, load_card
from oscc.errors import RequestError
from oscc.ir.interpret import interpret
from oscc.ir.views import coupled_pairs, pair_terms
from oscc.lower import LOWERINGS, lower, lower_layer
from oscc.testing.strategies import phase_models
from oscc.testing.tiny import tiny_model
from oscc.trace import Trace, trace

ROOT = Path(__file__).parents[3]
SHIPPED = sorted((ROOT / "checkpoints").glob("*.safetensors"))
SOURCE = Path(replace.__globals__["__file__"])  # a file of the standard library
LEVEL_IR_RAD = 1e-6
CARD = card_to_mapping(load_card("vo2-two-state-6k"))


def largest_error(found: Trace) -> float:
    program = lower(found, CARD)
    errors = [np.abs(interpret(s) - s.digital_rad).max() for s in program.stages]
    return float(max(errors))


def shipped_trace(path: Path, most: int) -> Trace:
    loaded = load_checkpoint(path)
    text = SOURCE.read_text(encoding="utf-8")
    tokens = loaded.vocabulary.encode(text[: min(most, loaded.config.context)])
    return trace(loaded.model, tokens)


def lowerable() -> list[Path]:
    names = [p for p in SHIPPED if tensors.load(p)[1]["family"] in LOWERINGS]
    assert names, "no checkpoint is shipped"
    return names


@pytest.mark.parametrize("path", lowerable(), ids=lambda p: p.stem)
def test_interpreter_is_the_digital_layer_on_a_shipped_model(path: Path) -> None:
    assert largest_error(shipped_trace(path, 24)) < LEVEL_IR_RAD


@pytest.mark.slow
@pytest.mark.parametrize("path", lowerable(), ids=lambda p: p.stem)
def test_interpreter_is_the_digital_layer_over_the_whole_context(path: Path) -> None:
    assert largest_error(shipped_trace(path, 10_000)) < LEVEL_IR_RAD


@settings(max_examples=40)
@given(phase_models())
def test_interpreter_is_the_digital_layer_on_random_models(
    case: tuple[Any, list[int]],
) -> None:
    model, tokens = case
    assert largest_error(trace(model, tokens)) < LEVEL_IR_RAD


def test_random_models_reach_large_drives_of_both_signs() -> None:
    """The property above is not about small gains by chance."""
    found = trace(tiny_model(gain_rad=12.0, bound="B0", seed=3), list(range(12)))
    gain = found.layers[0].gain_rad
    assert gain.min() < -4.0
    assert gain.max() > 4.0


@pytest.mark.parametrize("family", LOWERINGS)
def test_euler_stage_is_the_step_that_torch_takes(family: str) -> None:
    model = tiny_model(family, "euler", seed=2).double()
    tokens = torch.arange(7)[None]
    stage = lower(trace(model, tokens[0].numpy()), CARD).stages[0]
    layer = model.coupling_layers()[0]
    with torch.no_grad():
        wanted = layer.couple(layer.state(model.embed(tokens)))[0].numpy()
    assert np.abs(interpret(stage) - wanted).max() < 1e-12


@pytest.mark.parametrize(("update", "runs"), [("flow", "flow"), ("euler", "probe")])
def test_the_update_follows_the_training(update: str, runs: str) -> None:
    program = lower(trace(tiny_model(update=update), [1, 2]), CARD)
    assert program.stages[0].update == runs
    assert program.stages[0].model_update == update
    assert program.notes == ()


@pytest.mark.parametrize(
    ("update", "asked", "note"),
    [
        (
            "euler",
            "flow",
            "The layers were trained with update euler, but the program runs them as "
            "flow, as asked: this changes the model.",
        ),
        (
            "flow",
            "probe",
            "The layers were trained with update flow, but the program runs them as "
            "probe, as asked: this changes the model.",
        ),
    ],
)
def test_another_update_is_named_in_the_program(
    update: str, asked: str, note: str
) -> None:
    program = lower(trace(tiny_model(update=update), [1, 2]), CARD, update=asked)
    assert program.stages[0].update == asked
    assert program.notes == (note,)


def test_an_update_that_no_hardware_runs_is_refused() -> None:
    with pytest.raises(RequestError, match="must be one of flow, probe, but is 'eul"):
        lower(trace(tiny_model(), [1, 2]), CARD, update="euler")


def test_only_the_layers_that_were_asked_for_in_their_order() -> None:
    found = trace(tiny_model(layers=3), [1, 2, 3])
    names = [s.name for s in lower(found, CARD, layers=[2, 0, 2]).stages]
    assert names == ["layer.0.coupling", "layer.2.coupling"]
    assert len(lower(found, CARD).stages) == 3


@pytest.mark.parametrize("layer", [3, -1])
def test_a_layer_that_does_not_exist_is_refused(layer: int) -> None:
    with pytest.raises(RequestError) as caught:
        lower(trace(tiny_model(layers=3), [1]), CARD, layers=[0, layer])
    assert str(caught.value) == (
        f"Layer {layer} does not exist; the model has layers 0 to 2."
    )


def test_no_layer_at_all_is_refused() -> None:
    with pytest.raises(RequestError, match="at least one stage"):
        lower(trace(tiny_model(), [1]), CARD, layers=[])


def test_a_family_without_lowering_is_refused() -> None:
    found = replace(trace(tiny_model(), [1]), family="transformer")
    with pytest.raises(RequestError) as caught:
        lower(found, CARD)
    assert str(caught.value) == (
        "Family `transformer` cannot be lowered yet; "
        "kuramoto, fsn, fsn-no-phase, fsn-mf, ssa can."
    )
    locks = replace(trace(tiny_model(), [1]), family="ssa")
    with pytest.raises(RequestError, match="locks pairs and has no phases to trace"):
        lower(locks, CARD)


def test_an_unknown_training_update_is_refused() -> None:
    layer = trace(tiny_model(), [1]).layers[0]
    with pytest.raises(RequestError, match="`model_update` must be one of euler, flow"):
        lower_layer("fsn", "heun", 0, layer)


@pytest.mark.parametrize("family", LOWERINGS)
def test_one_token_lowers_to_self_pairs_alone(family: str) -> None:
    stage = lower(trace(tiny_model(family), [5]), CARD).stages[0]
    assert stage.phi0_rad.shape == (1, 4)
    assert coupled_pairs(stage) == 4
    orders = 1 if family == "kuramoto" else 2
    assert pair_terms(stage) == 4 * orders
    assert np.abs(interpret(stage) - stage.digital_rad).max() < LEVEL_IR_RAD


def test_sources_and_targets_are_the_tokens_phases() -> None:
    found = trace(tiny_model(), [1, 2, 3])
    stage = lower(found, CARD).stages[0]
    layer = found.layers[0]
    assert (stage.theta_rad == layer.theta_rad).all()
    assert (stage.phi0_rad == layer.theta_rad).all()
    assert (stage.gain_rad == layer.gain_rad).all()
    assert (stage.digital_rad == layer.next_rad).all()
    assert not stage.detuning_rad.any()
    assert stage.causal


def test_host_operations_keep_order_layer_and_unit() -> None:
    tokens = 5
    program = lower(trace(tiny_model(layers=2), list(range(tokens))), CARD)
    operations = program.host_operations
    assert [o.layer for o in operations] == sorted(
        (o.layer for o in operations), key=lambda layer: (layer < 0, layer)
    )
    by_name = {(o.name, o.layer): o for o in operations}
    pairs = tokens * (tokens + 1) // 2
    assert by_name["score", 1].count == pairs * 2 * 4
    assert by_name["softmax_exponentials", 0].count == pairs * 2
    assert by_name["softmax_exponentials", 0].unit == "exp"
    assert by_name["score", 0].unit == "mac"
    assert by_name["read_out", -1].count == tokens * 98 * 2 * 4
    assert by_name["embedding_reads", -1].unit == "read"
