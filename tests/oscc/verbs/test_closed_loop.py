"""Closed loop: what one layer gets wrong is what the next one sees."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from oscc.checkpoint import LoadedCheckpoint
from oscc.errors import RequestError
from oscc.ir.interpret import interpret
from oscc.lower import lower_layer
from oscc.testing.tiny import TEXT
from oscc.trace import Step, forward_with, trace
from oscc.verbs.closed_loop import ClosedLoop
from oscc.verbs.compile import compile
from oscc.verbs.simulate import simulate
from oscc.verbs.verify import VerifyOptions, verify

Models = dict[str, LoadedCheckpoint]
NAMES = ("layer.0.coupling", "layer.1.coupling")


@pytest.mark.parametrize("name", ["fsn-flow", "fsn-euler", "fsn-mf-flow"])
def test_exact_layers_in_the_loop_are_the_digital_model(
    models: Models, name: str
) -> None:
    model = models[name]
    program = compile(model, TEXT)
    loop = ClosedLoop(program, model)
    seen = loop.run("ir")
    for stage in program.stages:
        digital = stage.on_grid(stage.digital_rad)
        assert np.abs(seen.phase(stage.name) - digital).max() < 1e-8
    digital = trace(model.model, program.tokens).logits
    assert np.abs(loop.logits["ir"] - digital).max() < 1e-8


def test_the_first_layer_is_that_of_the_open_loop(models: Models) -> None:
    program = compile(models["fsn-flow"], TEXT, accuracy_mrad=30)
    closed = ClosedLoop(program, models["fsn-flow"]).run("circuit")
    opened = simulate(program, "circuit")
    assert (closed.phase(NAMES[0]) == opened.phase(NAMES[0])).all()
    assert (closed.phase(NAMES[1]) != opened.phase(NAMES[1])).any()


def test_the_second_layer_runs_on_what_the_first_returned(models: Models) -> None:
    """The loop written out: circuit phases of layer 0 through the host to layer 1."""
    from oscc.device import load_card
    from oscc_backends import circuit
    from oscc_sims.circuit import solve

    model = models["fsn-flow"]
    program = compile(model, TEXT, accuracy_mrad=30)
    first = simulate(program, "circuit").phase(NAMES[0])
    met: list[Step] = []

    def step(number: int, layer: Step) -> np.ndarray:
        met.append(layer)
        return first if number == 0 else layer.next_rad

    forward_with(model.model, program.tokens[None], step)
    plan = program.stages[1]
    stage = lower_layer(
        "fsn",
        "flow",
        1,
        met[1],
        scheme=plan.scheme,
        substeps=plan.substeps,
        dwell_periods=plan.dwell_periods,
    )
    wanted, _ = solve(load_card("vo2-two-state-6k"), circuit.problem(stage))
    seen = ClosedLoop(program, model).run("circuit").phase(NAMES[1])
    assert seen.ravel().tolist() == wanted.tolist()


def test_modes_run_on_what_their_attention_returned(models: Models) -> None:
    """The loop written out for one layer: attention, then the modes of its phases."""
    from oscc.device import load_card
    from oscc.lower.modes import fields
    from oscc.trace import ModesTrace
    from oscc_backends import circuit
    from oscc_sims.circuit import solve

    model = models["fsn-mf-flow"]
    program = compile(model, TEXT, accuracy_mrad=30)
    first = simulate(program, "circuit").phase(NAMES[0])
    met: list[Step] = []

    def step(number: int, layer: Step) -> np.ndarray:
        met.append(layer)
        return first if layer.name == NAMES[0] else layer.next_rad

    forward_with(model.model, program.tokens[None], step)
    modes = met[1]
    assert isinstance(modes, ModesTrace)
    assert (modes.theta_rad == first).all()
    stage = replace(program.stages[1], **fields(modes))
    wanted, _ = solve(load_card("vo2-two-state-6k"), circuit.problem(stage))
    seen = ClosedLoop(program, model).run("circuit")
    assert seen.phase("layer.0.modes").ravel().tolist() == wanted.tolist()
    assert seen.stages == tuple(sorted(stage.name for stage in program.stages))


def test_layers_that_were_not_compiled_stay_digital(models: Models) -> None:
    model = models["fsn-flow"]
    program = compile(model, TEXT, layers=[1])
    seen = ClosedLoop(program, model).run("phase")
    assert seen.stages == (NAMES[1],)
    exact = interpret(program.stages[0])
    assert np.abs(seen.phase(NAMES[1]) - exact).max() < 1e-8


def test_a_closed_verdict_says_so_and_judges_the_model(models: Models) -> None:
    model = models["fsn-flow"]
    program = compile(model, TEXT)
    verdict = verify(program, options=VerifyOptions(model=model))
    content = verdict.to_json()
    assert content["loop"] == "closed"
    judged = content["model"]
    assert set(judged) >= {"top1_agreement", "kl_nats", "bpc_digital", "bpc_hardware"}
    assert 0.9 <= judged["top1_agreement"] <= 1.0
    assert 0.0 < judged["kl_nats"] < 1e-2
    assert abs(judged["bpc_hardware"] - judged["bpc_digital"]) < 0.05
    assert verify(program).to_json()["model"] is None


def test_one_token_predicts_nothing(models: Models) -> None:
    model = models["fsn-flow"]
    loop = ClosedLoop(compile(model, "x"), model)
    loop.run("phase")
    found = loop.agreement("phase")
    assert (found["bpc_digital"], found["bpc_hardware"]) == (None, None)
    assert found["top1_agreement"] == 1.0


def test_another_checkpoint_is_refused(models: Models) -> None:
    program = compile(models["fsn-flow"], TEXT)
    with pytest.raises(RequestError, match="Give the checkpoint it was compiled from"):
        ClosedLoop(program, models["kuramoto-flow"])


def test_simulators_have_no_closed_loop(models: Models) -> None:
    model = models["fsn-flow"]
    with pytest.raises(RequestError, match="ngspice runs sampled targets alone"):
        ClosedLoop(compile(model, TEXT), model).run("ngspice")


def test_a_checkpoint_file_is_known_by_its_content(
    checkpoints: dict[str, Path], models: Models, tmp_path: Path
) -> None:
    from oscc.checkpoint import load_checkpoint

    copy = tmp_path / "renamed.safetensors"
    copy.write_bytes(checkpoints["fsn-flow"].read_bytes())
    program = compile(models["fsn-flow"], TEXT)
    assert ClosedLoop(program, load_checkpoint(copy)).run("phase").stages == NAMES
