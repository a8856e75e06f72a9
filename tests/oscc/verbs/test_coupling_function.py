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

ROOT = Path(__file__).parents[3]


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


@pytest.mark.parametrize("family", ["fsn", "fsn-mf"])
def test_gates_and_gains_by_coordinate(family):
    """Against the states of the model, sorted by hand."""
    loaded = tiny_checkpoint(family, layers=2, modes=4, context=5)
    layers, kept = coupling_layers(loaded), []
    model = loaded.model
    with torch.no_grad():
        model(sample(loaded), lambda _, state: kept.append(state) or model_step(state))
    steps = len(kept) // 2
    for number, layer in enumerate(layers):
        for part, state in zip(
            (layer, layer.get("modes")), kept[number * steps :], strict=False
        ):
            if part is None:
                continue
            found = part["by_coordinate"]["gain_rad"]
            for j in range(4):
                gains = sorted(state.gain[:, :, j].flatten().tolist())  # 20 numbers
                assert found["min"][j] == pytest.approx(gains[0], abs=1e-6)
                assert found["max"][j] == pytest.approx(gains[-1], abs=1e-6)
                middle = (gains[9] + gains[10]) / 2
                assert found["p50"][j] == pytest.approx(middle, abs=1e-6)
                share = sum(gain < 0 for gain in gains) / 20
                assert found["negative_share"][j] == pytest.approx(share)
        gates = layer["by_coordinate"]["query_gate"]
        assert len(gates["p5"]) == 4
        assert min(gates["min"]) == pytest.approx(layer["gates"]["query"]["min"])
        assert max(gates["max"]) == pytest.approx(layer["gates"]["query"]["max"])


def model_step(state):
    from oscc.models.flow_training import flow_increment

    return state.theta + flow_increment(state.a, state.b, state.gain)


def test_the_sample_of_a_model_of_a_long_context_is_short():
    assert sample(tiny_checkpoint("fsn", context=10**9)).shape == (4, 256)


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
    with pytest.raises(RequestError, match=r"h\.png` does not end in \.svg"):
        plot_coupling_functions(layers, tmp_path / "h.png", [0])
    assert not (tmp_path / "h.png").exists()


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


def shown_rows(out):
    """Rows of the tables by coordinate: those that begin with its number."""
    rows = [line.split() for line in out.splitlines()]
    return [row for row in rows if row and row[0].isdigit()]


def test_a_table_by_coordinate(tmp_path, capsys):
    checkpoint = write_checkpoint(tmp_path / "c.safetensors", "fsn", k=6, layers=2)
    assert main(["inspect", str(checkpoint)]) == 0
    out = capsys.readouterr().out
    assert [row[0] for row in shown_rows(out)] == ["0", "1", "2", "3"] * 2
    assert main(["inspect", str(checkpoint), "--coordinates", "5,1"]) == 0
    out = capsys.readouterr().out
    rows = shown_rows(out)
    assert [row[0] for row in rows] == ["5", "1"] * 2
    assert main(["inspect", str(checkpoint), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    first = content["coupling"][0]
    gamma = first["routes"]["successor"]["gamma"][1][5]
    alpha = first["routes"]["successor"]["alpha_rad"][1][5]
    assert f"{gamma:.3g}, {alpha:.3g}" in " ".join(rows[0])
    assert f"{first['drift_rad'][5]:.3g}" == rows[0][1]
    gain = first["by_coordinate"]["gain_rad"]
    assert f"{gain['p5'][5]:.3g}, {gain['p50'][5]:.3g}, {gain['p95'][5]:.3g}" in (
        " ".join(rows[0])
    )
    assert main(["inspect", str(checkpoint), "--coordinates", "all"]) == 0
    out = capsys.readouterr().out
    assert [row[0] for row in shown_rows(out)] == [*"012345"] * 2


@pytest.mark.parametrize("plot", [False, True])
def test_coordinates_that_are_not_there(tmp_path, capsys, plot):
    checkpoint = write_checkpoint(tmp_path / "c.safetensors", "kuramoto", k=2, heads=1)
    picture = ["--plot", str(tmp_path / "h.svg")] if plot else []
    assert main(["inspect", str(checkpoint), *picture]) == 0  # fewer than four
    for coordinates in ("99", "0,2"):
        wrong = ["inspect", str(checkpoint), "--coordinates", coordinates, *picture]
        assert main(wrong) == 2
        assert "does not exist; there are 2, 0 to 1" in capsys.readouterr().err
    for other in (["--cards"], [str(ROOT / "checkpoints" / "transformer.safetensors")]):
        assert main(["inspect", *other, "--coordinates", "0"]) == 2
        assert "coupling functions" in capsys.readouterr().err


def test_a_picture_of_another_name_is_refused_before_anything_is_read(tmp_path, capsys):
    assert main(["inspect", "nowhere.pt", "--plot", str(tmp_path / "p.png")]) == 2
    assert "does not end in .svg" in capsys.readouterr().err
