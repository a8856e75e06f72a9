"""compile: from a checkpoint and a text to a program and a build folder."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oscc.build import FORMAT, NETLIST_FORMAT, BuildFolder
from oscc.checkpoint import LoadedCheckpoint, load_checkpoint
from oscc.errors import RequestError, ToolError
from oscc.files import read_json, sha256_bytes, sha256_file
from oscc.ir import Program, outline
from oscc.ir.views import coupled_pairs
from oscc.testing.tiny import TEXT
from oscc.verbs.compile import (
    CompileRequest,
    compile,
    compile_folder,
    sample_targets,
)
from oscc.verbs.energy import energy_folder
from oscc.verbs.simulate import simulate
from oscc.verbs.verify import VerifyOptions, verify, verify_folder
from oscc_backends.deck_files import ORIGIN_FORMAT
from oscc_netlists.circuit import ideal_elements
from oscc_netlists.reader import read as read_deck

ROOT = Path(__file__).parents[3]
Models = dict[str, LoadedCheckpoint]


def refusal(model: LoadedCheckpoint, text: str = TEXT, **settings: Any) -> str:
    with pytest.raises(RequestError) as caught:
        compile(model, text, **settings)
    return str(caught.value)


def test_a_program_knows_where_it_came_from(models: Models) -> None:
    program = compile(models["fsn-flow"], TEXT, seed=5)
    provenance = program.provenance
    assert provenance["checkpoint_sha256"] == models["fsn-flow"].digest
    assert provenance["input_sha256"] == sha256_bytes(TEXT.encode())
    assert provenance["seed"] == program.seed == 5
    assert [p["name"] for p in provenance["passes"]] == ["choose_dwell", "legalise"]
    assert program.device["name"] == "vo2-two-state-6k"
    assert [s.name for s in program.stages] == ["layer.0.coupling", "layer.1.coupling"]
    assert program.tokens.size == len(TEXT)


@pytest.mark.parametrize("name", ["fsn-flow", "kuramoto-flow", "fsn-euler"])
def test_the_same_request_is_the_same_program(models: Models, name: str) -> None:
    one, two = (compile(models[name], TEXT, threads=n) for n in (1, 3))
    assert one == two
    assert one.provenance == two.provenance


SHIPPED = [
    "fsn-flow-k16",
    "kuramoto-flow-k08",
    pytest.param("fsn-flow", marks=pytest.mark.slow),
    pytest.param("kuramoto-flow", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("accuracy", [10.0, 3.0])
def test_the_accuracy_that_was_asked_for_holds_on_a_trained_model(
    name: str, accuracy: float
) -> None:
    """True error of the circuit on the targets that no trial has seen."""
    model = load_checkpoint(ROOT / "checkpoints" / f"{name}.safetensors")
    text = Path(textwrap.__file__).read_text(encoding="utf-8")[1000:]
    most = min(96, model.config.context)
    program = compile(model, text, accuracy_mrad=accuracy, max_tokens=most)
    circuit = simulate(program, "circuit")
    exact = simulate(program, "phase")
    for stage, row in zip(
        program.stages, program.provenance["passes"][0]["stages"], strict=True
    ):
        error = circuit.phase(stage.name) - exact.phase(stage.name)
        assert np.sqrt(np.mean(error**2)) <= 1e-3 * accuracy
        assert np.abs(error).max() < np.pi / 2
        assert row["predicted_rms_rad"] <= 0.6e-3 * accuracy


def test_one_token_compiles_and_passes(models: Models) -> None:
    for model in models.values():
        program = compile(model, "x")
        # four coordinates read themselves; or six modes and the pin of their token
        each = [4, 4 * 7] if model.config.family == "fsn-mf" else [4]
        assert [coupled_pairs(s) for s in program.stages] == 2 * each
        assert verify(program).passed


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("", {}, "The text is empty. Give a text of one token or more."),
        (
            "x" * 17,
            {},
            "the text has 17 tokens, the model's context is 16. Give --max-tokens 16 "
            "(first 16) or a shorter text.",
        ),
        (
            TEXT,
            {"max_tokens": 0},
            "Argument `max_tokens` must be a whole number >= 1, but is 0.",
        ),
        (
            TEXT,
            {"substeps": 0},
            "Argument `substeps` must be a whole number >= 1, but is 0.",
        ),
        (
            TEXT,
            {"periods": -5},
            "Argument `periods` must be a whole number >= 1, but is -5.",
        ),
        (
            TEXT,
            {"accuracy_mrad": float("nan")},
            "`--accuracy-mrad` must be above zero, but is nan.",
        ),
        (
            TEXT,
            {"coupler": "native-r"},
            "Coupler `native-r` is not available yet; use `shaped`.",
        ),
        (
            TEXT,
            {"fidelity": "passive"},
            "Fidelity `passive` is not available yet; use summed, pairwise or "
            "oscillators.",
        ),
        (
            TEXT,
            {"layers": [2]},
            "Layer 2 does not exist; the model has layers 0 to 1.",
        ),
    ],
)
def test_a_request_that_cannot_be_met_is_one_sentence(
    models: Models, text: str, settings: dict[str, Any], message: str
) -> None:
    assert refusal(models["fsn-flow"], text, **settings) == message


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"scheme": "magic"}, "must be one of"),
        ({"update": "euler"}, "must be one of flow, probe"),
        ({"device": "vo2-two-state-7k"}, "There is no device card"),
        ({"unknown": "drop"}, "must be one of error, other"),
        ({"deck_targets": 0}, "`deck_targets` must be a whole number >= 1"),
    ],
)
def test_unknown_words_are_named(
    models: Models, settings: dict[str, Any], words: str
) -> None:
    assert words in refusal(models["fsn-flow"], **settings)


def test_a_character_outside_the_vocabulary(models: Models) -> None:
    found = refusal(models["fsn-flow"], "ab\né")
    assert found.startswith("character 'é' (U+00E9) at position 4, line 2 of the text")
    program = compile(models["fsn-flow"], "ab\né", unknown="other")
    assert program.tokens[3] == 0


def test_a_longer_text_is_cut_when_asked(models: Models) -> None:
    cut = compile(models["fsn-flow"], TEXT + "and more", max_tokens=15)
    assert cut.tokens.tolist() == compile(models["fsn-flow"], TEXT).tokens.tolist()


def test_an_euler_model_runs_as_a_probe_unless_asked(models: Models) -> None:
    program = compile(models["fsn-euler"], TEXT)
    assert {s.update for s in program.stages} == {"probe"}
    assert program.notes == ()
    forced = compile(models["fsn-euler"], TEXT, update="flow")
    assert {s.update for s in forced.stages} == {"flow"}
    assert "this changes the model" in forced.notes[0]


def test_the_sample_is_drawn_from_the_seed(models: Models) -> None:
    program = compile(models["fsn-flow"], TEXT, deck_targets=3)
    sample = sample_targets(program)
    assert {name: index.shape for name, index in sample.items()} == {
        "layer.0.coupling": (3, 2),
        "layer.1.coupling": (3, 2),
    }
    again = sample_targets(compile(models["fsn-flow"], TEXT, deck_targets=3))
    other = sample_targets(program.replace(seed=1))
    assert all((sample[n] == again[n]).all() for n in sample)
    assert any((sample[n] != other[n]).any() for n in sample)
    assert sample_targets(program, 5)["layer.0.coupling"].shape == (5, 2)


def test_a_build_holds_program_outline_and_manifest(
    compiled: Path, checkpoints: dict[str, Path]
) -> None:
    manifest = read_json(compiled / "manifest.json", FORMAT)
    assert manifest["inputs"] == {
        "checkpoint": sha256_file(checkpoints["fsn-flow"]),
        "text": sha256_bytes(TEXT.encode()),
    }
    assert set(manifest["outputs"]) == {"program.safetensors", "program.yaml"}
    program = BuildFolder.open(compiled).program()
    text = (compiled / "program.yaml").read_text(encoding="utf-8")
    assert text == outline.outline_yaml(program)


def test_two_compiles_are_the_same_bytes_wherever_they_go(
    checkpoints: dict[str, Path],
    compiled: Path,
    tmp_path: Path,
    content: Callable[[Path], dict[str, bytes]],
) -> None:
    out = tmp_path / "Run 1 Ü" / "other"
    request = CompileRequest(threads=2)
    compile_folder(checkpoints["fsn-flow"], out, TEXT, request, decks=False)
    assert content(out) == content(compiled)
    for data in content(out).values():
        assert str(tmp_path).encode() not in data


def test_a_failure_in_the_middle_leaves_nothing(
    checkpoints: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(program: Program) -> str:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(outline, "outline_yaml", broken)
    with pytest.raises(RuntimeError, match="a fault of ours"):
        compile_folder(
            checkpoints["fsn-flow"],
            tmp_path / "new" / "out",
            TEXT,
            CompileRequest(periods=20),
            decks=False,
        )
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_must_not_be_written_is_refused_before_any_work(
    tmp_path: Path,
) -> None:
    """The checkpoint does not even exist: the folder is looked at first."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(RequestError, match="is a file, not a folder"):
        compile_folder(
            tmp_path / "none.safetensors", tmp_path / "file", TEXT, CompileRequest()
        )


