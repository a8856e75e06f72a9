"""inspect: what a checkpoint and a build hold, foreign checkpoints among them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from oscc.build import BuildFolder
from oscc.checkpoint import LoadedCheckpoint, load_checkpoint
from oscc.cli.main import main
from oscc.errors import RequestError
from oscc.observables import Observables
from oscc.testing.tiny import TEXT, tiny_checkpoint
from oscc.verbs.compile import compile
from oscc.verbs.inspect import inspect, pair_facts
from oscc.verbs.simulate import simulate

Models = dict[str, LoadedCheckpoint]
ROOT = Path(__file__).parents[3]
SIZES = ("family", "update", "k", "layers", "heads", "hidden", "context", "bound")


def section(model: LoadedCheckpoint) -> dict[str, object]:
    return {name: getattr(model.config, name) for name in SIZES}


def foreign(model: LoadedCheckpoint, path: Path, prefix: str) -> Path:
    state = model.model.state_dict()
    torch.save({prefix + name: value for name, value in state.items()}, path)
    return path


@pytest.mark.parametrize("prefix", ["_orig_mod.", "module."])
def test_a_prefix_that_was_removed_is_named(
    models: Models, tmp_path: Path, prefix: str
) -> None:
    """Cases A1 and A3."""
    model = models["fsn-flow"]
    path = foreign(model, tmp_path / "c.pt", prefix)
    found = inspect(path, model_config=section(model))
    assert any(f"`{prefix}`" in note for note in found["notes"])
    assert found["parameters"] == inspect_plain(model)


def inspect_plain(model: LoadedCheckpoint) -> int:
    return sum(value.numel() for value in model.model.state_dict().values())


def test_the_command_line_hands_the_model_section_on(
    models: Models, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = models["fsn-flow"]
    path = foreign(model, tmp_path / "c.pt", "_orig_mod.")
    config = tmp_path / "m.yaml"
    lines = [f"  {name}: {value}" for name, value in section(model).items()]
    config.write_text("\n".join(["model:", *lines, ""]), encoding="utf-8")
    assert main(["inspect", str(path), "--config", str(config)]) == 0
    shown = capsys.readouterr().out
    assert "`_orig_mod.`" in shown
    assert "layers.1.value.weight" in shown


@pytest.mark.parametrize("change", ["prefix", "view", "half", "nested"])
def test_other_containers_of_the_same_weights_make_the_same_program(
    models: Models, tmp_path: Path, change: str
) -> None:
    """Cases A1, A4, A7 and A13: equal to casting, whatever the layout."""
    model = models["fsn-flow"]
    plain = model.model.state_dict()
    stored = {
        "prefix": {f"_orig_mod.{k}": v for k, v in plain.items()},
        "view": {
            k: v.t().contiguous().t() if v.dim() == 2 else v for k, v in plain.items()
        },
        "half": {k: v.half() for k, v in plain.items()},
        "nested": {"state_dict": plain, "optimizer": {"lr": 1.0}},
    }[change]
    torch.save(stored, tmp_path / "c.pt")
    rounded = change == "half"
    cast = {k: v.half().float() if rounded else v for k, v in plain.items()}
    torch.save(cast, tmp_path / "plain.pt")
    first, second = (
        compile(
            load_checkpoint(tmp_path / name, model_config=section(model)),
            TEXT,
            scheme="plain",
            periods=60,
        )
        for name in ("c.pt", "plain.pt")
    )
    assert first.replace(provenance={}) == second.replace(provenance={})


def test_every_layer_and_every_host_operation_is_listed(build: Path) -> None:
    """Case A15: nothing of the model is missing."""
    program = BuildFolder.open(build).program()
    found = inspect(build)
    assert [s["name"] for s in found["program"]["stages"]] == [
        "layer.0.coupling",
        "layer.1.coupling",
    ]
    listed = found["coverage"]["host_by_operation"]
    assert set(listed) == {o.name for o in program.host_operations if o.unit == "mac"}
    assert {"score", "value_gate", "feed_forward", "read_out"} <= set(listed)
    assert all(listed[name] > 0 for name in ("score", "feed_forward", "read_out"))
    assert 0 < found["coverage"]["share_on_oscillators"] < 1


@pytest.mark.parametrize("name", ["fsn-flow", "fsn-mf-flow", "ssa-trainable"])
def test_every_part_of_a_checkpoint_is_listed_by_layer(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Case A15: every tensor belongs to one part, and every part has its place."""
    path = ROOT / "checkpoints" / f"{name}.safetensors"
    found = inspect(path)
    places = [*(one["parts"] for one in found["layers"]), found["outside"]]
    listed = [name for parts in places for part in parts for name in part["tensors"]]
    assert sorted(listed) == sorted(found["tensors"])
    assert [one["layer"] for one in found["layers"]] == [0, 1]
    for one in found["layers"]:
        where = {part["where"] for part in one["parts"]}
        assert where == {"host", "oscillators" if not found["refusal"] else "refused"}
    assert found["can_be_lowered"] == (not found["refusal"])
    assert main(["inspect", str(path)]) == 0
    out = capsys.readouterr().out
    for one in found["layers"]:
        (line,) = [
            line
            for line in out.splitlines()
            if line.startswith(f"layer {one['layer']}") and "on the host" in line
        ]
        assert all(part["part"] in line for part in one["parts"])


@pytest.mark.parametrize("verb", ["inspect", "doctor"])
def test_the_key_that_is_advised_can_be_given(
    models: Models, tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    model = models["fsn-flow"]
    state = dict(model.model.state_dict())
    path, config = tmp_path / "two.pt", tmp_path / "m.yaml"
    torch.save({"model": state, "ema": {k: v * 2 for k, v in state.items()}}, path)
    lines = [f"  {name}: {value}" for name, value in section(model).items()]
    config.write_text("\n".join(["model:", *lines, ""]), encoding="utf-8")
    call = [verb, str(path), "--config", str(config)]
    assert main(call) == 2
    seen = capsys.readouterr()
    assert "--key model" in seen.out + seen.err
    assert main([*call, "--key", "ema"]) == 0
    assert "weights found under `ema`" in capsys.readouterr().out


def test_a_pair_tells_where_its_target_ended() -> None:
    """Of an engine that ran a sample of targets only if this one was among them."""
    program = compile(tiny_checkpoint(), "import", deck_targets=1)
    seen = simulate(program, engine="phase")
    stage = program.stages[0]
    name = stage.name
    part = {f"{name}.index": np.array([[4, 2]]), f"{name}.phase": np.array([0.25])}
    some = Observables("gnucap", program.digest(), part, {})
    (first, *_) = pair_facts(program, {"phase": seen, "gnucap": some}, "1,4,2")
    assert first["target_read_rad"] == {
        "phase": seen.phase(name)[4, 2],
        "gnucap": 0.25,
    }
    assert first["target_digital_rad"] == stage.digital_rad[4, 2]
    (first, *_) = pair_facts(program, {"gnucap": some}, "1,4,3")
    assert first["target_read_rad"] == {}


@pytest.mark.parametrize(
    "pair", ["0,0", "a,0,0", "-1,0,0", "99,0,0", "0,99,0", "0,0,99"]
)
def test_a_pair_that_is_not_there_is_refused(build: Path, pair: str) -> None:
    with pytest.raises(RequestError, match="--pair"):
        inspect(build, pair=pair)
