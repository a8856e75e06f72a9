"""Diagnosis of checkpoints: every fault named, with where and how to mend it."""

import numpy as np
import pytest

from oscc import tensors
from oscc.checkpoint import save_checkpoint
from oscc.corpus import ASCII
from oscc.diagnosis import diagnose_checkpoint
from oscc.models.base import build_model
from oscc.models.config import ModelConfig

CONFIG = ModelConfig("fsn", k=8, layers=2, heads=2, hidden=6, context=12)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "c.safetensors"
    save_checkpoint(path, build_model(CONFIG, seed=9), CONFIG, ASCII)
    return path


def changed(path, change):
    arrays, metadata = tensors.load(path)
    arrays = {name: np.array(value) for name, value in arrays.items()}
    change(arrays)
    tensors.save(path, arrays, metadata)
    return [check for check in diagnose_checkpoint(path) if not check.ok]


def test_a_sound_file(path):
    found = diagnose_checkpoint(path)
    assert all(check.ok for check in found)
    assert [c.name for c in found][-1] == "checkpoint.tensors"


def test_every_tensor_that_is_not_finite_is_named_with_its_index(path):
    def change(arrays):
        arrays["embedding"][3, 4] = np.nan
        arrays["layers.1.gamma"][1, 0, 2:4] = -np.inf

    bad = changed(path, change)
    assert [check.detail for check in bad] == [
        "tensor `embedding` holds 1 NaN, first at (3, 4)",
        "tensor `layers.1.gamma` holds 2 infinite values, first at (1, 0, 2)",
    ]
    assert all("train again" in check.mend for check in bad)


def test_every_tensor_that_does_not_fit_is_named_with_the_nearest_name(path):
    def change(arrays):
        arrays["layers.0.score.wieght"] = arrays.pop("layers.0.score.query.weight")
        arrays["layers.0.value.bais"] = arrays.pop("layers.0.value.bias")[:5]
        del arrays["beta"]
        arrays["alien"] = np.ones((2, 3), np.float32)
        arrays["prototypes2"] = arrays["prototypes"]
        arrays["layers.1.alpha"] = arrays["layers.1.alpha"][:1]

    assert sorted(check.detail for check in changed(path, change)) == [
        "tensor `alien` (2, 3): unknown",
        "tensor `beta` (): missing",
        "tensor `layers.0.score.wieght` (8, 16): unknown; nearest "
        "`layers.0.score.query.weight`, which is missing",
        "tensor `layers.0.value.bais` (5,): unknown; nearest `layers.0.value.bias`, "
        "which is missing and has shape (8,)",
        "tensor `layers.1.alpha` (1, 2, 8): shape should be (2, 2, 8)",
        "tensor `prototypes2` (98, 8): unknown; nearest `prototypes`, which is there",
    ]


def test_a_foreign_file_ends_where_its_model_is_not_known(path):
    arrays, _ = tensors.load(path)
    tensors.save(path, arrays, {})
    *rest, last = diagnose_checkpoint(path)
    assert [check.ok for check in rest] == [True]
    assert (last.name, last.ok) == ("checkpoint.model", False)
    assert "Give the section `model:`" in last.mend


def test_an_euler_update_is_noted(tmp_path):
    config = CONFIG.with_changes(update="euler")
    path = tmp_path / "c.safetensors"
    save_checkpoint(path, build_model(config), config, ASCII)
    found = diagnose_checkpoint(path)
    assert found[-1].ok
    assert "probe" in found[-1].detail
