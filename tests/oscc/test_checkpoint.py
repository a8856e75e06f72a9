"""Checkpoints of every container, sound and not (cases A1 to A17)."""

import argparse
import io
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
import torch

from oscc import tensors
from oscc.checkpoint import load_checkpoint, save_checkpoint
from oscc.corpus import ASCII
from oscc.errors import RequestError
from oscc.models.base import build_model
from oscc.models.config import ModelConfig

CONFIG = ModelConfig("fsn", k=8, layers=2, heads=2, hidden=6, context=12)
SECTION = {"family": "fsn", "k": 8, "layers": 2, "heads": 2, "hidden": 6, "context": 12}


@pytest.fixture
def model():
    return build_model(CONFIG, seed=9)


@pytest.fixture
def weights(model):
    return model.state_dict()


def refused(path, **options):
    with pytest.raises(RequestError) as caught:
        load_checkpoint(path, **options)
    message = str(caught.value)
    assert len(message.splitlines()) <= 3
    return message


def assert_same(loaded, weights):
    state = loaded.model.state_dict()
    assert set(state) == set(weights)
    assert all(torch.equal(state[name], weights[name]) for name in weights)


def saved(path, content, **options):
    torch.save(content, path, **options)
    return path


def test_round_trip_and_equal_bytes(model, weights, tmp_path):
    for name in ("a", "b"):
        save_checkpoint(tmp_path / f"{name}.safetensors", model, CONFIG, ASCII)
    one, two = ((tmp_path / f"{n}.safetensors").read_bytes() for n in "ab")
    assert one == two
    loaded = load_checkpoint(tmp_path / "a.safetensors")
    assert_same(loaded, weights)
    assert (loaded.config, loaded.vocabulary, loaded.notes) == (CONFIG, ASCII, ())
    assert len(loaded.digest) == 64


def test_a1_prefix_of_a_compiled_model(weights, tmp_path):
    content = {f"_orig_mod.{name}": value for name, value in weights.items()}
    loaded = load_checkpoint(saved(tmp_path / "c.pt", content), model_config=SECTION)
    assert_same(loaded, weights)
    assert any("`_orig_mod.` removed" in note for note in loaded.notes)


def test_a3_prefix_of_a_parallel_model_only_if_every_name_has_it(weights, tmp_path):
    content = {f"module._orig_mod.{name}": value for name, value in weights.items()}
    loaded = load_checkpoint(saved(tmp_path / "c.pt", content), model_config=SECTION)
    assert_same(loaded, weights)
    content = {"module.0.w": torch.ones(2), "head.w": torch.ones(2)}
    message = refused(saved(tmp_path / "d.pt", content), model_config=SECTION)
    assert "`module.0.w` (2,)" in message


@pytest.mark.parametrize("key", ["state_dict", "model", "model_state_dict"])
def test_a4_nested_weights_beside_an_optimiser(weights, tmp_path, key):
    other = {"state": {}, "param_groups": [{"lr": 0.1}]}
    content = {key: OrderedDict(weights), "optimizer": other, "epoch": 3}
    loaded = load_checkpoint(saved(tmp_path / "c.pt", content), model_config=SECTION)
    assert_same(loaded, weights)
    assert f"weights found under `{key}`" in loaded.notes


def test_a4_model_and_average_side_by_side_need_a_key(weights, tmp_path):
    average = {name: value + 1 for name, value in weights.items()}
    path = saved(tmp_path / "c.pt", {"model": dict(weights), "ema": average})
    assert "--key model" in refused(path, model_config=SECTION)
    assert_same(load_checkpoint(path, "ema", SECTION), average)
    assert_same(load_checkpoint(path, "model", SECTION), weights)
    message = refused(path, key="emma", model_config=SECTION)
    assert "none under the key `emma`" in message
    assert "Did you mean `ema`?" in message


def test_a4_a_key_that_is_not_there_is_refused(weights, tmp_path):
    path = saved(tmp_path / "c.pt", {"model": dict(weights)})
    message = refused(path, key="ema", model_config=SECTION)
    assert "holds nothing under the key `ema`" in message


