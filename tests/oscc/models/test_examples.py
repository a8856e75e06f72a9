"""The shipped training files: they load, and give every family the same recipe."""

from pathlib import Path

import msgspec
import pytest

from oscc.config import resolve
from oscc.models.base import FAMILIES, build_model
from oscc.verbs.train import settings

FOLDER = Path(__file__).parents[3] / "examples" / "train"


def read(family):
    found = resolve(FOLDER / f"{family}.yaml").config
    model = {k: v for k, v in msgspec.structs.asdict(found.model).items() if v}
    train = msgspec.structs.asdict(found.train)
    left_out = ("resume", "device", "plot")
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


def test_the_recipe_is_equal():
    recipes = []
    for family in FAMILIES:
        config, training = read(family)
        content = {
            name: getattr(training, name)
            for name in (
                "steps",
                "batch",
                "warm_up",
                "final_share",
                "clip",
                "skip_norm",
            )
        }
        sizes = (config.symbols, config.k, config.layers, config.heads, config.context)
        recipes.append((content, sizes))
    assert all(recipe == recipes[0] for recipe in recipes)
