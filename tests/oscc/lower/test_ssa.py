"""Lowering of SSA: traced locks, cells, and the way back into the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from oscc.checkpoint import load_checkpoint
from oscc.errors import RequestError
from oscc.ir.codec import decode, encode
from oscc.ir.interpret import interpret_cells, run
from oscc.lock_trace import forward_with_locks, trace_locks
from oscc.lower.ssa import (
    LockPlan,
    cells,
    coherence_of_pairs,
    lock_stage,
    lower_locks,
    proved_unlocked,
)
from oscc.models.base import build_model
from oscc.models.config import ModelConfig

CHECKPOINTS = Path(__file__).parents[3] / "checkpoints"
TOKENS = np.arange(24) * 7 % 19 + 3


def model_of(seed: int = 1, **changes: object) -> torch.nn.Module:
    sizes = {"k": 8, "layers": 2, "heads": 2, "hidden": 6, "context": 32}
    return build_model(ModelConfig("ssa", **{**sizes, **changes}), seed)


CASES = [
    {},
    {"arm": "published"},
    {"arm": "published", "mask": "none"},
    {"mask": "none"},
    {"lock_top_k": 4},
    {"heads": 8},  # head dimension 1
]


@pytest.mark.parametrize("changes", CASES, ids=str)
def test_a_trace_is_the_model(changes: dict[str, object]) -> None:
    model = model_of(**changes).double()
    with torch.no_grad():
        wanted = model(torch.from_numpy(TOKENS[None]))[0].numpy()
    found = trace_locks(model, TOKENS)
    # the guard below the root of the layer, 1e-12 of S^2
    np.testing.assert_allclose(found.logits, wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("changes", CASES, ids=str)
def test_cells_say_all_that_the_model_needs(changes: dict[str, object]) -> None:
    """Only cells, put back into the model, give its logits: the rest is proved."""
    model = model_of(**changes)
    want = trace_locks(model, TOKENS)

    def by_cells(index, layer):
        stage = lock_stage(layer)
        return coherence_of_pairs(layer, stage.index, interpret_cells(stage))

    found = forward_with_locks(model, TOKENS[None], by_cells)[0]
    np.testing.assert_allclose(found, want.logits, rtol=0, atol=1e-9)
    # cells that read nothing are not the model
    wrong = forward_with_locks(
        model, TOKENS[None], lambda _, layer: np.eye(24) + 0 * layer.factor
    )
    assert np.abs(wrong[0] - want.logits).max() > 1e-5


def test_ratios_against_loops_over_pairs() -> None:
    """Delta, J and r written down pair by pair from the article's equations."""
    model = model_of(arm="published").double()
    attention = model.blocks[0].attention
    with torch.no_grad():
        x = model.blocks[0].attention_norm(model.embed(torch.from_numpy(TOKENS[None])))
        w = attention.frequency(x)[0].numpy().reshape(24, 2, 4)
        phase = attention.phase(x)[0].numpy().reshape(24, 2, 4)
    decay, pull = (np.log1p(np.exp(1.0)) for _ in range(2))
    layer = trace_locks(model, TOKENS).layers[0]
    for h, i, j in [(0, 5, 2), (1, 23, 0), (0, 7, 7)]:
        delta = np.linalg.norm(w[i, h] - w[j, h])
        factor = np.exp(-decay * delta**2)
        order = np.abs(np.exp(1j * phase[: i + 1, h]).mean(axis=0)).mean()
        assert layer.ratio[h, i, j] == pytest.approx(
            delta / (pull * order * factor), rel=1e-6, abs=1e-12
        )
        assert layer.factor[h, i, j] == pytest.approx(factor, rel=1e-9)


def test_every_cell_has_one_pull_and_its_own_detuning() -> None:
    layer, plan = trace_locks(model_of(), TOKENS).layers[0], LockPlan(0.03, 80, 1.2)
    stage = lock_stage(layer, plan)
    assert stage is not None
    pull = 2 * np.pi * 80 * 0.03
    np.testing.assert_allclose(stage.gain_rad * stage.edges.gamma, pull, rtol=1e-14)
    head, token, partner = stage.index.T
    x = layer.ratio[head, token, partner]
    np.testing.assert_allclose(stage.detuning_rad, pull * x, rtol=1e-14)
    np.testing.assert_allclose(stage.edges.gamma, layer.strength[head, token, partner])
    assert x.max() <= 1.2
    assert np.all(partner < token)
    every = 2 * 24 * 23 // 2
    assert len(stage.index) + proved_unlocked(layer, 1.2) == every
    np.testing.assert_allclose(
        interpret_cells(stage), stage.digital_coherence, rtol=0, atol=1e-7
    )


def test_without_a_mask_a_cell_serves_both_rows() -> None:
    layer = trace_locks(model_of(mask="none"), TOKENS).layers[0]
    np.testing.assert_allclose(layer.ratio, layer.ratio.transpose(0, 2, 1), rtol=1e-9)
    index = cells(layer, 1.05)
    assert np.all(index[:, 1] > index[:, 2])
    stage = lock_stage(layer)
    assert stage is not None
    assert not stage.causal


def test_a_program_of_locks_round_trips_and_runs() -> None:
    model = load_checkpoint(CHECKPOINTS / "ssa-trainable.safetensors").model
    trace = trace_locks(model, TOKENS)
    program = lower_locks(trace, {"name": "any"}, layers=[1])
    assert [stage.name for stage in program.stages] == ["layer.1.locks"]
    assert decode(encode(program)) == program
    seen = run(program)
    assert seen.stages == ("layer.1.locks",)
    digital = program.stages[0].digital_coherence
    found = seen.arrays["layer.1.locks.coherence"]
    np.testing.assert_allclose(found, digital, rtol=0, atol=1e-6)
    assert "unlocked by the closed form" in program.notes[0]
    assert sum(o.name == "distances" for o in program.host_operations) == 2


def test_what_cannot_be_lowered_is_refused() -> None:
    one = trace_locks(model_of(), [5])
    with pytest.raises(RequestError, match="No pair of different tokens can lock"):
        lower_locks(one, {})
    with pytest.raises(RequestError, match="Layer 2 does not exist"):
        lower_locks(trace_locks(model_of(), TOKENS), {}, layers=[2])
    with pytest.raises(RequestError, match="coupling"):
        lock_stage(one.layers[0], LockPlan(0.0))
    with pytest.raises(RequestError, match="shape"):
        forward_with_locks(model_of(), TOKENS[None], lambda _, layer: np.ones(3))
    with pytest.raises(RequestError, match="no finite"):
        forward_with_locks(
            model_of(), TOKENS[None], lambda _, layer: layer.factor * np.nan
        )
