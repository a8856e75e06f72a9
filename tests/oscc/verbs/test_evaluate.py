"""evaluate: bits per character with an engine in the loop, on the same windows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from oscc.checkpoint import LoadedCheckpoint
from oscc.corpus import Corpus, Vocabulary
from oscc.errors import RequestError
from oscc.files import dump_json
from oscc.ir.plan import total_periods
from oscc.lower import lower_layer
from oscc.models.config import ModelConfig
from oscc.testing.tiny import tiny_model
from oscc.verbs import evaluate as module
from oscc.verbs.compile import CompileRequest
from oscc.verbs.evaluate import EvaluateOptions, evaluate
from oscc.verbs.evaluate_scores import Scores
from oscc.verbs.held_out import whole_windows

Models = dict[str, LoadedCheckpoint]

KEYS = {
    *("format", "checkpoint", "engine", "tokens", "bpc_digital", "bpc_phase"),
    *("bpc_hardware", "delta_bpc", "delta_se", "top1_agreement", "kl_nats"),
    *("periods_per_stage", "layers"),
}


@pytest.fixture(autouse=True)
def short_corpus(monkeypatch: pytest.MonkeyPatch) -> Corpus:
    """A corpus of two short parts, so that no test reads the whole library."""
    from oscc import corpus

    words = "def f(x):\n    return x + 1\n" * 8
    symbols = corpus.ASCII.encode(words)
    made = Corpus("short", "c" * 64, 1, corpus.ASCII, symbols[:130], symbols[130:])
    monkeypatch.setattr(corpus, "standard_library", lambda: made)
    return made


def run(model: LoadedCheckpoint, engine: str, **options: Any) -> dict[str, Any]:
    text = options.pop("text", None)
    tokens = options.pop("tokens", 48)
    chosen = EvaluateOptions(tokens=tokens, request=CompileRequest(**options))
    return evaluate(model, engine, text=text, options=chosen)


@pytest.mark.parametrize("name", ["fsn-flow", "kuramoto-flow", "fsn-mf-flow"])
def test_phase_in_the_loop_is_the_digital_model(models: Models, name: str) -> None:
    found = run(models[name], "phase")
    assert set(found) >= KEYS
    assert abs(found["bpc_phase"] - found["bpc_digital"]) < 1e-9
    assert found["bpc_hardware"] == found["bpc_phase"]
    assert abs(found["delta_bpc"]) < 1e-9
    assert found["top1_agreement"] == 1.0
    assert abs(found["kl_nats"]) < 1e-12
    wanted = [f"layer.{n}.{step}" for n in (0, 1) for step in ("coupling", "modes")]
    if name != "fsn-mf-flow":
        wanted = wanted[::2]
    assert [layer["stage"] for layer in found["layers"]] == wanted
    assert all(layer["rms_rad"] < 1e-9 for layer in found["layers"])
    assert found["periods_per_stage"] is None


def digital_bits(model: LoadedCheckpoint, windows: Any) -> float:
    """Cross entropy by torch's own function, in double precision."""
    tokens = torch.from_numpy(np.asarray(windows, np.int64))
    import copy

    net = copy.deepcopy(model.model).double()
    net_config = net.config
    assert isinstance(net_config, ModelConfig)
    with torch.no_grad():
        logits = net(tokens[:, :-1])
        nats = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), tokens[:, 1:].flatten()
        )
    return float(nats) / math.log(2)


def test_digital_column_is_the_cross_entropy_of_torch(
    models: Models, short_corpus: Corpus
) -> None:
    """With the Euler step torch itself runs the same update as the reference."""
    from oscc.corpus import windows

    found = run(models["fsn-euler"], "phase")
    held_out = windows(short_corpus.held_out, 16, 48)
    wanted = digital_bits(models["fsn-euler"], held_out)
    assert found["bpc_digital"] == pytest.approx(wanted, abs=1e-9)
    assert found["tokens"] == held_out[:, 1:].size == 48
    assert found["windows"] == 3


def test_circuit_in_the_loop_states_its_errors_and_periods(models: Models) -> None:
    found = run(models["fsn-flow"], "circuit", accuracy_mrad=5.0)
    assert found["engine"] == "circuit"
    assert found["accuracy_rad"] == 5e-3
    for layer in found["layers"]:
        assert 0 < layer["rms_rad"] < 5e-3
        assert layer["slips"] == 0
    assert abs(found["delta_bpc"]) < 0.05
    change = found["bpc_hardware"] - found["bpc_digital"]
    assert found["delta_bpc"] == pytest.approx(change, abs=1e-12)
    assert found["delta_se"] > 0
    assert found["kl_nats"] > 0
    least = [
        (3 if row["scheme"] == "extrapolated" else 1)
        * row["substeps"]
        * row["dwell_periods"]
        for row in found["schemes"]
    ]
    assert found["periods_per_stage"] >= sum(least) / len(least)


