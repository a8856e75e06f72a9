"""Diagnosis of checkpoints: every fault named, with where and how to mend it."""

import json

import numpy as np
import pytest

from oscc import tensors
from oscc.checkpoint import load_checkpoint, save_checkpoint
from oscc.corpus import ASCII
from oscc.diagnosis import diagnose_checkpoint
from oscc.errors import RequestError
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
    notes = [check.detail for check in found if check.name == "checkpoint.note"]
    assert [note.partition(";")[0] for note in notes] == [
        "layer 0: on oscillators coupling",
        "layer 1: on oscillators coupling",
    ]
    assert all("feed-forward" in note for note in notes)


def test_every_tensor_that_is_not_finite_is_named_with_its_index(path):
    def change(arrays):
        arrays["embedding"][3, 4] = np.nan
        arrays["layers.1.gamma"][1, 0, 2:4] = -np.inf

    bad = changed(path, change)
    assert [check.detail for check in bad] == [
        "tensor `embedding` holds 1 NaN, first at (3, 4)",
        "tensor `layers.1.gamma` holds 2 infinite values, first at "
        "(1, 0, 2), (1, 0, 3)",
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


def test_one_tensor_that_is_no_weight_does_not_end_the_list(path):
    def change(arrays):
        arrays["counts"] = np.ones(3, np.int64)
        arrays["beta"] = np.ones((), np.bool_)
        arrays["layers.0.gamma"] = np.ones((2, 2, 8), np.int16)
        arrays["embedding"][0, 0] = np.nan
        arrays["layers.0.mask"] = np.tril(np.ones((64, 64), np.bool_))
        arrays["prototypes"] = arrays["prototypes"].astype(np.float64)
        arrays["prototypes"][1, 2] = 1e39
        del arrays["layers.1.score.drift"]
        arrays["extra"] = np.ones(2, np.float32)
        arrays["layers.1.value.bias"] = np.full(7, np.nan, np.float32)

    assert sorted(check.detail for check in changed(path, change)) == [
        "tensor `beta` () holds bool, but weights are floating-point numbers",
        "tensor `counts` (3,) holds int64, but weights are floating-point numbers",
        "tensor `embedding` holds 1 NaN, first at (0, 0)",
        "tensor `extra` (2,): unknown",
        "tensor `layers.0.gamma` (2, 2, 8) holds int16, but weights are "
        "floating-point numbers",
        "tensor `layers.1.score.drift` (8,): missing",
        "tensor `layers.1.value.bias` (7,): shape should be (8,)",
        "tensor `layers.1.value.bias` holds 7 NaN, first at (0,), (1,), (2,)",
        "tensor `prototypes` holds 1 value too large for float32, first at (1, 2)",
    ]
    notes = [c.detail for c in diagnose_checkpoint(path) if c.name.endswith(".note")]
    assert any("causal mask `layers.0.mask` (64, 64) ignored" in note for note in notes)


def test_element_types_that_are_not_read_are_named_by_tensor(path):
    import safetensors.torch
    import torch

    content = safetensors.torch.load_file(path)
    content["beta"] = content["beta"].to(torch.float8_e5m2)
    content["extra"] = torch.ones(2, dtype=torch.float8_e4m3fn)
    metadata = tensors.load(path)[1]
    safetensors.torch.save_file(content, path, metadata)
    bad = [check for check in diagnose_checkpoint(path) if not check.ok]
    assert [check.detail for check in bad] == [
        "tensor `beta` () holds F8_E5M2, an element type that is not read",
        "tensor `extra` (2,) holds F8_E4M3, an element type that is not read",
    ]
    assert all("Cast it to float32" in check.mend for check in bad)


@pytest.mark.parametrize(("size", "value"), [("layers", 10**6), ("k", 400_000)])
def test_sizes_that_the_file_cannot_have_are_told_before_a_model_is_built(
    path, monkeypatch, size, value
):
    def build(*_):
        raise AssertionError("a model is built")

    monkeypatch.setattr("oscc.models.base.build_model", build)
    arrays, metadata = tensors.load(path)
    config = json.loads(metadata["config"]) | {size: value}
    tensors.save(path, arrays, {**metadata, "config": json.dumps(config)})
    found = diagnose_checkpoint(path)
    assert [check.ok for check in found] == [True, True, True, False]
    assert str(value) in found[-1].detail
    with pytest.raises(RequestError, match=str(value)):
        load_checkpoint(path)


def test_the_state_of_a_training_is_said_to_be_one(path):
    arrays, _ = tensors.load(path)
    progress = json.dumps({"skipped": [], "step": 40})
    state = {"format": "oscc.training/1", "run": "x", "progress": progress}
    tensors.save(path, arrays, state)
    (bad,) = [check for check in diagnose_checkpoint(path) if not check.ok]
    assert bad.detail == (
        f"`{path}` is the state of an unfinished training (step 40), not a checkpoint"
    )
    assert "oscc train command again" in bad.mend
    tensors.save(path, arrays, {"format": "oscc.program/1"})
    (bad,) = [check for check in diagnose_checkpoint(path) if not check.ok]
    assert bad.detail == f"`{path}` is the program of a build, not a checkpoint"


DAMAGES = {
    "none": lambda arrays: None,
    "mask": lambda arrays: arrays.update(mask=np.tril(np.ones((5, 5), np.bool_))),
    "offset": lambda arrays: arrays.update({"layers.0.alpha": np.float32([1, 2])}),
    "by pairs": lambda arrays: arrays.update({"layers.0.alpha": np.ones((2, 5, 5))}),
    "missing": lambda arrays: arrays.pop("beta"),
    "unknown": lambda arrays: arrays.update(more=np.ones(3, np.float32)),
    "shape": lambda arrays: arrays.update(embedding=np.ones((98, 4), np.float32)),
    "type": lambda arrays: arrays.update(beta=np.ones((), np.int32)),
    "unknown type": lambda arrays: arrays.update(more=np.ones(3, np.int32)),
    "large": lambda arrays: arrays.update(beta=np.array(1e39)),
    "nan": lambda arrays: arrays.update(beta=np.array(np.nan)),
    "vectors": lambda arrays: arrays.update(more=np.full((3, 2, 4), 0.5)),
}
SOUND = ("none", "mask", "offset")


@pytest.mark.parametrize("name", DAMAGES)
def test_doctor_finds_a_fault_where_loading_refuses(path, name):
    bad = changed(path, DAMAGES[name])
    assert (not bad) == (name in SOUND)
    if bad:
        with pytest.raises(RequestError):
            load_checkpoint(path)
    else:
        load_checkpoint(path)
