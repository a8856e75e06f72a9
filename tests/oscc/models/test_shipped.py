"""Shipped checkpoints: sizes, metrics, and the bits per character they claim."""

import json
from pathlib import Path

import pytest
import torch

from oscc.checkpoint import load_checkpoint
from oscc.corpus import standard_library
from oscc.diagnosis import diagnose_checkpoint
from oscc.models.config import ModelConfig
from oscc.models.training import Trainer, TrainingConfig, bits_per_character
from oscc.verbs.train import default_name

FOLDER = Path(__file__).parents[3] / "checkpoints"
LARGE = ["kuramoto-flow", "kuramoto-euler", "fsn-flow", "fsn-euler"]
OTHERS = [
    "fsn-no-phase-flow",
    "fsn-mf-flow",
    "ssa-trainable",
    "ssa-published",
    "transformer",
]
TINY = ["fsn-flow-k16", "kuramoto-flow-k08"]


def metrics_of(name):
    return json.loads((FOLDER / f"{name}.metrics.json").read_text())


@pytest.mark.parametrize("name", LARGE + OTHERS + TINY)
def test_files_are_small_sound_and_described(name):
    path = FOLDER / f"{name}.safetensors"
    assert path.stat().st_size <= 1_000_000
    assert all(check.ok for check in diagnose_checkpoint(path))
    loaded, metrics = load_checkpoint(path), metrics_of(name)
    plain = loaded.config.with_changes(k=48, heads=4)
    assert name.removesuffix(f"-k{loaded.config.k:02d}") == default_name(plain)
    assert loaded.vocabulary.size == loaded.config.symbols == 98
    count = sum(p.numel() for p in loaded.model.parameters())
    assert count == metrics["parameters"]
    steps = {"fsn-mf": 2, "ssa": 0, "transformer": 0}.get(loaded.config.family, 1)
    assert len(metrics["drive"]) == steps * loaded.config.layers
    assert len(metrics["steps_skipped"]) < metrics["training"]["skip_limit"]


@pytest.mark.parametrize("name", LARGE)
def test_large_ones_predict_better_than_the_target(name):
    metrics = metrics_of(name)
    assert metrics["bits_per_character"]["validation"] <= 2.15
    model = metrics["model"]
    assert (model["k"], model["layers"], model["context"]) == (48, 2, 128)


def recomputed(name):
    metrics, corpus = metrics_of(name), standard_library()
    if corpus.digest != metrics["corpus"]["sha256"]:
        pytest.skip("another Python: its standard library is another corpus")
    model = load_checkpoint(FOLDER / f"{name}.safetensors").model
    found = bits_per_character(model, model.config, corpus.held_out, "validation batch")
    return found, metrics["bits_per_character"]["validation"]


def test_a_tiny_one_keeps_what_its_metrics_say():
    found, claimed = recomputed("fsn-flow-k16")
    # float32 host operations: other processors may round otherwise
    assert found == pytest.approx(claimed, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE + OTHERS + TINY)
def test_the_first_steps_of_a_retraining_repeat_the_recorded_loss(name, tmp_path):
    """Until the first saved state: 250 steps of the recorded run."""

    class Enough(Exception):
        pass

    def stop(progress):
        raise Enough

    metrics, corpus = metrics_of(name), standard_library()
    if corpus.digest != metrics["corpus"]["sha256"]:
        pytest.skip("another Python: its standard library is another corpus")
    run = Trainer(
        ModelConfig.from_mapping(metrics["model"]),
        TrainingConfig(**metrics["training"]),
        corpus,
        metrics["seed"],
    )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with pytest.raises(Enough):
            run.run(tmp_path / "state", stop)
    finally:
        torch.set_num_threads(threads)
    step, bits = metrics["curve"][0]
    assert run.progress.step == step
    # other processors round otherwise, and 250 steps multiply that
    assert run.progress.curve[0][1] == pytest.approx(bits, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE + OTHERS)
def test_large_ones_keep_what_their_metrics_say(name):
    found, claimed = recomputed(name)
    assert found == pytest.approx(claimed, abs=1e-4)
