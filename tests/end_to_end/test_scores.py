"""Scores and logits on oscillators, from a checkpoint to the verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oscc.testing.tiny import TEXT, tiny_checkpoint, write_checkpoint
from oscc.verbs.compile import CompileRequest, compile, compile_folder
from oscc.verbs.evaluate import EvaluateOptions, evaluate
from oscc.verbs.inspect import coverage
from oscc.verbs.report import report_folder
from oscc.verbs.simulate import SimulateOptions, simulate
from oscc.verbs.verify import VerifyOptions, verify, verify_folder


def scored(levels: Any) -> list[Any]:
    return [one for one in levels if one.tolerance_nat is not None]


@pytest.mark.parametrize("family", ["fsn", "fsn-mf", "kuramoto"])
@pytest.mark.parametrize("mode", ["prefill", "decode"])
def test_every_level_is_judged_in_both_loops(family: str, mode: str) -> None:
    model = tiny_checkpoint(family, layers=2, k=8)
    program = compile(model, TEXT, score="hardware", mode=mode, accuracy_mrad=20)
    for options in (VerifyOptions(), VerifyOptions(model=model)):
        found = scored(verify(program, (), options).levels)
        assert [one.level for one in found] == ["ir", "phase", "circuit"]
        assert [one.passed for one in found[:2]] == [True, True]
        assert found[0].rms_nat < 1e-10
        # in the closed loop the phases of the layer before are off as well
        assert 1e-5 < found[2].rms_nat < (0.02 if options.model is None else 0.3)
        assert found[2].passed == (found[2].rms_nat <= 0.02)
        assert found[0].targets == sum(one.outputs for one in program.correlations)


def test_a_wrong_score_fails_its_level() -> None:
    program = compile(tiny_checkpoint(k=8), TEXT, score="hardware", accuracy_mrad=20)
    seen = simulate(program, "circuit")
    name = "layer.0.score.correlation"
    arrays = dict(seen.arrays) | {name: seen.arrays[name] + 0.1}
    from dataclasses import replace

    verdict = verify(program, replace(seen, arrays=arrays), VerifyOptions(("circuit",)))
    (level,) = scored(verdict.levels)
    assert level.passed is False
    assert verdict.exit_status == 1
    assert "nat rms" in str(verdict)


@pytest.mark.gnucap
def test_simulators_are_judged_and_gated_too() -> None:
    program = compile(tiny_checkpoint(k=8), TEXT, score="hardware", accuracy_mrad=20)
    options = SimulateOptions(targets=1, jobs=2)
    start = simulate(program, "circuit")
    seen = simulate(program, "gnucap", start=start, options=options)
    asked = VerifyOptions(("spice:gnucap",), simulate=options)
    (level,) = scored(verify(program, (start, seen), asked).levels)
    assert level.passed
    assert level.rms_nat is not None
    assert level.rms_nat < 1e-3
    half = "layer.0.score.raw.half_step_correlation"
    from dataclasses import replace

    moved = dict(seen.arrays) | {half: seen.arrays[half] + 0.1}
    worse = replace(seen, arrays=moved)
    (level,) = scored(verify(program, (start, worse), asked).levels)
    assert level.passed is None
    assert "half the step" in level.reason


def test_the_loop_with_hardware_scores_keeps_the_bits() -> None:
    model = tiny_checkpoint(k=8)
    options = EvaluateOptions(
        tokens=40, request=CompileRequest(score="hardware", accuracy_mrad=20)
    )
    found = evaluate(model, "circuit", options=options)
    names = [row["correlation"] for row in found["correlations"]]
    assert names == ["layer.0.score", "read_out.logits"]
    assert all(0 < row["rms_nat"] < 0.02 for row in found["correlations"])
    assert abs(found["bpc_hardware"] - found["bpc_digital"]) < 0.03
    plain = EvaluateOptions(tokens=40, request=CompileRequest(accuracy_mrad=20))
    assert "correlations" not in evaluate(model, "phase", options=plain)


def test_coverage_moves_the_products_to_the_oscillators() -> None:
    model = tiny_checkpoint(k=8)
    shares = [
        coverage(compile(model, TEXT, score=score, accuracy_mrad=20))
        for score in ("host", "hardware")
    ]
    moved = shares[1]["oscillator_macs"] - shares[0]["oscillator_macs"]
    assert moved == shares[0]["host_macs"] - shares[1]["host_macs"]
    assert moved > 0
    assert shares[1]["layers"][-1]["stages"]["read_out.logits"] > 0


def test_a_build_folder_keeps_and_shows_them(tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path / "m.safetensors", k=8)
    out = tmp_path / "build"
    request = CompileRequest(score="hardware", accuracy_mrad=20)
    program = compile_folder(checkpoint, out, TEXT, request, decks=False)
    verdict = verify_folder(out)
    assert verdict.passed
    levels = json.loads((out / "verify.json").read_text())["levels"]
    assert [one["rms_rad"] is None for one in levels] == [False, True] * 3
    assert verify_folder(out).to_json() == verdict.to_json()
    assert "read_out.logits" in (out / "program.yaml").read_text()
    report_folder(out)
    page = (out / "report.html").read_text()
    assert "nat" in page
    assert np.isfinite(program.correlations[0].digital).all()