@pytest.mark.parametrize(
    ("value", "name"),
    [(argparse.Namespace(lr=1), "argparse.Namespace"), (np.float64(2), "scalar")],
)
def test_a5_files_that_need_code_are_refused_by_name(weights, tmp_path, value, name):
    path = saved(tmp_path / "ckpt.pt", {"args": value, "state_dict": dict(weights)})
    message = refused(path, model_config=SECTION)
    assert name in message
    assert "runs code and is refused" in message
    assert 'torch.save(model.state_dict(), "ckpt.pt")' in message


class Bomb:
    def __reduce__(self):
        import pathlib

        return (pathlib.Path.touch, (pathlib.Path("exploded"),))


def test_a5_nothing_is_executed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(saved(tmp_path / "c.pt", {"w": Bomb()}), model_config=SECTION)
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("container", ["torch", "safetensors"])
def test_a7_other_types_are_cast_and_recorded(weights, tmp_path, dtype, container):
    import safetensors.torch

    stored = {name: value.to(dtype) for name, value in weights.items()}
    path = tmp_path / ("c.pt" if container == "torch" else "c.safetensors")
    if container == "torch":
        torch.save(stored, path)
    else:
        safetensors.torch.save_file(stored, path)
    loaded = load_checkpoint(path, model_config=SECTION)
    assert_same(loaded, {name: value.float() for name, value in stored.items()})
    word = str(dtype).removeprefix("torch.")
    assert f"{len(weights)} tensors stored as {word}, cast to float32" in loaded.notes


@pytest.mark.parametrize(
    ("value", "words"), [(float("nan"), "3 NaN"), (float("inf"), "3 infinite values")]
)
def test_a8_values_that_are_not_finite_are_named(model, tmp_path, value, words):
    with torch.no_grad():
        model.layers[1].value.weight[0, 5] = value
        model.layers[1].value.weight[2, :2] = value
    path = tmp_path / "c.safetensors"
    save_checkpoint(path, model, CONFIG, ASCII)
    message = refused(path)
    assert message.startswith(
        f"tensor `layers.1.value.weight` holds {words}, first at (0, 5), (2, 0), "
        "(2, 1)."
    )


def test_a10_missing_and_unexpected_tensors_are_both_listed(weights, tmp_path):
    content = dict(weights)
    content["layers.0.gama"] = content.pop("layers.0.gamma")
    content["extra"] = torch.ones(3)
    message = refused(saved(tmp_path / "c.pt", content), model_config=SECTION)
    assert "missing `layers.0.gamma` (2, 2, 8)" in message
    assert "`layers.0.gama` (2, 2, 8), `extra` (3,)" in message
    assert "`layers.0.gama` is near to `layers.0.gamma`" in message


def test_a10_another_shape_is_named(weights, tmp_path):
    content = {**weights, "embedding": torch.ones(98, 4)}
    message = refused(saved(tmp_path / "c.pt", content), model_config=SECTION)
    assert "`embedding` (98, 4) instead of (98, 8)" in message


def test_a10_another_family(weights, tmp_path):
    section = {**SECTION, "family": "kuramoto"}
    path = saved(tmp_path / "c.pt", dict(weights))
    message = refused(path, model_config=section)
    assert "family kuramoto" in message
    assert "unexpected `layers.0.gamma`" in message


def test_a13_views_and_shared_storage(weights, tmp_path):
    content = dict(weights)
    content["prototypes"] = weights["prototypes"].T.contiguous().T
    both = torch.stack([weights["layers.0.gamma"], weights["layers.1.gamma"]])
    content["layers.0.gamma"], content["layers.1.gamma"] = both[0], both[1]
    content["layers.1.alpha"] = content["layers.0.alpha"]
    loaded = load_checkpoint(saved(tmp_path / "c.pt", content), model_config=SECTION)
    assert_same(loaded, weights)
    with torch.no_grad():
        loaded.model.layers[0].alpha.fill_(1.0)
    assert loaded.model.layers[1].alpha.abs().max() == 0


