"""evaluate --spice: decks of targets drawn over the text, as the loop ran them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oscc.checkpoint import LoadedCheckpoint
from oscc.corpus import ASCII, Corpus
from oscc.errors import RequestError
from oscc.testing.flat import cells_stage
from oscc.testing.locks import lock_checkpoint
from oscc.testing.tiny import tiny_stage
from oscc.verbs.compile import CompileRequest
from oscc.verbs.evaluate import EvaluateOptions, evaluate
from oscc.verbs.evaluate_spice import SpiceRequest, SpiceSample
from oscc.verbs.simulate import SimulateOptions

Models = dict[str, LoadedCheckpoint]
STEPS = ("layer.0.coupling", "layer.1.coupling")


@pytest.fixture(autouse=True)
def short_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A corpus of two short parts, so that no test reads the whole library."""
    from oscc import corpus

    symbols = ASCII.encode("def f(x):\n    return x + 1\n" * 8)
    made = Corpus("short", "c" * 64, 1, ASCII, symbols[:130], symbols[130:])
    monkeypatch.setattr(corpus, "standard_library", lambda: made)


def run(
    model: LoadedCheckpoint, count: int = 2, *, decks: Path | None = None, **more: Any
) -> dict[str, Any]:
    """Evaluation of three windows with SPICE by gnucap."""
    engine = more.pop("engine", "circuit")
    simulator = more.pop("simulator", "gnucap")
    options = SimulateOptions(jobs=more.pop("jobs", 1), decks=decks)
    chosen = EvaluateOptions(
        more.pop("tokens", 48),
        CompileRequest(**more),
        spice=SpiceRequest(count, simulator, options),
    )
    return evaluate(model, engine, options=chosen)


def drawn(count: int, windows: int, seed: int = 0) -> SpiceSample:
    sample = SpiceSample(SpiceRequest(count), windows, seed)
    for _ in range(windows):
        sample.keep("layer.0.coupling", tiny_stage())
    return sample


def test_windows_are_drawn_without_repetition_while_there_are_enough() -> None:
    sample = drawn(3, 5)
    assert [len(index) for index in sample.targets.values()] == [1, 1, 1]
    assert set(sample.stages) == set(sample.targets)
    for name, stage in sample.stages.items():
        assert name == stage.name
        assert name.startswith("window.")
        assert name.endswith(".layer.0.coupling")
    more = drawn(12, 5)
    assert sum(len(index) for index in more.targets.values()) == 12
    for index in more.targets.values():
        assert len({tuple(row) for row in index}) == len(index)


def test_a_draw_follows_its_seed_alone() -> None:
    one, again, other = drawn(3, 50), drawn(3, 50), drawn(3, 50, seed=1)
    assert list(one.stages) == list(again.stages) != list(other.stages)
    for name, index in one.targets.items():
        np.testing.assert_array_equal(index, again.targets[name])


def test_windows_and_targets_are_drawn_evenly() -> None:
    """Every window, and every target of a stage, about as often as any other."""
    windows: dict[str, int] = {}
    places = np.zeros(tiny_stage().grid)
    draws = 400
    for seed in range(draws):
        for name, index in drawn(1, 4, seed).targets.items():
            windows[name] = windows.get(name, 0) + 1
            places[tuple(index[0])] += 1
    for counts in (np.array(list(windows.values())), places.ravel()):
        wanted = draws / counts.size
        # chi squared over its degrees of freedom
        assert ((counts - wanted) ** 2 / wanted).sum() / (counts.size - 1) < 2.5
    assert len(windows) == 4


def test_of_pair_cells_decided_ones_are_drawn() -> None:
    sample = SpiceSample(SpiceRequest(8), 1)
    ratios = (0.2, 0.5, 0.999, 1.0, 1.4)
    sample.keep("layer.0.locks", cells_stage(ratios))
    (rows,) = sample.targets.values()
    assert rows.tolist() == [0, 1, 4]