def test_the_host_assisted_scheme_compiles_without_decks_and_says_so(
    checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "corrected"
    request = CompileRequest(scheme="corrected", periods=24)
    program = compile_folder(checkpoints["kuramoto-flow"], out, TEXT, request)
    assert {stage.scheme for stage in program.stages} == {"corrected"}
    assert program.notes[-1].startswith("Host-assisted: the scheme `corrected`")
    assert not (out / "netlist").exists()
    verdict = verify_folder(out, VerifyOptions(("circuit", "spice:ngspice")))
    circuit, spice = verdict.levels
    assert circuit.passed is not None
    assert (spice.passed, spice.blame) == (None, 4)
    assert "the scheme `corrected` needs currents that the host" in spice.reason
    assert energy_folder(out).host_assisted


@pytest.mark.gnucap
def test_real_cells_are_a_tile_beside_the_decks_it_is_compared_with(
    checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "cells"
    request = CompileRequest(
        fidelity="oscillators", scheme="plain", periods=60, deck_targets=1
    )
    compile_folder(checkpoints["kuramoto-flow"], out, "abc", request)
    index = read_json(out / "netlist" / "index.json", NETLIST_FORMAT)
    tiles = [row for row in index["decks"] if row.get("fidelity") == "oscillators"]
    assert [row["file"] for row in tiles] == [
        f"gnucap/tile_layer_{n}_coupling.cir" for n in range(2)
    ]
    for row in tiles:
        assert (row["sources"], row["targets"]) == (3, 3)
        circuit, _ = read_deck((out / "netlist" / row["file"]).read_text("utf-8"))
        assert dict(circuit.header)["fidelity"] == "oscillators"
        assert row["ideal_elements"] == ideal_elements(circuit)
    origin = read_json(out / "netlist" / "origin.json", ORIGIN_FORMAT)["decks"]
    weights = {
        (entry["target"], *entry["sources"])
        for entry in origin[tiles[0]["file"]]["elements"].values()
        if entry["role"] == "weight" and "target" in entry
    }
    assert weights == {(t, u) for t in range(3) for u in range(t + 1)}
    verdict = verify_folder(out, VerifyOptions(("spice:gnucap",)))
    assert (verdict.exit_status, verdict.fidelity) == (0, "oscillators")
    assert 0 < verdict.causes["loading"]["rms_rad"] < 5e-3
    assert verdict.ideal_elements == index["ideal_elements"]
    account = energy_folder(out).to_json()
    assert account["ideal_elements"] == index["ideal_elements"]
    assert any("tile of real cells" in one["scope"] for one in account["measured"])


def test_real_cells_without_gnucap_are_refused_and_leave_no_folder(
    checkpoints: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OSCC_GNUCAP", "/nowhere/gnucap")
    request = CompileRequest(fidelity="oscillators", scheme="plain", periods=60)
    with pytest.raises(ToolError, match="gnucap"):
        compile_folder(checkpoints["kuramoto-flow"], tmp_path / "o", "abc", request)
    assert list(tmp_path.iterdir()) == []
