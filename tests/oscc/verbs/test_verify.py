"""verify: levels, tolerances, causes, gates, and what is undecided."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oscc.observables
from oscc.build import BuildFolder
from oscc.checkpoint import LoadedCheckpoint
from oscc.errors import RequestError
from oscc.files import read_json
from oscc.ir import Coupling, Stage
from oscc.ladder.verdict import FORMAT, Verdict
from oscc.observables import Observables
from oscc.testing.tiny import TEXT, tiny_program
from oscc.verbs.compile import (
    CompileRequest,
    compile,
    compile_folder,
)
from oscc.verbs.simulate import SimulateOptions, simulate, simulate_folder
from oscc.verbs.verify import VerifyOptions, verify, verify_folder

Models = dict[str, LoadedCheckpoint]
NAME = "layer.0.coupling"


def levels(verdict: Verdict) -> dict[str, Any]:
    return {level.level: level for level in verdict.levels}


@pytest.mark.parametrize("name", ["fsn-flow", "kuramoto-flow"])
def test_a_flow_model_passes_every_level(models: Models, name: str) -> None:
    program = compile(models[name], TEXT)
    verdict = verify(program)
    assert (verdict.passed, verdict.exit_status) == (True, 0)
    found = levels(verdict)
    assert list(found) == ["ir", "phase", "circuit"]
    assert [level.reference for level in verdict.levels] == ["digital", "ir", "phase"]
    assert found["ir"].rms_rad < 1e-9
    assert found["phase"].rms_rad < 1e-9
    assert 1e-6 < found["circuit"].rms_rad <= 0.01
    assert found["circuit"].tolerance_rad == pytest.approx(0.01)
    assert found["circuit"].targets == 2 * 4 * len(TEXT)
    assert set(verdict.causes) == {"integrator_gap", "averaging", "unexplained"}
    assert verdict.causes["averaging"]["rms_rad"] == found["circuit"].rms_rad
    assert verdict.causes["unexplained"]["max_rad"] < 1e-8
    assert str(verdict).splitlines()[-1] == "PASS"


def test_an_euler_model_run_as_a_flow_fails_by_the_euler_gap(models: Models) -> None:
    program = compile(models["fsn-euler"], TEXT, update="flow")
    verdict = verify(program)
    assert (verdict.passed, verdict.exit_status) == (False, 1)
    found = levels(verdict)
    assert found["ir"].passed is True
    assert found["phase"].passed is False
    assert found["circuit"].passed is True
    assert "euler_gap" in verdict.causes
    assert "unexplained" not in verdict.causes
    assert verdict.causes["euler_gap"]["rms_rad"] > 0.1
    largest = max(verdict.causes, key=lambda name: verdict.causes[name]["rms_rad"])
    assert largest == "euler_gap"
    text = str(verdict)
    assert "\nFAIL   phase against ir: " in text
    assert "note: The layers were trained with update euler" in text


def test_an_euler_model_run_as_a_probe_is_judged_on_its_step(models: Models) -> None:
    program = compile(models["fsn-euler"], TEXT)
    verdict = verify(program)
    assert verdict.exit_status == 0
    found = levels(verdict)
    assert (found["phase"].reference, found["circuit"].reference) == ("ir", "ir")
    assert found["phase"].tolerance_rad == found["circuit"].tolerance_rad == 0.01
    assert found["ir"].tolerance_rad == 1e-6
    assert set(verdict.causes) == {"integrator_gap", "probe_bias", "averaging"}
    assert 0 < verdict.causes["probe_bias"]["rms_rad"] <= 0.01


def test_tolerances_can_be_set_by_level(models: Models) -> None:
    program = compile(models["fsn-flow"], TEXT)
    tight = VerifyOptions(levels=("ir", "circuit"), tolerance_rad={"circuit": 1e-9})
    verdict = verify(program, options=tight)
    assert verdict.exit_status == 1
    assert levels(verdict)["circuit"].tolerance_rad == 1e-9
    assert levels(verdict)["ir"].passed is True


KEYS = {
    *("format", "program", "passed", "loop", "fidelity", "ideal_elements", "levels"),
    *("causes", "convergence", "model"),
}
LEVEL_KEYS = {
    *("level", "engine", "reference", "targets", "rms_rad", "median_rad", "p99_rad"),
    *("max_rad", "slips", "tolerance_rad", "passed", "reason", "worst"),
}


def test_verify_json_is_strict_and_has_the_keys_of_the_contract(build: Path) -> None:
    verdict = verify_folder(build)
    text = (build / "verify.json").read_text(encoding="utf-8")
    content = json.loads(text, parse_constant=pytest.fail)
    assert content == read_json(build / "verify.json", FORMAT)
    assert set(content) >= KEYS
    assert content["program"] == BuildFolder.open(build).program().digest()
    assert content["passed"] is verdict.passed is True
    assert content["loop"] == "open"
    for level in content["levels"]:
        assert set(level) == LEVEL_KEYS
        assert set(level["worst"]) == {
            *("stage", "token", "coordinate", "error_rad", "drive")
        }
    for size in content["causes"].values():
        assert set(size) == {"rms_rad", "max_rad"}


def test_verify_twice_writes_the_same_bytes(
    build: Path, content: Callable[[Path], dict[str, bytes]]
) -> None:
    verify_folder(build)
    first = content(build)
    verify_folder(build, VerifyOptions(simulate=SimulateOptions(jobs=2)))
    assert content(build) == first


def test_engines_that_have_run_are_not_run_again(
    build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from oscc.verbs import verify as module

    verify_folder(build)
    ran: list[str] = []
    monkeypatch.setattr(module, "simulate_into", lambda *a: ran.append(a[2]))
    verify_folder(build)
    assert ran == []


def test_stale_and_partial_runs_are_made_anew(build: Path) -> None:
    folder = BuildFolder.open(build)
    program = folder.program()
    old = simulate(program.replace(seed=99), "phase")
    oscc.observables.save(old, folder.observables_path("phase"))
    simulate_folder(build, "circuit", SimulateOptions(stages=[NAME]))
    assert verify_folder(build).passed
    fresh = folder.observables("phase", program)
    assert fresh is not None
    assert fresh.program == program.digest()
    whole = folder.observables("circuit", program)
    assert whole is not None
    assert len(whole.stages) == 2


def test_a_program_of_another_checkpoint_is_refused(
    build: Path, checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    other = tmp_path / "other"
    compile_folder(
        checkpoints["kuramoto-flow"], other, TEXT, CompileRequest(), decks=False
    )
    name = "program.safetensors"
    (build / name).write_bytes((other / name).read_bytes())
    with pytest.raises(RequestError, match="from another compile than the rest"):
        verify_folder(build)
    assert not (build / "verify.json").exists()


def test_runs_of_another_program_are_refused(models: Models) -> None:
    program = compile(models["fsn-flow"], TEXT)
    other = simulate(compile(models["fsn-flow"], "import re"), "circuit")
    with pytest.raises(RequestError) as caught:
        verify(program, other)
    assert str(caught.value) == (
        f"The circuit run was made from program {other.program[:8]}, this one is "
        f"{program.digest()[:8]}. Simulate it again."
    )


def test_a_part_of_the_stages_is_not_judged_as_the_whole(models: Models) -> None:
    program = compile(models["fsn-flow"], TEXT)
    part = simulate(program, "circuit", options=SimulateOptions(stages=[NAME]))
    with pytest.raises(RequestError) as caught:
        verify(program, [part])
    assert str(caught.value) == (
        "The circuit run holds no stage layer.1.coupling, so it cannot be judged as a "
        "whole. Simulate all stages."
    )


def test_given_runs_are_used() -> None:
    """A made-up run with a known error gives that error."""
    program = tiny_program()
    phases = simulate(program, "phase").phase(NAME)
    off = Observables("circuit", program.digest(), {f"{NAME}.phase": phases + 0.5}, {})
    verdict = verify(program, off)
    assert levels(verdict)["circuit"].rms_rad == pytest.approx(0.5)
    assert verdict.exit_status == 1


def test_a_lost_turn_fails_the_level() -> None:
    program = tiny_program(accuracy_rad=100.0)
    phases = np.array(simulate(program, "phase").phase(NAME))
    phases[2, 1] += 2 * np.pi
    turned = Observables("circuit", program.digest(), {f"{NAME}.phase": phases}, {})
    level = levels(verify(program, turned))["circuit"]
    assert (level.passed, level.slips) == (False, 1)
    assert (level.worst["token"], level.worst["coordinate"]) == (2, 1)


@pytest.mark.parametrize("word", ["circiut", "phase:fast", "spice:spectre", ""])
def test_unknown_levels_are_refused(word: str) -> None:
    with pytest.raises(RequestError, match=r"There is no (level|simulator)"):
        verify(tiny_program(), options=VerifyOptions(levels=[word]))


def test_no_level_at_all_is_no_pass() -> None:
    with pytest.raises(RequestError, match="No level was asked for; there are ir, "):
        verify(tiny_program(), options=VerifyOptions(levels=()))


def test_a_level_asked_for_twice_is_judged_once() -> None:
    options = VerifyOptions(levels=("ir", "phase", "ir"))
    found = verify(tiny_program(), options=options)
    assert [level.level for level in found.levels] == ["ir", "phase"]


def test_a_wrong_digital_layer_is_the_integrators_gap() -> None:
    program = tiny_program()
    stage = program.stages[0]
    wrong = replace(stage, digital_rad=stage.digital_rad + 0.25)
    verdict = verify(program.replace(stages=(wrong,)))
    assert levels(verdict)["ir"].passed is False
    assert verdict.causes["integrator_gap"]["rms_rad"] == pytest.approx(0.25)


@pytest.mark.parametrize("engine", ["phase", "circuit"])
def test_an_euler_step_that_flips_for_ever_is_never_a_pass(engine: str) -> None:
    """Case C11: h K = 1.1 flips phi between .749 and -.749, the flow settles at 0.

    The difference of a pair moves by 2 h K sin(phi), so the gain of one target against
    a held source at zero is 2.2; sin(.749) 2.2 = 2 * .749 to a milliradian.
    """
    flip = 0.749
    start = np.full((2, 1), flip)
    coupling = Coupling(
        route="present",
        harmonics=np.array([1]),
        weights=np.array([[[1.0, 0.0], [1.0, 0.0]]]),
        gamma=np.ones((1, 1)),
        alpha_rad=np.zeros((1, 1)),
    )
    stage = Stage(
        name=NAME,
        theta_rad=np.zeros((2, 1)),
        phi0_rad=start,
        gain_rad=np.full((2, 1), 2.2),
        detuning_rad=np.zeros((2, 1)),
        couplings=(coupling,),
        digital_rad=start,
        model_update="euler",
        scheme="extrapolated",
        dwell_periods=24,
        substeps=2,
    )
    program = tiny_program(stage)
    step = program.stages[0].digital_rad
    assert step == pytest.approx(-start, abs=2e-3)
    back = tiny_program(replace(stage, phi0_rad=step)).stages[0].digital_rad
    assert back == pytest.approx(
        start, abs=6e-3
    )  # the slope there is 1 - 2.2 cos(.749)
    settled = simulate(program, engine).phase(NAME)
    assert (np.abs(settled) < flip).all()
    verdict = verify(program)
    assert verdict.exit_status == 1
    assert verdict.causes["euler_gap"]["rms_rad"] > flip
