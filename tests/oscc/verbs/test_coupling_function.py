"""A trained layer read as a coupling function."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from oscc.cli.main import main
from oscc.errors import RequestError
from oscc.models.base import build_model
from oscc.models.config import ModelConfig
from oscc.testing.tiny import tiny_checkpoint, write_checkpoint
from oscc.verbs.coupling_function import (
    coupling_function,
    coupling_layers,
    plot_coupling_functions,
    sample,
)


def test_the_function_read_is_the_pull_of_one_source_on_one_target():
    loaded = tiny_checkpoint("fsn", harmonics=3)
    (content,) = coupling_layers(loaded)
    layer = loaded.model.coupling_layers()[0].double()
    theta = torch.tensor([[0.3, -1.1], [2.0, 0.4]], dtype=torch.float64)
    theta = torch.cat([theta, theta + 0.1], 1)[None]  # two tokens, four coordinates
    only_first = torch.tensor([[1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    weights = only_first.expand(1, 2, 2, 2)
    with torch.no_grad():
        pull = layer.fields(weights, theta)[0].sum(0)[0, 1].numpy()
    own = (theta[0, 0] - theta[0, 1]).numpy()  # token 0 as seen from token 1
    wanted = np.zeros(4)
    for j in range(4):  # the successor of token 0 is token 1 itself
        for route, delta in (("present", own[j]), ("successor", 0.0)):
            parts = content["routes"][route]
            gamma = np.array(parts["gamma"])[:, j]
            alpha = np.array(parts["alpha_rad"])[:, j]
            wanted[j] += coupling_function(gamma, alpha, np.array(delta))
    assert np.abs(pull - wanted).max() <= 1e-12


def test_ranges_are_in_order_and_gates_have_mean_one():
    loaded = tiny_checkpoint("fsn")
    (content,) = coupling_layers(loaded)
    for spread in (
        *content["gates"].values(),
        content["gain_rad"],
        content["drive_rad"],
    ):
        levels = [spread[name] for name in ("min", "p5", "p50", "p95", "max")]
        assert levels == sorted(levels)
    assert content["gates"]["query"]["min"] > 0
    assert 0 < content["gain_rad"]["negative_share"] < 1
    assert sample(loaded).shape == (4, 16)


def test_modes_and_families_without_phases():
    loaded = tiny_checkpoint("kuramoto")
    sizes = {"k": 4, "heads": 2, "layers": 2, "hidden": 4, "modes": 4, "context": 16}
    object.__setattr__(loaded, "model", build_model(ModelConfig("fsn-mf", **sizes)))
    layers = coupling_layers(loaded)
    assert [layer["layer"] for layer in layers] == [0, 1]
    assert all(layer["modes"]["into_modulus"]["max"] > 0.1 for layer in layers)
    assert layers[0]["modes"]["pin_modulus"]["max"] == 0
    object.__setattr__(loaded, "model", build_model(ModelConfig("ssa", k=4, heads=2)))
    assert coupling_layers(loaded) == []


def test_plot_and_its_refusals(tmp_path):
    layers = coupling_layers(tiny_checkpoint("fsn"))
    path = tmp_path / "h.svg"
    plot_coupling_functions(layers, path, [0, 3])
    assert path.read_text().startswith("<?xml")
    first = path.read_bytes()
    plot_coupling_functions(layers, path, [0, 3])
    assert path.read_bytes() == first
    with pytest.raises(RequestError, match="Coordinate 4 does not exist; there are 4"):
        plot_coupling_functions(layers, path, [4])
    with pytest.raises(RequestError, match="no coupling functions"):
        plot_coupling_functions([], path, [0])


def test_the_command_line_prints_and_draws(tmp_path, capsys):
    checkpoint = write_checkpoint(tmp_path / "fsn-flow.safetensors")
    picture = tmp_path / "h.svg"
    assert main(["inspect", str(checkpoint), "--plot", str(picture)]) == 0
    shown = capsys.readouterr().out
    assert "layer 0: H = sum of gamma sin(n delta + alpha)" in shown
    assert "below zero" in shown
    assert Path(picture).exists()
    assert main(["inspect", str(checkpoint), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert len(content["coupling"][0]["drift_rad"]) == 4
    wrong = ["inspect", str(checkpoint), "--plot", str(picture), "--coordinates", "a"]
    assert main(wrong) == 2
    assert "--coordinates must be numbers" in capsys.readouterr().err