def test_a16_damaged_and_foreign_files(model, tmp_path):
    good = tmp_path / "good.safetensors"
    save_checkpoint(good, model, CONFIG, ASCII)
    whole = good.read_bytes()
    stream = io.BytesIO()
    torch.save(model.state_dict(), stream)
    cases = {
        "empty.pt": (b"", "is empty"),
        "empty.safetensors": (b"", "is empty"),
        "half.safetensors": (whole[: len(whole) // 2], "not a whole safetensors file"),
        "start.safetensors": (whole[:20], "not a whole safetensors file"),
        "half.pt": (stream.getvalue()[: len(stream.getvalue()) // 2], "not a whole"),
        "image.pt": (b"\x89PNG\r\n\x1a\n" + bytes(64), "is a PNG image"),
        "text.pt": (b"weights, honest", "neither a safetensors nor a torch.save"),
    }
    for name, (content, words) in cases.items():
        (tmp_path / name).write_bytes(content)
        message = refused(tmp_path / name, model_config=SECTION)
        assert words in message, name
        assert name in message
    assert "is a folder" in refused(tmp_path)


def test_a16_old_pickle_format_is_read_too(weights, tmp_path):
    path = tmp_path / "c.pt"
    torch.save(dict(weights), path, _use_new_zipfile_serialization=False)
    assert_same(load_checkpoint(path, model_config=SECTION), weights)


def test_a17_average_of_a_wrapper_with_counters(weights, tmp_path):
    content = {"initted": torch.tensor(True), "step": torch.tensor(7)}
    for name, value in weights.items():
        content[f"ema_model.{name}"] = value + 1
        content[f"online_model.{name}"] = value
    path = saved(tmp_path / "c.pt", {"model_state_dict": content})
    loaded = load_checkpoint(path, model_config=SECTION)
    assert_same(loaded, {name: value + 1 for name, value in weights.items()})
    assert "took the copy `ema_model.*`; --key online_model takes the other" in (
        loaded.notes
    )
    assert "counters ignored: initted, step" in loaded.notes
    assert_same(load_checkpoint(path, "online_model", SECTION), weights)


def test_a_missing_file_names_the_nearest(model, tmp_path):
    save_checkpoint(tmp_path / "fsn-flow.safetensors", model, CONFIG, ASCII)
    message = refused(tmp_path / "fsn-flw.safetensors")
    assert message == (
        f"`{tmp_path}/fsn-flw.safetensors` does not exist. "
        f"Did you mean `{tmp_path}/fsn-flow.safetensors`?"
    )


def test_a_file_without_description_asks_for_it(weights, tmp_path):
    message = refused(saved(tmp_path / "c.pt", dict(weights)))
    assert "section `model:` of --config" in message


def test_unknown_keys_of_the_model_section(weights, tmp_path):
    path = saved(tmp_path / "c.pt", dict(weights))
    message = refused(path, model_config={**SECTION, "hiden": 3})
    assert "Unknown key `hiden`" in message
    assert "`hidden`" in message


def test_a_newer_format_and_contradictions_are_refused(model, tmp_path):
    path = tmp_path / "c.safetensors"
    save_checkpoint(path, model, CONFIG, ASCII)
    arrays, metadata = tensors.load(path)
    tensors.save(path, arrays, {**metadata, "format": "oscc.checkpoint/2"})
    assert "'oscc.checkpoint/2'" in refused(path)
    tensors.save(path, arrays, {**metadata, "update": "euler"})
    assert "`update` is 'euler' in the metadata" in refused(path)
    tensors.save(path, arrays, metadata)
    assert "asks for 16" in refused(path, model_config={"k": 16})


def test_other_vocabulary_sizes(weights, tmp_path):
    small = {"vocabulary": "abc", "symbols": 4}
    message = refused(
        saved(tmp_path / "c.pt", dict(weights)), model_config={**SECTION, **small}
    )
    assert "the vocabulary has 3 symbols, the model 4" in message


def test_integer_tensors_are_not_weights(weights, tmp_path):
    content = {**weights, "mask": torch.ones(3, dtype=torch.int64)}
    message = refused(saved(tmp_path / "c.pt", content), model_config=SECTION)
    assert "tensor `mask` (3,) holds int64" in message


def test_a9_weights_saved_on_a_gpu(weights, tmp_path):
    # torch.save notes the device of every storage in its pickle, nothing else differs
    plain, path = tmp_path / "plain.pt", tmp_path / "gpu.pt"
    torch.save(dict(weights), plain)
    found = 0
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(path, "w") as target:
        for item in source.infolist():
            content = source.read(item)
            if item.filename.endswith("data.pkl"):
                found = content.count(b"X\x03\x00\x00\x00cpu")
                content = content.replace(
                    b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0"
                )
            target.writestr(item.filename, content)
    assert found > 0
    assert_same(load_checkpoint(path, model_config=SECTION), weights)
