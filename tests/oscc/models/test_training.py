"""Training: resuming, guarded steps, files written."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from oscc import tensors
from oscc.checkpoint import load_checkpoint
from oscc.corpus import ASCII, Corpus
from oscc.diagnosis import diagnose_checkpoint
from oscc.errors import RequestError, ToolError, UndecidedError
from oscc.models.base import FAMILIES, build_model
from oscc.models.config import ModelConfig, family_has
from oscc.models.training import (
    CURVE_BATCHES,
    Diverged,
    Trainer,
    TrainingConfig,
    bits_per_character,
)
from oscc.verbs.train import default_name, plot_curve, train, training_device

SIZES = {"k": 8, "layers": 1, "heads": 2, "hidden": 8, "context": 16, "batch": 4}
SOURCES = Path(__file__).parents[3] / "oscc"


def tiny_corpus():
    text = ASCII.encode("for x in range(10):\n    print(x)\n" * 40)
    return Corpus("test", "0" * 64, 1, ASCII, text[:1000], text[1000:])


def trainer(steps=12, family="fsn", seed=3, device="cpu", **training):
    sizes = {k: v for k, v in SIZES.items() if k != "batch"}
    options = {"steps": steps, "batch": 4, "save_every": 4, "warm_up": 3, **training}
    config = ModelConfig(family, modes=4, **sizes)
    return Trainer(config, TrainingConfig(**options), tiny_corpus(), seed, device)


def bits(model):
    return {name: value.numpy().tobytes() for name, value in model.state_dict().items()}


@pytest.mark.parametrize("family", FAMILIES)
def test_resumed_run_gives_the_weights_of_an_uninterrupted_one(family, tmp_path):
    class Stop(Exception):
        pass

    def stop(progress):
        if progress.step == 8:
            raise Stop

    whole = trainer(family=family)
    whole.run(tmp_path / "whole")
    cut = trainer(family=family)
    with pytest.raises(Stop):
        cut.run(tmp_path / "cut", stop)
    resumed = trainer(family=family)
    resumed.load_state(tmp_path / "cut")
    assert resumed.progress.step == 8
    resumed.run(tmp_path / "cut")
    assert bits(resumed.model) == bits(whole.model)
    assert resumed.progress == whole.progress
    assert bits(whole.model) != bits(trainer(family=family).model)


def test_a_state_of_another_run_is_refused(tmp_path):
    run = trainer()
    run.save_state(tmp_path / "state")
    for other in (trainer(seed=4), trainer(steps=13), trainer(family="kuramoto")):
        with pytest.raises(RequestError, match="belongs to another run"):
            other.load_state(tmp_path / "state")


def test_training_learns_more_than_the_frequency_of_symbols(tmp_path, monkeypatch):
    monkeypatch.setattr("oscc.models.training.VALIDATION_BATCHES", 2)
    run = trainer(steps=150, warm_up=10, save_every=1000)
    run.run(tmp_path / "state")
    share = np.bincount(run.corpus.train) / len(run.corpus.train)
    share = share[share > 0]
    entropy = -(share * np.log2(share)).sum()
    found = bits_per_character(run.model, run.config, run.corpus.held_out, "test")
    assert found < entropy - 1.0


def test_schedule_warms_up_then_falls_to_its_final_share():
    run = trainer(steps=1000, warm_up=50, learning_rate=0.01)
    assert run.learning_rate(0) == pytest.approx(0.01 / 50)
    assert run.learning_rate(49) == pytest.approx(0.01, rel=0.01)
    assert run.learning_rate(500) == pytest.approx(0.0055)
    assert run.learning_rate(1000) == pytest.approx(0.001)


def test_steps_with_a_large_gradient_are_skipped_and_end_the_run(tmp_path):
    run = trainer(skip_norm=1e-6, skip_limit=5, save_every=100)
    before = bits(run.model)
    with pytest.raises(UndecidedError, match="stopped at step 5: 5 steps") as caught:
        run.run(tmp_path / "state")
    assert "largest in `" in str(caught.value)
    assert "No state was saved before." in str(caught.value)
    assert bits(run.model) == before
    assert not (tmp_path / "state").exists()


def too_large_after(step, monkeypatch):
    """Report that makes every later gradient too large."""

    def report(progress):
        if progress.step == step:
            monkeypatch.setattr(
                "torch.nn.utils.clip_grad_norm_", lambda *_: torch.tensor(1e9)
            )

    return report


def test_the_state_saved_before_too_many_skips_is_kept_and_named(tmp_path, monkeypatch):
    run = trainer(steps=40, skip_limit=3)
    path, saved = tmp_path / "state", []
    with monkeypatch.context() as patch:
        spoil = too_large_after(8, patch)

        def report(progress):
            saved.append(path.read_bytes())
            spoil(progress)

        with pytest.raises(Diverged, match="stopped at step 11: 3 steps") as caught:
            run.run(path, report)
    kept = f"The state saved before, of step 8, is in `{path}`."
    assert str(caught.value).endswith(kept)
    assert path.read_bytes() == saved[1]
    resumed = trainer(steps=40, skip_limit=3)
    resumed.load_state(path)
    assert (resumed.progress.step, resumed.progress.skipped) == (8, [])


@pytest.mark.parametrize("fault", ["skips", "not finite"])
def test_a_run_that_diverged_leaves_its_last_good_weights_as_a_checkpoint(
    fault, tmp_path, monkeypatch
):
    runs = []

    class Spoilt(Trainer):
        def run(self, state, report=None, stopped=lambda: False):
            def spoil(progress):
                report(progress)
                runs.append({n: v.clone() for n, v in self.model.state_dict().items()})
                if fault == "skips":
                    too_large_after(6, patch)(progress)
                elif progress.step == 6:
                    with torch.no_grad():
                        self.model.layers[0].gamma.fill_(3e38)

            super().run(state, spoil, stopped)

    overrides = {**SIZES, "save_every": 3, "skip_limit": 3}
    with monkeypatch.context() as patch:
        patch.setattr("oscc.models.training.Trainer", Spoilt)
        with pytest.raises(UndecidedError) as caught:
            train("fsn", text=SOURCES, out=tmp_path, steps=20, overrides=overrides)
    path = tmp_path / "fsn-flow-k08.last-good.safetensors"
    assert "The state saved before, of step 6, is in `" in str(caught.value)
    assert str(caught.value).endswith(f"those of step 6, are the checkpoint `{path}`.")
    loaded = load_checkpoint(path)
    assert all(torch.equal(v, runs[1][n]) for n, v in loaded.model.state_dict().items())
    assert not (tmp_path / "fsn-flow-k08.safetensors").exists()
    assert all(check.ok for check in diagnose_checkpoint(path))
    # the next run of the name that ends well takes both away
    result = train(
        "fsn", text=SOURCES, out=tmp_path, steps=3, overrides=overrides, resume=False
    )
    assert not path.exists()
    assert sorted(p.suffixes[-2:][0] for p in tmp_path.iterdir()) == [
        ".curve",
        ".metrics",
        ".safetensors",
    ]
    assert result.metrics["steps"] == 3


def test_the_good_weights_are_those_of_the_lowest_held_out_loss(tmp_path):
    run, seen = trainer(steps=16), []

    def report(progress):
        seen.append({n: v.clone() for n, v in run.model.state_dict().items()})
        if progress.step == 8:  # worse from here, yet finite and without a skip
            with torch.no_grad():
                run.model.beta.fill_(80.0)

    run.run(tmp_path / "state", report)
    assert run.progress.good_step == 8
    assert np.argmin(run.progress.validation) == 1
    assert all(torch.equal(value, seen[1][name]) for name, value in run.good.items())
    again = trainer(steps=16)
    again.load_state(tmp_path / "state")
    assert all(torch.equal(value, run.good[name]) for name, value in again.good.items())
    assert again.good.keys() == run.good.keys()


def test_weights_of_no_finite_loss_on_held_out_text_are_not_saved(tmp_path):
    run = trainer(steps=40)
    run.corpus = replace(run.corpus, held_out=np.zeros(200, np.uint8))

    def report(progress):  # a symbol that the training text does not have
        if progress.step == 4:
            with torch.no_grad():
                run.model.embedding[0] = 3e38
                run.model.embedding[0, 0] = float("inf")

    with pytest.raises(Diverged, match="loss on held-out text is not finite") as caught:
        run.run(tmp_path / "state", report)
    assert "of step 4, is in" in str(caught.value)
    kept = tensors.load(tmp_path / "state")[0]
    assert np.isfinite(kept["weights.embedding"]).all()


def test_a_weight_that_is_not_finite_names_its_tensor(tmp_path):
    run = trainer()
    with torch.no_grad():
        run.model.layers[0].gamma[0, 0, 0] = float("nan")
    with pytest.raises(
        UndecidedError, match=r"step 1: .* `layers\.0\.gamma` holds such"
    ):
        run.run(tmp_path / "state")


def test_a_loss_that_is_not_finite_stops_with_its_place_and_the_last_good_weights(
    tmp_path,
):
    run = trainer(save_every=1)

    def explode(progress):
        if progress.step == 3:  # finite weights, whose sums overflow
            with torch.no_grad():
                run.model.layers[0].gamma.fill_(3e38)

    with pytest.raises(UndecidedError) as caught:
        run.run(tmp_path / "state", explode)
    assert "stopped at step 4: the loss is not finite" in str(caught.value)
    assert "first `a` of coupling step 0" in str(caught.value)
    assert "The state saved before, of step 3, is in" in str(caught.value)
    assert str(tmp_path / "state") in str(caught.value)
    kept = trainer(save_every=1)
    kept.load_state(tmp_path / "state")
    assert kept.progress.step == 3
    assert all(p.abs().max() < 10 for p in kept.model.parameters())


def test_train_writes_checkpoint_and_metrics(tmp_path):
    calls = []
    result = train(
        "fsn",
        text=SOURCES,
        out=tmp_path,
        steps=4,
        overrides={**SIZES, "save_every": 2},
        progress=lambda p: calls.append(p.step),
    )
    assert calls == [2, 4]
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "fsn-flow-k08.curve.jsonl",
        "fsn-flow-k08.metrics.json",
        "fsn-flow-k08.safetensors",
    ]
    lines = (tmp_path / "fsn-flow-k08.curve.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["step"] for row in rows] == [2, 4]
    assert [row["symbols_seen"] for row in rows] == [2 * 4 * 16, 4 * 4 * 16]
    assert all(row["largest_gradient_norm"] > 0 for row in rows)
    assert all(row["validation_batches"] == CURVE_BATCHES for row in rows)
    assert plot_curve(result).read_text().startswith("<?xml")
    metrics = json.loads(result.metrics_path.read_text())
    digest = hashlib.sha256(result.checkpoint.read_bytes()).hexdigest()
    assert metrics["checkpoint_sha256"] == digest
    assert [bits for _, bits in metrics["validation_curve"]] == [
        row["validation_bits_per_character"] for row in rows
    ]
    assert metrics["format"] == "oscc.metrics/1"
    assert metrics["device"] == "cpu"
    assert (metrics["steps"], metrics["seed"]) == (4, 0)
    assert 5 < metrics["bits_per_character"]["validation"] < 10
    (drive,) = metrics["drive"]
    assert drive["p5_rad"] <= drive["p50_rad"] <= drive["p99_rad"] <= drive["max_rad"]
    assert 0 <= drive["negative_share"] <= 1
    loaded = load_checkpoint(result.checkpoint)
    assert metrics["parameters"] == sum(p.numel() for p in loaded.model.parameters())
    with pytest.raises(RequestError, match="is there already"):
        train("fsn", text=SOURCES, out=tmp_path, steps=4, overrides=SIZES)


def test_equal_runs_write_equal_checkpoints(tmp_path):
    paths = [
        train(
            "kuramoto", text=SOURCES, out=tmp_path / name, steps=3, overrides=SIZES
        ).checkpoint
        for name in ("a", "b")
    ]
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_a_gpu_that_is_not_there_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(ToolError, match="finds no GPU to train on"):
        train("fsn", out=tmp_path, overrides=SIZES, device="cuda")
    assert not list(tmp_path.iterdir())
    with pytest.raises(RequestError, match=r"one of auto, cpu, cuda, but is 'gpu'"):
        training_device("gpu")
    assert training_device("auto") == "cpu"
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert [training_device(x) for x in ("auto", "cpu")] == ["cuda", "cpu"]


@pytest.mark.gpu
@pytest.mark.parametrize("family", FAMILIES)
def test_a_gpu_gives_the_loss_curve_of_the_cpu(family, tmp_path):
    curves = []
    for device in ("cpu", "cuda"):
        run = trainer(steps=40, family=family, device=device)
        run.run(tmp_path / device)
        curve = [bits for _, bits in run.progress.curve]
        curves.append([*curve, *run.progress.validation])
    # sums in another order, amplified over 40 steps
    assert curves[1] == pytest.approx(curves[0], abs=1e-3)


def test_unknown_settings_and_short_texts_are_named(tmp_path):
    with pytest.raises(RequestError, match="Did you mean `learning_rate`"):
        train("fsn", out=tmp_path, overrides={"learning_rat": 1})
    path = tmp_path / "short.txt"
    path.write_text("x" * 300)
    with pytest.raises(RequestError, match="held-out part of the corpus has 18"):
        train("fsn", text=path, out=tmp_path, overrides={"context": 64})
    assert [p.name for p in tmp_path.iterdir()] == ["short.txt"]


def test_names_of_checkpoints():
    assert default_name(ModelConfig("kuramoto", "flow")) == "kuramoto-flow"
    assert default_name(ModelConfig("fsn", "euler", k=16)) == "fsn-euler-k16"
    assert default_name(ModelConfig("ssa", arm="published")) == "ssa-published"
    assert default_name(ModelConfig("transformer", k=8)) == "transformer-k08"


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_trains_to_a_checkpoint_that_loads(family, tmp_path):
    overrides = {**SIZES, "modes": 4}
    overrides = {k: v for k, v in overrides.items() if family_has(family, k)}
    result = train(family, text=SOURCES, out=tmp_path, steps=2, overrides=overrides)
    loaded = load_checkpoint(result.checkpoint)
    assert loaded.config.family == family
    metrics = result.metrics
    wanted = {"fsn-mf": 2, "ssa": 0, "transformer": 0}.get(family, 1)
    assert len(metrics["drive"]) == wanted
    assert loaded.config.update == ("flow" if wanted else "none")
    again = build_model(loaded.config)
    again.load_state_dict(loaded.model.state_dict())
    assert bits(again) == bits(loaded.model)


def test_training_without_a_causal_mask_is_refused(tmp_path):
    overrides = {**SIZES, "mask": "none"}
    with pytest.raises(RequestError, match="reads the symbol it is to predict"):
        train("ssa", text=SOURCES, out=tmp_path, steps=2, overrides=overrides)


def test_a_byte_corpus_sets_the_symbols_of_the_model(tmp_path, monkeypatch):
    monkeypatch.setattr("oscc.corpus._BYTE_SPLIT", (2000, 500, 500))
    path = tmp_path / "bytes"
    path.write_bytes(bytes(i * i % 256 for i in range(3000)))
    out = tmp_path / "out"
    result = train("kuramoto", text=path, out=out, steps=2, overrides=SIZES)
    assert load_checkpoint(result.checkpoint).vocabulary.size == 256
    with pytest.raises(RequestError, match="256 symbols, the model 98"):
        train("fsn", text=path, out=out, steps=2, overrides={**SIZES, "symbols": 98})


def test_batches_come_from_the_whole_part():
    from oscc.models.training import batch_of

    text = np.arange(20, dtype=np.uint8)
    seen = set()
    for i in range(200):
        x, y = batch_of(text, 4, 2, np.random.default_rng(i))
        assert torch.equal(y, x + 1)
        seen.update(x[:, 0].tolist())
    assert seen == set(range(16))
