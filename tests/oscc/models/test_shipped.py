"""Shipped checkpoints: sizes, metrics, and the bits per character they claim."""

import json
from pathlib import Path

import pytest

from oscc.checkpoint import diagnose_checkpoint, load_checkpoint
from oscc.corpus import standard_library
from oscc.models.training import bits_per_character

FOLDER = Path(__file__).parents[3] / "checkpoints"
LARGE = ["kuramoto-flow", "kuramoto-euler", "fsn-flow", "fsn-euler"]
TINY = ["fsn-flow-k16", "kuramoto-flow-k08"]


def metrics_of(name):
    return json.loads((FOLDER / f"{name}.metrics.json").read_text())


@pytest.mark.parametrize("name", LARGE + TINY)
def test_files_are_small_sound_and_described(name):
    path = FOLDER / f"{name}.safetensors"
    assert path.stat().st_size <= 1_000_000
    assert all(check.ok for check in diagnose_checkpoint(path))
    loaded, metrics = load_checkpoint(path), metrics_of(name)
    family, update = name.split("-")[:2]
    assert (loaded.config.family, loaded.config.update) == (family, update)
    assert loaded.vocabulary.size == loaded.config.symbols == 98
    count = sum(p.numel() for p in loaded.model.parameters())
    assert count == metrics["parameters"]
    assert len(metrics["drive"]) == loaded.config.layers
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
@pytest.mark.parametrize("name", LARGE)
def test_large_ones_keep_what_their_metrics_say(name):
    found, claimed = recomputed(name)
    assert found == pytest.approx(claimed, abs=1e-4)
