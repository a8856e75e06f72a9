"""The closed loop of pair cells: a block on what was read in the one before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oscc
from oscc.cli.main import main
from oscc.device.lock_law import phase_difference_rad, x_settled, x_slipped
from oscc.errors import RequestError
from oscc.files import read_json
from oscc.ladder.locks import lock_ratio
from oscc.lock_trace import forward_with_locks, trace_locks
from oscc.testing.locks import lock_checkpoint, write_lock_checkpoint
from oscc.verbs.closed_loop_locks import LockClosedLoop
from oscc.verbs.verify import VerifyOptions, verify

TEXT = "import os\nx = 1"
NAMES = ("layer.0.locks", "layer.1.locks")


@pytest.fixture(scope="module")
def model() -> Any:
    return lock_checkpoint()


@pytest.fixture(scope="module")
def program(model: Any) -> Any:
    return oscc.compile(model, TEXT)


def by_the_law(model: Any, program: Any, wrong: float = 0.0) -> Any:
    """The loop written down without stages: the law on every pair of the window."""
    seen: list[Any] = []
    _, pull = lock_ratio(program.stages[0])

    def step(_: int, layer: Any) -> Any:
        near = layer.ratio <= 1.05
        psi = phase_difference_rad(np.where(near, layer.ratio, 0.0), pull)
        slips = ~near | (psi > np.pi / 2)
        out = np.where(slips, 0.0, np.cos(psi) + wrong)
        out[:, np.arange(15), np.arange(15)] = 1.0
        seen.append((out, layer.ratio))
        return out

    logits = forward_with_locks(model.model, program.tokens[None], step)[0]
    return logits, seen


def test_the_exact_engine_in_the_loop_is_the_digital_model(
    model: Any, program: Any
) -> None:
    loop = LockClosedLoop(program, model)
    seen = loop.run("ir")
    assert seen.stages == NAMES
    want = trace_locks(model.model, program.tokens)
    np.testing.assert_allclose(loop.logits["ir"], want.logits, atol=1e-9)
    for stage in program.stages:
        np.testing.assert_allclose(
            seen.arrays[f"{stage.name}.coherence"], stage.digital_coherence, atol=1e-9
        )
    found = loop.agreement("ir")
    assert found["top1_agreement"] == 1.0
    assert found["kl_nats"] < 1e-12
    assert found["bpc_hardware"] == pytest.approx(found["bpc_digital"], abs=1e-9)


def test_the_phase_engine_in_the_loop_is_the_law_in_the_loop(
    model: Any, program: Any
) -> None:
    loop = LockClosedLoop(program, model)
    seen, open_loop = loop.run("phase"), oscc.simulate(program, engine="phase")
    logits, layers = by_the_law(model, program)
    np.testing.assert_allclose(loop.logits["phase"], logits, atol=1e-9)
    for (wanted, ratio), stage in zip(layers, program.stages, strict=True):
        place = tuple(stage.index.T)
        read = seen.arrays[f"{stage.name}.coherence"]
        np.testing.assert_allclose(read, wanted[place], atol=1e-9)
        # what is open in the loop is so by the detuning that the loop has brought
        _, pull = lock_ratio(stage)
        x = ratio[place]
        near = (x > x_settled(pull)) & (x < x_slipped(pull))
        locked = seen.arrays[f"{stage.name}.locked"]
        assert (locked[near & (x <= 1.05)] == -1).all()
        assert (locked[x > 1.05] == 0).all()
        assert (locked[x < 0.9] == 1).all()
    first, second = (
        np.abs(
            seen.arrays[f"{name}.coherence"] - open_loop.arrays[f"{name}.coherence"]
        ).max()
        for name in NAMES
    )
    assert first < 1e-12
    assert second > 1e-6  # it runs on what the first has read
    off, _ = by_the_law(model, program, wrong=0.01)
    assert np.abs(off - logits).max() > 1e-4


def test_the_verdict_of_the_loop_has_the_model(model: Any, program: Any) -> None:
    verdict = verify(program, options=VerifyOptions(model=model))
    assert verdict.loop == "closed"
    assert [level.targets for level in verdict.levels] == [
        sum(stage.targets for stage in program.stages)
    ] * 3
    assert verdict.levels[0].passed
    assert verdict.model is not None
    assert verdict.model["engine"] == "circuit"
    assert verdict.model["top1_agreement"] > 0.9
    assert abs(verdict.model["bpc_hardware"] - verdict.model["bpc_digital"]) < 0.02
    assert set(verdict.causes) == {"averaging", "settling"}


@pytest.mark.parametrize(
    "changes", [{"mask": "none"}, {"heads": 8}, {"arm": "published"}], ids=str
)
def test_every_model_has_a_loop(changes: dict[str, Any]) -> None:
    model = lock_checkpoint(**changes)
    loop = LockClosedLoop(oscc.compile(model, TEXT), model)
    loop.run("ir")
    loop.run("phase")
    want = trace_locks(model.model, loop.program.tokens).logits  # type: ignore[arg-type]
    np.testing.assert_allclose(loop.logits["ir"], want, atol=1e-9)
    assert 0 < np.abs(loop.logits["phase"] - want).max() < 0.1


def test_layers_and_tokens_that_are_not_compiled_stay_digital(model: Any) -> None:
    want = trace_locks(model.model, oscc.compile(model, TEXT).tokens).logits
    last = oscc.compile(model, TEXT, mode="decode", periods=100)
    loop = LockClosedLoop(last, model)
    seen = loop.run("phase")
    np.testing.assert_allclose(loop.logits["phase"][:-1], want[:-1], atol=1e-12)
    assert np.abs(loop.logits["phase"][-1] - want[-1]).max() > 1e-6
    for stage in last.stages:
        assert seen.arrays[f"{stage.name}.locked"].shape == (stage.targets,)
    assert loop.agreement("phase")["bpc_digital"] is None  # one token predicts nothing
    second = oscc.compile(model, TEXT, layers=[1], periods=100)
    seen = LockClosedLoop(second, model).run("phase")
    assert seen.stages == ("layer.1.locks",)
    alone = oscc.simulate(second, engine="phase").arrays["layer.1.locks.coherence"]
    np.testing.assert_allclose(
        seen.arrays["layer.1.locks.coherence"], alone, atol=1e-12
    )


def test_other_checkpoints_and_simulators_are_refused(model: Any, program: Any) -> None:
    with pytest.raises(RequestError, match="Give the checkpoint it was compiled from"):
        LockClosedLoop(program, lock_checkpoint(seed=2))
    with pytest.raises(RequestError, match="gnucap runs sampled targets alone"):
        LockClosedLoop(program, model).run("gnucap")


def test_the_loop_by_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OSCC_CACHE", str(tmp_path / "cache"))
    checkpoint, build = tmp_path / "ssa.safetensors", tmp_path / "build"
    write_lock_checkpoint(checkpoint)
    assert main(["compile", str(checkpoint), "--text", TEXT, "-qo", str(build)]) == 0
    words = ["verify", str(build), "--closed-loop", "--checkpoint", str(checkpoint)]
    assert main([*words, "-q", "--levels", "ir,phase"]) in (0, 1)
    told = read_json(build / "verify.json", "oscc.verify/1")
    assert told["loop"] == "closed"
    assert told["model"]["engine"] == "phase"
    assert told["levels"][0]["passed"]
    assert main([*words, "--levels", "spice:gnucap"]) == 2
