"""Cells of the tokens' own oscillators: detunings, rounds, refusals."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oscc
from oscc.device import card_from_mapping, load_card
from oscc.device.lock_cell import largest_ratio
from oscc.device.piecewise import period_s
from oscc.errors import RequestError
from oscc.ir.codec import decode, encode
from oscc.ir.interpret import interpret_cells
from oscc.ir.rounds import oscillators, rounds
from oscc.ladder.locks import decided_cells, lock_ratio
from oscc.lock_trace import forward_with_locks, trace_locks
from oscc.lower.ssa import LockPlan, beyond_reach, coherence_of_pairs, lock_stage
from oscc.testing.flat import cells_stage
from oscc.testing.locks import lock_checkpoint, lock_model
from oscc.testing.tiny import tiny_stage

CARD = load_card("vo2-two-state-5k5")
REACH = largest_ratio(CARD, 0.02)
PLAN = LockPlan(mode="native", reach=REACH)
TEXT = "import os\nx"


def spread(model: Any, scale: float) -> Any:
    """The model with its frequencies scaled, so that pairs lock, slip, or are far."""
    for block in model.blocks:
        block.attention.frequency.weight.data *= scale
    return model


def native_checkpoint(scale: float = 20.0, **changes: Any) -> Any:
    loaded = lock_checkpoint(**({"heads": 8, "arm": "published"} | changes))
    spread(loaded.model, scale)
    return loaded


@given(
    seed=st.integers(0, 10_000),
    heads=st.sampled_from([1, 2, 4]),
    mask=st.sampled_from(["causal", "none"]),
    scale=st.sampled_from([1.0, 10.0, 30.0, 300.0]),
    tokens=st.lists(st.integers(0, 97), min_size=2, max_size=7),
)
@settings(max_examples=30)
def test_every_pair_has_its_own_signed_detuning(
    seed: int, heads: int, mask: str, scale: float, tokens: list[int]
) -> None:
    model = lock_model(seed, k=heads, heads=heads, arm="published", mask=mask)
    trace = trace_locks(spread(model, scale), tokens)
    size = len(tokens)
    for layer in trace.layers:
        stage = lock_stage(layer, PLAN)
        assert stage is not None
        assert stage.index is not None
        assert stage.targets == heads * size * (size - 1) // 2
        ratio, pull = lock_ratio(stage)
        assert pull == pytest.approx(PLAN.pull_rad)
        assert ratio.max() <= REACH * (1 + 1e-12)
        far = 0
        for row, (h, i, j) in enumerate(stage.index):
            assert j < i
            delta = layer.frequency[h, i, 0] - layer.frequency[h, j, 0]
            strength = layer.strength[h, i, j]
            far += abs(delta) > REACH * strength
            wanted = np.clip(delta / max(strength, 1e-300), -REACH, REACH)
            assert stage.detuning_rad[row] / pull == pytest.approx(
                wanted, rel=1e-9, abs=1e-12
            )
            # the strength that stands in the edge goes with that detuning
            assert stage.edges.gamma[row] * abs(
                stage.detuning_rad[row]
            ) / pull == pytest.approx(abs(delta), rel=1e-9, abs=1e-12)
        assert far == beyond_reach(layer, PLAN)
        digital = stage.digital_coherence
        # near the edge the root turns 1e-16 of x into 1e-8
        np.testing.assert_allclose(interpret_cells(stage), digital, atol=1e-6)


@given(seed=st.integers(0, 10_000), scale=st.sampled_from([5.0, 20.0, 100.0]))
@settings(max_examples=10)
def test_native_cells_give_the_model(seed: int, scale: float) -> None:
    model = spread(lock_model(seed, k=4, heads=4, arm="published"), scale)
    tokens = np.arange(9) * 7 % 19 + 3

    def step(_: int, layer: Any) -> Any:
        stage = lock_stage(layer, PLAN)
        assert stage is not None
        assert stage.index is not None
        return coherence_of_pairs(layer, stage.index, interpret_cells(stage))

    found = forward_with_locks(model, tokens[None], step)[0]
    np.testing.assert_allclose(found, trace_locks(model, tokens).logits, atol=1e-6)


def circle(count: int) -> list[list[tuple[int, int]]]:
    """The round robin by the circle method: a token more rests where it is odd."""
    ring = list(range(count + count % 2))
    out = []
    for _ in range(len(ring) - 1):
        pairs = [(ring[k], ring[-1 - k]) for k in range(len(ring) // 2)]
        out.append([p for p in pairs if max(p) < count])
        ring = [ring[0], ring[-1], *ring[1:-1]]
    return out


@pytest.mark.parametrize("size", [2, 3, 6, 7, 64])
def test_rounds_are_those_of_a_schedule(size: int) -> None:
    schedule = circle(size)
    met = {tuple(sorted(pair)) for pairs in schedule for pair in pairs}
    assert met == set(combinations(range(size), 2))
    assert all(
        len({t for p in pairs for t in p}) == 2 * len(pairs) for pairs in schedule
    )
    index = np.array([[h, i, j] for h in (0, 1) for j, i in sorted(met)])
    stage = cells_stage(
        np.zeros(len(index)), index=index, source_index=index, lock_mode="native"
    )
    assert rounds(stage) == len(schedule) == size - 1 + size % 2
    assert oscillators(stage) == 2 * size
    host = cells_stage(np.zeros(len(index)), index=index, source_index=index)
    assert (rounds(host), oscillators(host)) == (1, 2 * len(index))


def test_a_new_token_visits_the_others_one_by_one() -> None:
    program = oscc.compile(native_checkpoint(), TEXT, lock_mode="native", mode="decode")
    for stage in program.stages:
        assert stage.targets == 8 * 10
        assert rounds(stage) == 10
        assert oscillators(stage) == 8 * 11


def test_a_program_says_its_rounds_and_counts_their_time() -> None:
    model = native_checkpoint()
    native, host = (
        oscc.compile(model, TEXT, lock_mode=mode, periods=150)
        for mode in ("native", "host")
    )
    assert decode(encode(native)) == native
    assert decode(encode(native)).stages[0].lock_mode == "native"
    assert sum("the trim reaches" in note for note in native.notes) == 2
    # 11 tokens all to all: 11 rounds of 5 pairs a head
    seconds = 11 * 150 * period_s(card_from_mapping(native.device))
    assert "88 oscillators, one a token and head" in native.notes[-1]
    assert "11 rounds of 150 periods" in native.notes[-1]
    assert f"{seconds * 1e6:.0f}" in native.notes[-1]
    account, other = oscc.energy(native), oscc.energy(host)
    assert account.pairs == 2 * 8 * 55
    assert account.periods == 2 * 11 * 150
    assert account.seconds_per_token == pytest.approx(2 * seconds)
    stage, alone = account.stages[0], other.stages[0]
    assert stage["duration_s"] == pytest.approx(11 * alone["duration_s"])
    # a cell costs the same, whoever's oscillators it is made of
    each = account.causes_J["target_oscillators"] / account.pairs
    assert each == pytest.approx(other.causes_J["target_oscillators"] / other.pairs)


def test_native_cells_are_judged_by_what_is_read() -> None:
    x = (0.5, 0.97, 1.01, 1.5)
    host, native = (cells_stage(x, lock_mode=mode) for mode in ("host", "native"))
    rows = np.arange(4)
    read = np.array([1.0, 1.0, -1.0, 0.0])
    assert decided_cells(host, rows, read).tolist() == [True, False, False, True]
    assert decided_cells(native, rows, read).tolist() == [True, True, False, True]
    verdict = oscc.verify(oscc.compile(native_checkpoint(), TEXT, lock_mode="native"))
    assert verdict.passed, str(verdict)
    level = verdict.levels[-1]
    assert level.engine == "circuit"
    assert level.targets == 2 * 8 * 55
    # slips and locks are both there to be told apart
    signed = oscc.compile(native_checkpoint(), TEXT, lock_mode="native").stages[0]
    ratio, _ = lock_ratio(signed)
    assert 0.1 < (ratio < 1).mean() < 0.9
    assert 0.2 < (signed.detuning_rad < 0).mean() < 0.8


def test_the_loop_and_evaluate_run_native_cells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from oscc import corpus
    from oscc.verbs.closed_loop_locks import LockClosedLoop
    from oscc.verbs.compile import CompileRequest
    from oscc.verbs.evaluate import EvaluateOptions, evaluate

    model = native_checkpoint()
    program = oscc.compile(model, TEXT, lock_mode="native")
    loop = LockClosedLoop(program, model)
    loop.run("ir")
    want = trace_locks(model.model, program.tokens).logits
    np.testing.assert_allclose(loop.logits["ir"], want, atol=1e-6)
    symbols = corpus.ASCII.encode("def f(x):\n    return x + 1\n" * 8)
    made = corpus.Corpus(
        "short", "c" * 64, 1, corpus.ASCII, symbols[:130], symbols[130:]
    )
    monkeypatch.setattr(corpus, "standard_library", lambda: made)
    options = EvaluateOptions(16, CompileRequest(lock_mode="native"), 1e-3)
    found = evaluate(model, "circuit", options=options)
    assert max(layer["rms_coherence"] for layer in found["layers"]) < 0.006
    assert abs(found["delta_bpc"]) < 0.01
    assert found["layers"][0]["cells"] == 8 * 16 * 15 // 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"heads": 2}, "arm `published` with 2 heads of 4 dimensions"),
        ({"arm": "trainable"}, "arm `trainable` with 8 heads of 1 dimensions"),
    ],
)
def test_models_that_it_does_not_fit_are_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(RequestError, match=message):
        oscc.compile(native_checkpoint(**changes), TEXT, lock_mode="native")


def test_words_and_stages_that_do_not_fit_are_refused() -> None:
    from oscc.testing.tiny import tiny_checkpoint

    with pytest.raises(RequestError, match="Family `fsn` locks no pairs"):
        oscc.compile(tiny_checkpoint(), TEXT, lock_mode="native")
    with pytest.raises(RequestError, match="lock_mode"):
        oscc.compile(native_checkpoint(), TEXT, lock_mode="own")
    with pytest.raises(RequestError, match="for pair cells"):
        tiny_stage(lock_mode="native")
    with pytest.raises(RequestError, match="lock_mode"):
        cells_stage(lock_mode="own")
    wide = trace_locks(lock_model(arm="published"), [3, 4, 5]).layers[0]
    with pytest.raises(RequestError, match="a head has 4 dimensions"):
        lock_stage(wide, PLAN)
    with pytest.raises(RequestError, match="needs the `reach`"):
        lock_stage(wide, LockPlan(mode="native"))
