"""The shipped training files: they load, and give every family the same recipe."""

import json
from dataclasses import asdict
from pathlib import Path

import msgspec
import numpy as np
import pytest

from oscc.checkpoint import load_checkpoint
from oscc.cli.main import main
from oscc.config import resolve
from oscc.models.base import FAMILIES, build_model
from oscc.models.training import bits_per_character
from oscc.verbs.train import settings

FOLDER = Path(__file__).parents[3] / "examples" / "train"


def read(family):
    found = resolve(FOLDER / f"{family}.yaml").config
    model = {k: v for k, v in msgspec.structs.asdict(found.model).items() if v}
    train = msgspec.structs.asdict(found.train)
    left_out = ("resume", "device", "plot", "vocabulary")
    chosen = {k: v for k, v in train.items() if v is not None and k not in left_out}
    assert model.pop("family") == family
    update, steps = model.pop("update", ""), chosen.pop("steps")
    return settings(family, update, steps, {**model, **chosen})


def test_there_is_one_for_every_family():
    assert {path.stem for path in FOLDER.glob("*.yaml")} == set(FAMILIES)


@pytest.mark.parametrize("family", FAMILIES)
def test_it_loads_and_has_the_numbers_of_the_others(family):
    config, training = read(family)
    count = sum(p.numel() for p in build_model(config).parameters())
    assert count == pytest.approx(65_400, rel=0.01)
    assert training.steps * training.batch * config.context >= 3_000_000


def test_the_recipe_is_equal_but_for_the_learning_rate():
    rates = {family: read(family)[1].learning_rate for family in FAMILIES}
    assert rates == {
        **dict.fromkeys(("kuramoto", "fsn", "fsn-no-phase", "fsn-mf"), 0.01),
        "transformer": 0.005,
        "ssa": 0.004,
    }
    recipes = []
    for family in FAMILIES:
        config, training = read(family)
        content = asdict(training)
        del content["learning_rate"]
        sizes = (config.symbols, config.k, config.layers, config.heads, config.context)
        recipes.append((content, sizes))
    assert all(recipe == recipes[0] for recipe in recipes)


@pytest.mark.parametrize("family", FAMILIES)
def test_it_takes_a_file_of_the_size_of_enwik8(family, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("OSCC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("oscc.corpus._BYTE_SPLIT", (3000, 500, 400))
    monkeypatch.setattr("oscc.models.training.VALIDATION_BATCHES", 1)
    monkeypatch.setattr("oscc.models.training.CURVE_BATCHES", 1)
    text = tmp_path / "enwik"
    text.write_bytes(bytes(i * i % 251 for i in range(3900)))
    words = ["train", "--config", FOLDER / f"{family}.yaml", "--text", text]
    small = ("model.layers=1", "model.k=8", "model.heads=2", "train.steps=1")
    words += [word for one in small for word in ("--set", one)]
    words += ["-o", tmp_path / "out", "--json"]
    status = main([str(word) for word in words])
    seen = capsys.readouterr()
    assert status == 0, seen.err
    metrics = json.loads(seen.out)
    corpus = metrics["corpus"]
    parts = [corpus[f"{part}_symbols"] for part in ("train", "held_out", "test")]
    assert (parts, corpus["vocabulary"]) == ([3000, 500, 400], "bytes")
    (path,) = (tmp_path / "out").glob("*.safetensors")
    model = load_checkpoint(path).model
    test = np.frombuffer(text.read_bytes()[3500:], np.uint8)
    bits = bits_per_character(model, model.config, test, "test batch")
    assert metrics["bits_per_character"]["test"] == pytest.approx(bits, abs=1e-9)