def test_modes_in_the_loop_are_scheduled_and_judged_too(models: Models) -> None:
    found = run(models["fsn-mf-flow"], "circuit", accuracy_mrad=5.0)
    names = [f"layer.{n}.{step}" for n in (0, 1) for step in ("coupling", "modes")]
    assert [row["stage"] for row in found["layers"]] == names
    assert [row["stage"] for row in found["schemes"]] == names
    assert all(0 < row["rms_rad"] < 5e-3 for row in found["layers"])
    assert 0 < found["kl_nats"] < 0.05


def test_periods_are_those_of_the_stages_that_ran(models: Models) -> None:
    """A fixed scheme: 2 substeps of 20 periods, extrapolated, in every layer."""
    found = run(models["fsn-flow"], "circuit", substeps=2, periods=20)
    assert found["periods_per_stage"] == 120
    from oscc.trace import trace

    layer = trace(models["fsn-flow"].model, [1, 2]).layers[0]
    stage = lower_layer("fsn", "flow", 0, layer, substeps=2, dwell_periods=20)
    assert total_periods(stage) == 120


def test_more_accuracy_moves_the_bits_less(models: Models) -> None:
    far, near = (
        run(models["kuramoto-flow"], "circuit", scheme="plain", substeps=1, periods=p)
        for p in (30, 480)
    )
    assert near["kl_nats"] < 0.05 * far["kl_nats"]
    for one, other in zip(near["layers"], far["layers"], strict=True):
        assert one["rms_rad"] < 0.2 * other["rms_rad"]


def test_columns_of_two_engines_see_the_same_windows(models: Models) -> None:
    phase, circuit = (run(models["fsn-flow"], e) for e in ("phase", "circuit"))
    for key in ("bpc_digital", "bpc_phase", "tokens", "windows", "corpus_sha256"):
        assert phase[key] == circuit[key]


def test_it_repeats_itself_for_any_number_of_threads(models: Models) -> None:
    one, two = (run(models["fsn-flow"], "circuit", threads=n) for n in (1, 3))
    assert dump_json(one) == dump_json(two)


def test_an_engine_that_has_no_loop_is_refused(models: Models) -> None:
    with pytest.raises(RequestError) as caught:
        run(models["fsn-flow"], "ngspice")
    assert str(caught.value) == (
        "evaluate runs phase or circuit in the loop, not `ngspice`."
    )


@pytest.mark.parametrize("length", [2, 16, 17, 18, 40, 49])
def test_a_text_file_is_used_whole(models: Models, tmp_path: Path, length: int) -> None:
    text = ("class C:\n    y = 2\n" * 4)[:length]
    path = tmp_path / "text.py"
    path.write_text(text)
    found = run(models["fsn-euler"], "phase", text=path, tokens=1)
    assert found["tokens"] == length - 1
    symbols = models["fsn-euler"].vocabulary.encode(text)
    parts = [symbols[i : i + 17] for i in range(0, length - 1, 16)]
    total = sum(
        digital_bits(models["fsn-euler"], part[None]) * (part.size - 1)
        for part in parts
    )
    assert found["bpc_digital"] == pytest.approx(total / (length - 1), abs=1e-9)
    assert found["windows"] == len(parts)
    assert (found["delta_se"] is None) == (len(parts) == 1)


