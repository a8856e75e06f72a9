"""`oscc train` and `oscc evaluate` on models of a few thousand parameters."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., Any]
SIZES = [
    *("--set", "model.k=4", "--set", "model.heads=2", "--set", "model.layers=1"),
    *("--set", "model.hidden=8", "--set", "model.context=8"),
    *("--set", "train.batch=2", "--set", "train.save_every=3"),
]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("abcabd" * 4000)
    return path


def test_train_writes_a_checkpoint_that_the_other_verbs_take(
    call: Call, corpus: Path, tmp_path: Path
) -> None:
    words = ["train", "--family", "kuramoto", "--update", "flow", *SIZES]
    words += ["--text", corpus, "--steps", 6, "--seed", 5, "-o", tmp_path / "out"]
    found = call(*words)
    assert found.status == 0, found.err
    assert "bits per character" in found.out
    checkpoint = tmp_path / "out" / "kuramoto-flow-k04.safetensors"
    metrics = json.loads(checkpoint.with_suffix(".metrics.json").read_text())
    assert (metrics["steps"], metrics["seed"]) == (6, 5)
    assert call("doctor", checkpoint).status == 0
    held = call(*words)
    assert (held.status, "--force" in held.err) == (2, True)
    before = checkpoint.read_bytes()
    again = call(*words, "--force", "--json")
    assert again.status == 0
    assert json.loads(again.out)["format"] == metrics["format"]
    assert checkpoint.read_bytes() == before, "the same seed gives the same bytes"


def test_train_wants_a_family(call: Call) -> None:
    found = call("train")
    assert (found.status, "Give --family" in found.err) == (2, True)
    found = call("train", "--family", "kuramotto")
    assert found.status == 2
    assert "Did you mean `kuramoto`?" in found.err


def test_evaluate_writes_and_prints_the_same(
    call: Call, tiny: Path, corpus: Path, tmp_path: Path
) -> None:
    corpus.write_text("import os\nimport sys\n" * 12)
    words = ["evaluate", tiny, "--engine", "phase", "--text", corpus]
    found = call(*words, "--json", "-o", tmp_path / "out")
    assert found.status == 0, found.err
    content = json.loads(found.out)
    assert content["format"] == "oscc.evaluate/1"
    assert json.loads((tmp_path / "out" / "evaluate.json").read_text()) == content
    # the phase engine is exact on a model that was trained with the flow
    assert content["bpc_phase"] == pytest.approx(content["bpc_digital"], abs=1e-6)
    assert call(*words, "-o", tmp_path / "out").status == 0


def test_evaluate_adds_to_a_build_of_the_same_checkpoint_alone(
    call: Call, tiny: Path, build: Path, corpus: Path, tmp_path: Path
) -> None:
    corpus.write_text("import os\nimport sys\n" * 12)
    words = ["--engine", "phase", "--text", corpus]
    assert call("evaluate", tiny, *words, "-o", build).status == 0
    manifest = json.loads((build / "manifest.json").read_text())
    assert "evaluate.json" in manifest["outputs"]
    other = tiny.with_name("fsn-flow-k16.safetensors")
    found = call("evaluate", other, *words, "-o", build)
    assert found.status == 2
    assert "was compiled from checkpoint" in found.err


def test_evaluate_never_writes_over_a_file_of_somebody_else(
    call: Call, tiny: Path, corpus: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "evaluate.json").write_text("{}")
    corpus.write_text("import os\n" * 20)
    words = ["--engine", "phase", "--text", corpus, "-o", tmp_path / "mine"]
    found = call("evaluate", tiny, *words)
    assert found.status == 2
    assert "none of ours" in found.err
    assert (tmp_path / "mine" / "evaluate.json").read_text() == "{}"


@pytest.mark.gnucap
def test_evaluate_runs_spice_on_targets_drawn_over_the_text(
    call: Call, tiny: Path, corpus: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    corpus.write_text("import os\nimport sys\n" * 3)
    words = ["evaluate", tiny, "--text", corpus, "-o", tmp_path / "out"]
    words += ["--set", "compile.substeps=1", "--set", "compile.periods=20"]
    found = call(*words, "--spice", 1, "--simulator", "gnucap")
    assert found.status == 0, found.err
    assert "SPICE: PASS" in found.out
    assert "rms to circuit" in found.out
    written = tmp_path / "out" / "evaluate.json"
    assert json.loads(written.read_text())["spice"]["targets_a_step"] == 1
    assert list((tmp_path / "out" / "spice" / "gnucap" / "decks").glob("*.cir"))
    # the bits are written all the same where a simulator is missing
    monkeypatch.setenv("OSCC_GNUCAP", str(tmp_path / "none"))
    found = call(*words, "--spice", 1, "--simulator", "gnucap")
    assert found.status == 3
    assert "SPICE: INCONCLUSIVE" in found.out
    assert json.loads(written.read_text())["bpc_hardware"] > 0


def test_evaluate_refuses_spice_that_cannot_be(call: Call, tiny: Path) -> None:
    for words, said in (
        (["--simulator", "gnucap"], "give --spice N"),
        (["--spice", 0], "spice"),
        (["--spice", 1, "--simulator", "spectre"], "no simulator `spectre`"),
        (["--spice", 1, "--engine", "phase"], "engine `circuit`"),
    ):
        found = call("evaluate", tiny, *words)
        assert found.status == 2, found.err
        assert said in found.err
