"""Weights found in whatever training wrapped them in (cases A1, A3, A4, A17)."""

import pytest
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from oscc import tensors
from oscc.errors import RequestError
from oscc.models.base import build_model
from oscc.models.config import ModelConfig
from oscc.weights import read_weights

CONFIG = ModelConfig("kuramoto", k=4, layers=1, heads=2, hidden=3, context=8)


@pytest.fixture
def model():
    return build_model(CONFIG, seed=5)


@pytest.fixture
def plain(model):
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def read(path, content, key=None):
    torch.save(content, path)
    return read_weights(path, key)


def refused(path, content, key=None):
    with pytest.raises(RequestError) as caught:
        read(path, content, key)
    return str(caught.value)


def assert_same(found, plain):
    assert set(found.arrays) == set(plain)
    for name, value in plain.items():
        assert found.arrays[name].tolist() == value.tolist(), name


def under(prefix, content):
    return {f"{prefix}.{name}": value for name, value in content.items()}


def test_what_torch_writes_of_an_averaged_model(model, plain, tmp_path):
    """Its names begin with `module.`, but for the counter."""
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    averaged.update_parameters(model)
    found = read(tmp_path / "c.pt", averaged.state_dict())
    assert_same(found, plain)
    assert found.notes == (
        "counters ignored: n_averaged",
        "prefix `module.` removed from every name",
    )


@pytest.mark.parametrize(
    "prefix", ["model", "module", "_orig_mod", "net", "module._orig_mod", "model.model"]
)
def test_a_prefix_that_every_name_has_is_removed(plain, tmp_path, prefix):
    """Lightning writes `model.*`."""
    content = {"state_dict": under(prefix, plain), "epoch": 3, "global_step": 5}
    assert_same(read(tmp_path / "c.pt", content), plain)
    arrays = {name: value.numpy() for name, value in under(prefix, plain).items()}
    tensors.save(tmp_path / "c.safetensors", arrays, {})
    assert_same(read_weights(tmp_path / "c.safetensors"), plain)


def test_a_prefix_that_some_names_have_stays(plain, tmp_path):
    content = {**under("model", plain), "loss.weight": torch.ones(3)}
    found = read(tmp_path / "c.pt", content)
    assert set(found.arrays) == set(content)
    assert found.notes == ()


def test_counters_of_every_kind_are_left_out(plain, tmp_path):
    counters = {"step": 7, "num_updates": torch.tensor(3), "epoch": torch.ones(1)}
    found = read(tmp_path / "c.pt", {**under("module", plain), **counters})
    assert_same(found, plain)
    assert found.notes[0] == "counters ignored: epoch, num_updates, step"
    # the name alone does not make a counter
    found = read(tmp_path / "c.pt", {**plain, "step": torch.ones(2)})
    assert "step" in found.arrays


@pytest.mark.parametrize(
    ("place", "keys"),
    [
        (("checkpoint", "model"), (None, "model", "checkpoint.model")),
        (("train", "state", "model"), (None, "model", "train.state.model")),
    ],
)
def test_weights_are_found_in_mappings_in_mappings(plain, tmp_path, place, keys):
    content = plain
    for name in reversed(place):
        content = {name: content, "epoch": 1}
    for key in keys:
        found = read(tmp_path / "c.pt", content, key)
        assert_same(found, plain)
        assert f"weights found under `{'.'.join(place)}`" in found.notes


def test_optimisers_scores_and_random_states_are_no_weights(model, plain, tmp_path):
    optimiser = torch.optim.Adam(model.parameters())
    model(torch.zeros(1, 2, dtype=torch.int64)).sum().backward()
    optimiser.step()
    content = {
        "model": plain,
        "opt": optimiser.state_dict(),
        "adam": {"inner": optimiser.state_dict()},
        "callbacks": {"best": {"score": torch.tensor(2.0)}},
        "rng_state": torch.get_rng_state(),
        "loss": torch.tensor(0.5),
    }
    found = read(tmp_path / "c.pt", content)
    assert_same(found, plain)
    assert found.notes == ("weights found under `model`",)


@pytest.mark.parametrize(
    ("name", "flat"),
    [
        *((name, False) for name in ("ema", "ema_params", "teacher", "swa_model")),
        *((name, True) for name in ("ema", "ema_params", "swa_model")),
    ],
)
def test_two_sets_of_weights_need_a_key(plain, tmp_path, name, flat):
    """Case A4: never one of them in silence, whatever the other is called."""
    double = {key: value * 2 for key, value in plain.items()}
    content = {"model": plain, name: double}
    if flat:
        content = under("model", plain) | under(name, double)
    path = tmp_path / "c.pt"
    message = refused(path, content)
    assert f"holds weights under `model` and `{name}`" in message
    assert "Choose with --key model." in message
    assert_same(read(path, content, name), double)
    assert_same(read(path, content, "model"), plain)
    hint = refused(path, content, "modle")
    assert "none under the key `modle`. Did you mean `model`?" in hint


def test_the_average_of_ema_pytorch_is_taken_and_the_key_switches(plain, tmp_path):
    """Case A17, here within a mapping beside others."""
    double = {name: value * 2 for name, value in plain.items()}
    inner = under("ema_model", double) | under("online_model", plain)
    inner |= {"initted": torch.tensor(True), "step": torch.tensor(100)}
    path = tmp_path / "c.pt"
    content = {"wrapped": inner, "model": plain}
    assert_same(read(path, content, "wrapped"), double)
    assert_same(read(path, content, "wrapped.online_model"), plain)
    assert_same(read(path, {"wrapped": inner}, "online_model"), plain)
    assert_same(read(path, inner), double)


def test_weights_at_the_top_and_below(plain, tmp_path):
    content = {**plain, "ema": {name: value * 2 for name, value in plain.items()}}
    message = refused(tmp_path / "c.pt", content)
    assert "holds weights at its top and under `ema`" in message
    read(tmp_path / "c.pt", content, "ema")


def test_a_file_without_weights_says_what_it_holds(tmp_path):
    message = refused(tmp_path / "c.pt", {"epoch": 3, "args": {"lr": 0.1}})
    assert "holds no tensors, only `epoch`, `args`." in message
    assert "holds no tensors." in refused(tmp_path / "c.pt", {})
    assert "holds a list" in refused(tmp_path / "c.pt", [torch.ones(2)])


def test_a_mapping_that_holds_itself_ends(plain, tmp_path):
    content = {"model": plain}
    content["self"] = content
    assert_same(read(tmp_path / "c.pt", content), plain)