def test_a_folder_is_used_whole(models: Models, tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("second")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.txt").write_text("first ")
    folder = run(models["fsn-flow"], "phase", text=tmp_path)
    lone = tmp_path.parent / "joined.txt"
    lone.write_text("first second")
    assert (
        folder["bpc_digital"]
        == run(models["fsn-flow"], "phase", text=lone)["bpc_digital"]
    )


def test_texts_that_cannot_be_used(models: Models, tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("x")
    with pytest.raises(RequestError, match="has 1 symbols, evaluation needs 2"):
        run(models["fsn-flow"], "phase", text=path)
    path.write_text("añb")
    with pytest.raises(RequestError, match=r"'ñ' \(U\+00F1\) at position 2"):
        run(models["fsn-flow"], "phase", text=path)
    assert run(models["fsn-flow"], "phase", text=path, unknown="other")["tokens"] == 2
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(RequestError, match="is not UTF-8 text"):
        run(models["fsn-flow"], "phase", text=path)


def test_a_foreign_vocabulary_needs_a_text_of_its_own(
    models: Models, tmp_path: Path
) -> None:
    model = tiny_model(symbols=5, layers=1)
    own = LoadedCheckpoint(model, Vocabulary("acgt"), "d" * 64)
    with pytest.raises(RequestError, match="Give a text of its own with --text PATH"):
        run(own, "phase")
    path = tmp_path / "genome.txt"
    path.write_text("acgtgcatta" * 5)
    found = run(own, "circuit", text=path)
    assert found["tokens"] == 49
    assert found["layers"][0]["slips"] == 0


def test_progress_counts_windows_of_every_column(models: Models) -> None:
    told: list[tuple[str, int, int]] = []
    options = EvaluateOptions(
        tokens=48,
        progress=lambda column, done, total: told.append((column, done, total)),
    )
    evaluate(models["fsn-flow"], "phase", options=options)
    assert told == [("digital", 3, 3), ("phase", 3, 3)]


@pytest.mark.parametrize(
    ("length", "context", "sizes"),
    [(2, 16, [1]), (17, 16, [16]), (18, 16, [16, 1]), (50, 16, [16, 16, 16, 1])],
)
def test_windows_leave_nothing_over(
    length: int, context: int, sizes: list[int]
) -> None:
    symbols = np.arange(length, dtype=np.uint8)
    found = [w for group in whole_windows(symbols, context) for w in group]
    assert [w.size - 1 for w in found] == sizes
    assert np.concatenate([w[1:] for w in found]).tolist() == list(range(1, length))
    for window in found:
        assert (np.diff(window) == 1).all()


def test_the_error_of_the_difference_is_that_of_window_means(models: Models) -> None:
    """Equal windows: the standard error of a mean of their paired differences."""
    random = np.random.default_rng(0)
    digital = [random.random(16) for _ in range(9)]
    other = [d + random.normal(0.1, 0.2, 16) for d in digital]
    scores = Scores({"digital": digital, "circuit": other})
    delta, error, count = scores.change("circuit")
    paired = np.array([(o - d).mean() for o, d in zip(other, digital, strict=True)])
    assert delta == pytest.approx(paired.mean())
    assert error == pytest.approx(paired.std(ddof=1) / 3.0)
    assert count == 9


def test_a_stage_that_needs_more_current_gets_longer_dwells(models: Models) -> None:
    """What the calibration windows did not show is mended, and counted."""
    from oscc.passes.legalise import largest_injection
    from oscc.trace import trace

    loop = module._Loop(models["fsn-flow"], "circuit", EvaluateOptions())
    layer = trace(models["fsn-flow"].model, list(range(8))).layers[0]
    stage = lower_layer("fsn", "flow", 0, layer, substeps=1, dwell_periods=1)
    ratio, _ = largest_injection(stage, loop.passes)
    mended = loop._within_limit(stage)
    assert mended.substeps == 1
    assert mended.dwell_periods == math.ceil(ratio / 0.8) > 1
    assert largest_injection(mended, loop.passes)[0] <= 0.8
    assert loop._within_limit(mended).dwell_periods == mended.dwell_periods


def test_a_program_of_one_token_cannot_be_evaluated(models: Models) -> None:
    with pytest.raises(RequestError, match="ask for mode `prefill`"):
        run(models["fsn-flow"], "phase", mode="decode")


def test_growth_holds_what_earlier_layers_brought_along(models: Models) -> None:
    """The first step starts where the digital model does, the second one does not."""
    found = run(models["fsn-flow"], "circuit", accuracy_mrad=5.0)
    first, second = found["layers"]
    assert first["rms_rad_to_model"] == pytest.approx(first["rms_rad"], rel=1e-6)
    assert second["rms_rad_to_model"] > second["rms_rad"]
    exact = run(models["fsn-flow"], "phase")
    assert all(layer["rms_rad_to_model"] < 1e-9 for layer in exact["layers"])


def test_growth_is_that_of_two_forward_passes(models: Models) -> None:
    """Phases of both passes, gathered here by hand on the same windows."""
    from oscc.trace import forward_with

    model, options = models["kuramoto-flow"], EvaluateOptions(tokens=48)
    loop, groups = module.in_loop(model, "circuit", options)
    assert isinstance(loop, module._Loop)
    seen: dict[str, list[Any]] = {"digital": [], "circuit": []}

    def digital(number: int, layer: Any) -> Any:
        seen["digital"].append(layer.next_rad)
        return layer.next_rad

    def circuit(number: int, layer: Any) -> Any:
        seen["circuit"].append(loop.circuit(number, layer))
        return seen["circuit"][-1]

    windows = np.concatenate(groups)[:, :-1].astype(np.int64)
    for step in (digital, circuit):
        forward_with(model.model, windows, step)
    apart = np.array(seen["circuit"]) - np.array(seen["digital"])
    by_layer = np.sqrt(np.mean(apart.reshape(2, -1) ** 2, axis=1))
    found = evaluate(model, "circuit", options=options)
    for layer, wanted in zip(found["layers"], by_layer, strict=True):
        assert layer["rms_rad_to_model"] == pytest.approx(wanted, rel=1e-6)
