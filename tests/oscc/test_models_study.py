"""The study of model families: recipes, tables from runs, one run of a small size."""

import json
from pathlib import Path

import pytest

from oscc.models.config import family_has
from oscc.testing.scripts import load_script
from oscc.verbs.train import settings

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "models_study.py"


@pytest.fixture
def study():
    return load_script(SCRIPT)


def test_every_variant_has_a_recipe_that_sees_three_million_symbols(study):
    for name in study.VARIANTS:
        family, overrides = study.recipe(name)
        update = overrides.pop("update", "")
        config, training = settings(family, update, None, overrides)
        assert training.steps * training.batch * config.context >= 3_000_000
        assert config.context >= 256


def run(name, seed, bits, deep):
    return {
        "name": name,
        "seed": seed,
        "parameters": 10,
        "bits": {"validation": bits},
        "copy_depth": [
            {"from_depth": 0, "events": 9, "bits": bits},
            {"from_depth": 24, "events": 5, "bits": deep},
        ],
    }


def test_tables_pair_seeds_and_tell_how_many_there_are(study):
    runs = [run("transformer", 0, 2.0, 1.0), run("transformer", 1, 2.2, 1.1)]
    runs += [run("fsn-flow", 0, 2.1, 0.9), run("fsn-flow", 1, 2.4, 1.2)]
    runs += [run("ssa-trainable", 5, 3.0, None)]
    rows = study.table(runs)
    found = rows["fsn-flow"]["validation"]
    assert found == pytest.approx({"mean": 2.25, "sd": 0.3 / 2**0.5, "n": 2})
    near, deep = rows["fsn-flow"]["copy_depth"]
    assert near["above_transformer"]["mean"] == pytest.approx((0.1 + 0.2) / 2)
    assert deep["above_transformer"]["mean"] == pytest.approx((-0.1 + 0.1) / 2)
    single = rows["ssa-trainable"]
    assert single["validation"] == {"mean": 3.0, "sd": None, "n": 1}
    assert single["copy_depth"][0]["above_transformer"] is None
    assert single["copy_depth"][1]["bits"] is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fsn-mf-flow", "ssa-trainable", "transformer"])
def test_a_run_is_measured_kept_and_not_repeated(study, name, tmp_path, monkeypatch):
    small = {"k": 8, "heads": 2, "layers": 1, "hidden": 8, "modes": 4, "steps": 2}
    family, overrides = study.recipe(name)
    small = {k: v for k, v in small.items() if family_has(family, k)}
    recipe = family, {**overrides, **small, "context": 32}
    monkeypatch.setattr(study, "recipe", lambda _: (recipe[0], dict(recipe[1])))
    for batches in ("DEPTH_BATCHES", "ORDER_BATCHES", "NOISE_BATCHES"):
        monkeypatch.setattr(study, batches, 1)
    monkeypatch.setattr(study, "FIGURES", tmp_path)
    monkeypatch.setattr(study, "RUNS", tmp_path / "runs")
    path = study.run_one(name, 7)
    found = json.loads(path.read_text())
    assert (found["name"], found["seed"], found["steps"]) == (name, 7, 2)
    assert sum(row["events"] for row in found["copy_depth"]) == 16 * 32
    assert ("order" in found, "locked" in found) == (
        family == "fsn-mf",
        family == "ssa",
    )
    before = path.stat().st_mtime_ns
    assert study.run_one(name, 7).stat().st_mtime_ns == before
    assert set(study.table([found])) == {name}
