"""evaluate with pair cells in the loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oscc.checkpoint import LoadedCheckpoint
from oscc.corpus import ASCII, Corpus
from oscc.device import load_card
from oscc.errors import RequestError
from oscc.ladder.locks import decided_by_ratio
from oscc.lock_trace import trace_locks
from oscc.lower.ssa import LockPlan, lock_stage
from oscc.testing.locks import lock_checkpoint
from oscc.verbs.compile import CompileRequest
from oscc.verbs.evaluate import EvaluateOptions, evaluate
from oscc.verbs.evaluate_locks import CellTally
from oscc.verbs.stage_run import run_cells


@pytest.fixture(autouse=True)
def short_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A corpus of two short parts, so that no test reads the whole library."""
    from oscc import corpus

    symbols = ASCII.encode("def f(x):\n    return x + 1\n" * 8)
    made = Corpus("short", "c" * 64, 1, ASCII, symbols[:130], symbols[130:])
    monkeypatch.setattr(corpus, "standard_library", lambda: made)


@pytest.fixture(scope="module")
def model() -> LoadedCheckpoint:
    return lock_checkpoint()


def run(
    model: LoadedCheckpoint, engine: str, step: float = 0.0, **request: Any
) -> dict[str, Any]:
    options = EvaluateOptions(32, CompileRequest(**request), step)
    return evaluate(model, engine, options=options)


def test_the_phase_engine_in_the_loop_errs_by_settling_alone(
    model: LoadedCheckpoint,
) -> None:
    found = run(model, "phase")
    assert found["bpc_hardware"] == found["bpc_phase"]
    assert abs(found["delta_bpc"]) < 0.01
    assert found["periods_per_stage"] is None
    layers = found["layers"]
    assert [layer["stage"] for layer in layers] == ["layer.0.locks", "layer.1.locks"]
    for layer in layers:
        # what the definition of a decided cell leaves: .01 of the cosine
        assert 0 < layer["rms_coherence"] < 0.01
        assert layer["rms_rad"] is None
        assert layer["slips"] == 0
        assert layer["undecided"] < 0.2 * layer["cells"]
    longer = run(model, "phase", periods=2000)
    assert abs(longer["delta_bpc"]) < abs(found["delta_bpc"]) + 1e-6
    for one, other in zip(longer["layers"], layers, strict=True):
        assert one["rms_coherence"] < other["rms_coherence"]
        assert one["undecided"] < 0.2 * other["undecided"]


def test_the_circuit_in_the_loop(model: LoadedCheckpoint) -> None:
    found = run(model, "circuit", 1e-3, periods=100)
    assert found["device"] == "vo2-two-state-5k5"
    assert found["periods_per_stage"] == 100
    assert (found["lock_coupling"], found["lock_step"]) == (0.02, 1e-3)
    # the law of the circuit is good to .006 in the cosine
    assert all(0 < layer["rms_coherence"] < 0.006 for layer in found["layers"])
    assert abs(found["delta_bpc"]) < 0.02
    assert found["top1_agreement"] > 0.9
    again = run(model, "circuit", 1e-3, periods=100, threads=2)
    assert again == found


def test_a_dwell_is_chosen_on_other_windows(model: LoadedCheckpoint) -> None:
    """As compiling would: at most 4 % of the cells of the calibration are open."""
    found = run(model, "circuit", 1e-3)
    assert found["periods_per_stage"] > 100
    for layer in found["layers"]:
        assert layer["undecided"] <= 0.08 * layer["cells"]


@pytest.mark.parametrize("engine", ["phase", "circuit"])
def test_the_step_of_detunings_errs_within_its_bound(
    model: LoadedCheckpoint, engine: str
) -> None:
    """|d cos| <= x/sqrt(1 - x^2) step/2 at lock, and half the step at most in x."""
    tokens = ASCII.encode("def f(x):\n    r").astype(np.int64)
    layer = trace_locks(model.model, tokens).layers[0]  # type: ignore[arg-type]
    card, step = load_card("vo2-two-state-5k5"), 1e-3
    exact, coarse = (
        lock_stage(layer, LockPlan(periods=150, step=s)) for s in (0.0, step)
    )
    assert exact is not None
    assert coarse is not None
    pull = LockPlan(periods=150).pull_rad
    x = exact.detuning_rad / pull
    moved = coarse.detuning_rad / pull - x
    assert 0.2 * step < np.abs(moved).max() <= 0.5 * step * (1 + 1e-9)
    levels = coarse.detuning_rad / pull / step
    np.testing.assert_allclose(levels, np.round(levels), atol=1e-6)
    assert np.unique(levels.round()).size < x.size
    one, other = (run_cells(stage, engine, card) for stage in (exact, coarse))
    held = decided_by_ratio(exact) & (x < 0.95)
    bound = x[held] / np.sqrt(1 - x[held] ** 2) * step / 2
    change = np.abs(one.coherence - other.coherence)[held]
    assert change.max() > 0
    # room for the curvature of the root, and for the circuit's own law
    assert (change <= 1.05 * bound + 2e-6).all()
    np.testing.assert_array_equal(one.locked[held], other.locked[held])


def test_a_tally_leaves_open_cells_out() -> None:
    tally = CellTally()
    error = np.array([0.3, 0.01, -0.01, 0.0])
    decided = np.array([False, True, True, True])
    tally.note(error, decided, np.array([True, True, False, False]))
    tally.note(error, decided, np.array([True, False, False, False]))
    assert tally.squares == pytest.approx(4e-4)
    assert (tally.decided, tally.cells, tally.flips, tally.windows) == (6, 8, 1, 2)


def test_engines_and_modes_that_are_none_are_refused(model: LoadedCheckpoint) -> None:
    with pytest.raises(RequestError, match="phase or circuit"):
        run(model, "gnucap")
    with pytest.raises(RequestError, match="mode `prefill`"):
        run(model, "phase", mode="decode")
    with pytest.raises(RequestError, match="leave --score out"):
        run(model, "phase", score="hardware")


def test_distance_from_the_digital_model_is_told(model: LoadedCheckpoint) -> None:
    """Of all pairs, a long dwell and exact engines leave next to nothing."""
    near = run(model, "phase", periods=20_000)
    far = run(model, "phase", periods=100)
    for one, other in zip(near["layers"], far["layers"], strict=True):
        assert 0 < one["rms_coherence_to_model"] < other["rms_coherence_to_model"]
    assert near["layers"][0]["rms_coherence_to_model"] < 0.01
