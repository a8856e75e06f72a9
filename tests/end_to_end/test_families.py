"""FSN-MF and FSN without offsets from the shipped checkpoint to the report."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oscc.account import EnergyAccount
from oscc.build import BuildFolder
from oscc.checkpoint import load_checkpoint
from oscc.cli.main import main
from oscc.ir.program import Program
from oscc.verbs.compile import CompileRequest, compile_folder
from oscc.verbs.energy import energy_folder
from oscc.verbs.inspect import inspect
from oscc.verbs.report import report_folder
from oscc.verbs.simulate import SimulateOptions
from oscc.verbs.verify import VerifyOptions, verify_folder

ROOT = Path(__file__).parents[2]
TOKENS = 8
STAGES = [f"layer.{n}.{step}" for n in (0, 1) for step in ("coupling", "modes")]


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Logs of the tests stay out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OSCC_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def compiled(name: str, folder: Path, **changes: Any) -> tuple[Path, Program]:
    settings = {"max_tokens": TOKENS, "deck_targets": 2} | changes
    request = CompileRequest(**settings)
    checkpoint = ROOT / "checkpoints" / f"{name}.safetensors"
    out = folder / name
    return out, compile_folder(checkpoint, out, "import os\nx = 1", request)


@pytest.fixture(scope="module")
def modes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Program]:
    return compiled("fsn-mf-flow", tmp_path_factory.mktemp("builds"))


@pytest.mark.ngspice
@pytest.mark.gnucap
def test_every_level_passes_on_both_couplings(modes: tuple[Path, Program]) -> None:
    build, program = modes
    assert [stage.name for stage in program.stages] == STAGES
    levels = ("ir", "phase", "circuit", "spice:ngspice", "spice:gnucap")
    verdict = verify_folder(build, VerifyOptions(levels=levels))
    assert verdict.passed, str(verdict)
    found = {level.engine: level for level in verdict.levels}
    for engine in ("ir", "phase", "circuit"):
        assert found[engine].targets == len(STAGES) * TOKENS * 48
    for engine in ("ngspice", "gnucap"):
        assert found[engine].targets == 2 * len(STAGES)
    folder = BuildFolder.open(build)
    seen = folder.observables("circuit", program)
    assert seen is not None
    assert seen.stages == tuple(sorted(STAGES))
    assert seen.phase("layer.1.modes").shape == (TOKENS, 48)
    account = energy_folder(build)
    measured = {entry["engine"]: entry for entry in account.measured}
    # the supply of a pulled cell is that of a free one within a few parts in 1e4
    for engine in ("circuit", "ngspice"):
        assert measured[engine]["balanced"]
        assert measured[engine]["over_closed_form"] == pytest.approx(1, abs=5e-3)
    page = report_folder(build).read_text(encoding="utf-8")
    assert "Collective modes of one token" in page
    assert re.search(r"\d+ of 2400 lines of token", page)


def test_the_share_on_oscillators_is_told_by_layer(
    modes: tuple[Path, Program], capsys: pytest.CaptureFixture[str]
) -> None:
    build, _ = modes
    found = inspect(build, pair="3,7,5")
    layers = found["coverage"]["layers"]
    assert [part["layer"] for part in layers] == [0, 1, -1]
    for part in layers[:2]:
        # causal pairs x (N = 2) x routes, less the successor of token 0; and the modes
        pairs = TOKENS * (TOKENS + 1) // 2
        terms = 48 * 2 * (pairs + pairs - TOKENS)
        attention, listed = part["stages"].values()
        assert attention == 2 * terms
        assert listed == TOKENS * 48 * (48 * 4 + 2 * 2)
        host = part["host_macs"]
        share = (attention + listed) / (attention + listed + host)
        assert part["share_on_oscillators"] == pytest.approx(share)
    by_name = found["coverage"]["host_by_operation"]
    assert by_name["modes"] == 2 * 4 * (TOKENS * 48 * 48 + TOKENS * 48)
    pair = {entry["stage"]: entry for entry in found["pair"]}
    assert set(pair) == set(STAGES)
    assert pair["layer.0.modes"]["source_is"] == "mode"
    assert [term["route"] for term in pair["layer.0.modes"]["terms"]] == ["edges"]
    assert main(["inspect", str(build), "--pair", "48,2,1"]) == 2  # no such token
    assert main(["inspect", str(build), "--pair", "7,7,1"]) == 0
    shown = capsys.readouterr().out
    assert "layer.1.modes: mode as source at" in shown
    assert re.search(r"layer 0 +coupling [\d ]+, modes [\d ]+", shown)


def test_verbs_of_the_command_line_take_the_stages(
    modes: tuple[Path, Program], capsys: pytest.CaptureFixture[str]
) -> None:
    build, program = modes
    checkpoint = ROOT / "checkpoints" / "fsn-mf-flow.safetensors"
    words = ["simulate", str(build), "--engine", "phase", "--stages", "layer.0.modes"]
    assert main(words) == 0
    words = ["verify", str(build), "--levels", "circuit", "--closed-loop", "--json"]
    capsys.readouterr()
    assert main([*words, "--checkpoint", str(checkpoint)]) in (0, 1)
    told = json.loads(capsys.readouterr().out)
    assert told["loop"] == "closed"
    assert told["model"]["top1_agreement"] > 0.7
    assert main(["doctor", str(checkpoint)]) == 0
    assert "cannot be lowered" not in capsys.readouterr().out
    assert program.digest() == BuildFolder.open(build).program().digest()


@pytest.mark.gnucap
def test_real_cells_for_attention_beside_listed_pairs(tmp_path: Path) -> None:
    build, program = compiled(
        "fsn-mf-flow",
        tmp_path,
        fidelity="oscillators",
        layers=[0],
        max_tokens=4,
        deck_targets=1,
    )
    assert any("listed one by one" in note for note in program.notes)
    options = VerifyOptions(levels=("spice:gnucap",))
    verdict = verify_folder(build, options)
    assert verdict.passed, str(verdict)
    gap = verdict.fidelity_gap
    assert gap is not None
    assert gap["stage"] == "layer.0.coupling"
    found = energy_folder(build)
    assert isinstance(found, EnergyAccount)
    assert found.fidelity == "oscillators+pairwise"


@pytest.mark.ngspice
def test_fsn_without_offsets_passes_every_level(tmp_path: Path) -> None:
    build, program = compiled("fsn-no-phase-flow", tmp_path, deck_targets=1)
    for stage in program.stages:
        assert all(not c.alpha_rad.any() for c in stage.factored)
    simulation = SimulateOptions(jobs=1)
    levels = ("ir", "phase", "circuit", "spice:ngspice")
    verdict = verify_folder(build, VerifyOptions(levels, simulate=simulation))
    assert verdict.passed, str(verdict)
    assert energy_folder(build).pairs > 0
    assert "fsn-no-phase" in report_folder(build).read_text(encoding="utf-8")


def test_causality_of_the_shipped_model_in_the_ir() -> None:
    """A later symbol changes no earlier phase of any stage.

    To rounding: the exact flow takes its steps for many targets at once.
    """
    from oscc.device import card_to_mapping, load_card
    from oscc.lower import lower
    from oscc.trace import trace

    loaded = load_checkpoint(ROOT / "checkpoints" / "fsn-mf-flow.safetensors")
    card = card_to_mapping(load_card("vo2-two-state-6k"))
    one, other = (
        lower(trace(loaded.model, tokens), card).stages
        for tokens in ([5, 6, 7, 8], [5, 6, 7, 90])
    )
    for a, b in zip(one, other, strict=True):
        first, second = (s.on_grid(s.digital_rad) for s in (a, b))
        assert np.abs(first[:3] - second[:3]).max() < 1e-9
        assert np.abs(first[3] - second[3]).max() > 1e-3