def test_a_window_with_nothing_to_run_is_passed_over() -> None:
    sample = SpiceSample(SpiceRequest(2), 2)
    sample.keep("layer.0.locks", None)
    sample.keep("layer.0.locks", cells_stage((0.2, 0.5)))
    assert list(sample.stages) == ["window.1.layer.0.locks"]


@pytest.mark.gnucap
def test_spice_agrees_with_the_circuit_on_drawn_targets(
    models: Models, tmp_path: Path
) -> None:
    found = run(models["fsn-flow"], decks=tmp_path, accuracy_mrad=10.0)
    spice = found["spice"]
    assert (spice["passed"], spice["exit_status"]) == (True, 0)
    assert spice["sentence"] == "PASS"
    assert [row["stage"] for row in spice["layers"]] == list(STEPS)
    for row in spice["layers"]:
        assert (row["engine"], row["windows"], row["targets"]) == ("gnucap", 2, 2)
        assert 0 < row["rms_rad_to_circuit"] <= row["max_rad_to_circuit"] < 5e-3
        assert 0 < row["rms_rad_to_digital"] < 30e-3
    assert spice["levels"][0]["targets"] == 4
    assert spice["convergence"][0]["passed"] is True
    decks = {path.name for path in (tmp_path / "gnucap" / "decks").iterdir()}
    assert decks
    again = run(models["fsn-flow"], 1, decks=tmp_path, jobs=2)
    fewer = {path.name for path in (tmp_path / "gnucap" / "decks").iterdir()}
    assert len(fewer) < len(decks), "decks of the earlier sample are left"
    assert {k: v for k, v in again.items() if k != "spice"} == {
        k: v for k, v in found.items() if k != "spice"
    }


@pytest.mark.gnucap
def test_pair_cells_in_spice(tmp_path: Path) -> None:
    found = run(lock_checkpoint(), tokens=32, periods=100, decks=tmp_path)
    spice = found["spice"]
    assert spice["passed"] is True
    assert [row["stage"] for row in spice["layers"]] == [
        "layer.0.locks",
        "layer.1.locks",
    ]
    for row in spice["layers"]:
        assert row["max_coherence_to_circuit"] < 0.006


@pytest.mark.gnucap
def test_a_simulator_that_disagrees_fails_the_evaluation(
    models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    from oscc_sims import spice_jobs

    true = spice_jobs.increment_rad
    monkeypatch.setattr(spice_jobs, "increment_rad", lambda *rest: true(*rest) + 0.02)
    found = run(models["fsn-flow"], 1)
    assert found["spice"]["exit_status"] == 1
    assert found["spice"]["sentence"].startswith("FAIL   spice against circuit: 20")
    assert found["bpc_hardware"] > 0


def test_a_missing_simulator_leaves_the_bits(
    models: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OSCC_GNUCAP", str(tmp_path / "none"))
    found = run(models["fsn-flow"], 1)
    assert found["spice"]["exit_status"] == 3
    assert found["spice"]["passed"] is False
    assert found["spice"]["layers"] == []
    assert "gnucap" in found["spice"]["sentence"]
    assert found["bpc_hardware"] > 0


def test_nothing_drawn_is_no_verdict() -> None:
    from oscc.verbs.evaluate_spice import judge_sample

    found = judge_sample(SpiceSample(SpiceRequest(1), 1), family="ssa", device={})
    assert (found["exit_status"], found["passed"]) == (4, False)
    assert "hold no pair" in found["sentence"]


def test_what_cannot_be_is_refused(models: Models) -> None:
    with pytest.raises(RequestError, match="ask for engine `circuit`"):
        run(models["fsn-flow"], engine="phase")
    with pytest.raises(RequestError, match="no simulator `gnucup`"):
        run(models["fsn-flow"], simulator="gnucup")
    with pytest.raises(RequestError, match="count"):
        run(models["fsn-flow"], 0)
