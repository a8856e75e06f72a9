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
from oscc.arrays import FloatArray
from oscc.build import BuildFolder
from oscc.checkpoint import LoadedCheckpoint
from oscc.errors import OsccError, RequestError, ToolError, UndecidedError
from oscc.files import read_json
from oscc.ir import Coupling, Program, Stage
from oscc.ladder.verdict import FORMAT, Verdict
from oscc.observables import Observables
from oscc.testing.tiny import TEXT, tiny_program, tiny_stage
from oscc.verbs.compile import (
    CompileRequest,
    compile,
    compile_folder,
    sample_targets,
)
from oscc.verbs.simulate import SimulateOptions, simulate, simulate_folder
from oscc.verbs.verify import VerifyOptions, judge_all, verify, verify_folder
from oscc_backends.deck_files import write_sample

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


# Simulators: their runs are made up, the circuit's are real.


def program_of_four() -> Program:
    return tiny_program(tiny_stage(substeps=2, dwell_periods=10, gain_rad=1.0))


def simulated(
    program: Program, error: object, moved: object, *, gate: bool = True
) -> Callable[[str], Observables]:
    """Runner whose ngspice is off by `error` and moves by `moved` at half the step."""
    circuit = simulate(program, "circuit")
    index = np.array([[1, 2], [3, 0]])
    ends: FloatArray = circuit.arrays[f"{NAME}.raw.end_rad"][[6, 12]]
    off = ends + np.array(error, dtype=float)[:, None]
    arrays = {
        f"{NAME}.phase": off[:, -1],
        f"{NAME}.index": index,
        f"{NAME}.raw.end_rad": off,
    }
    if gate:
        half = off + np.array(moved, dtype=float)[:, None]
        arrays[f"{NAME}.raw.half_step_rad"] = half
    ngspice = Observables(
        "ngspice", program.digest(), arrays, {"ideal_elements": {"B": 2}}
    )

    def run(engine: str) -> Observables:
        return {"circuit": circuit, "ngspice": ngspice}[engine]

    return run


SPICE = VerifyOptions(levels=("spice:ngspice",))


def test_a_simulator_that_agrees_and_converged_passes() -> None:
    program = program_of_four()
    verdict = judge_all(program, simulated(program, [3e-3, -4e-3], [1e-3, 0]), SPICE)
    (level,) = verdict.levels
    assert (level.level, level.engine, level.reference) == (
        "spice",
        "ngspice",
        "circuit",
    )
    assert level.rms_rad == pytest.approx(np.sqrt(12.5) * 1e-3)
    assert (level.passed, level.targets, level.tolerance_rad) == (True, 2, 5e-3)
    (entry,) = verdict.convergence
    assert (entry.passed, entry.change_rad) == (True, pytest.approx(1e-3))
    assert verdict.causes["discretisation"]["max_rad"] == pytest.approx(4e-3)
    assert verdict.ideal_elements == {"B": 2}
    assert verdict.exit_status == 0


def test_a_simulator_that_is_off_fails() -> None:
    program = program_of_four()
    verdict = judge_all(program, simulated(program, [9e-3, 9e-3], [0, 0]), SPICE)
    assert verdict.exit_status == 1
    assert verdict.levels[0].reason == "9 mrad rms, 5 asked"


@pytest.mark.parametrize("error", [1e-3, 9e-3])
def test_what_did_not_converge_offers_no_number(error: float) -> None:
    program = program_of_four()
    run = simulated(program, [error, error], [0.0, 2e-3])
    verdict = judge_all(program, run, SPICE)
    (level,) = verdict.levels
    assert (level.passed, level.rms_rad, level.worst) == (None, None, None)
    assert level.reason == "halving the step moves 1 of 2 targets by up to 2.00 mrad"
    assert verdict.convergence[0].unconverged == ((NAME, 3, 0),)
    assert (verdict.passed, verdict.exit_status) == (False, 4)
    assert str(verdict).splitlines()[-1].startswith("INCONCLUSIVE   spice (ngspice): ")


def test_a_run_without_a_gate_offers_no_number() -> None:
    program = program_of_four()
    verdict = judge_all(program, simulated(program, [0, 0], [0, 0], gate=False), SPICE)
    assert verdict.levels[0].passed is None
    assert "run at one step only" in verdict.levels[0].reason
    assert verdict.exit_status == 4


def test_under_a_probe_simulators_are_judged_more_strictly() -> None:
    program = tiny_program(
        tiny_stage(substeps=1, dwell_periods=10, update="probe", model_update="euler")
    )
    run = simulated(program, [8e-4, 8e-4], [0, 0])
    (level,) = judge_all(program, run, SPICE).levels
    assert (level.tolerance_rad, level.passed) == (1e-3, True)


@pytest.mark.parametrize(
    ("error", "status"), [(ToolError("no ngspice"), 3), (UndecidedError("lost"), 4)]
)
def test_a_level_that_could_not_run_is_neither_pass_nor_fail(
    error: OsccError, status: int
) -> None:
    program = program_of_four()
    whole = simulated(program, [0, 0], [0, 0])

    def run(engine: str) -> Observables:
        if engine == "ngspice":
            raise error
        if engine in ("ir", "phase"):
            return simulate(program, engine)
        return whole(engine)

    options = VerifyOptions(levels=("ir", "spice:ngspice", "circuit"))
    verdict = judge_all(program, run, options)
    found = levels(verdict)
    assert (found["ir"].passed, found["circuit"].passed) == (True, True)
    assert (found["spice"].passed, found["spice"].reason) == (None, str(error))
    assert (verdict.passed, verdict.exit_status) == (False, status)


def test_a_missing_simulator_is_status_3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OSCC_NGSPICE", "/nowhere/ngspice")
    verdict = verify(program_of_four(), options=SPICE)
    assert verdict.exit_status == 3
    assert "ngspice cannot run" in verdict.levels[0].reason


def test_a_request_that_is_wrong_is_no_verdict() -> None:
    """Too much injection is status 2, whatever level finds it."""
    stage = tiny_stage(gain_rad=60.0, substeps=1, dwell_periods=3)
    with pytest.raises(RequestError, match="Use more periods or substeps"):
        verify(tiny_program(stage))


def test_a_wrong_digital_layer_is_the_integrators_gap() -> None:
    program = tiny_program()
    stage = program.stages[0]
    wrong = replace(stage, digital_rad=stage.digital_rad + 0.25)
    verdict = verify(program.replace(stages=(wrong,)))
    assert levels(verdict)["ir"].passed is False
    assert verdict.causes["integrator_gap"]["rms_rad"] == pytest.approx(0.25)


def gnucap_run(build: Path, targets: str) -> None:
    simulate_folder(build, "gnucap", SimulateOptions(targets=targets))


def judged(build: Path, targets: str | int | None) -> int:
    """Targets that the level of gnucap was judged on."""
    options = SimulateOptions(targets=targets)
    verdict = verify_folder(build, VerifyOptions(("spice:gnucap",), simulate=options))
    return int(verdict.levels[0].targets)


@pytest.mark.gnucap
def test_a_run_of_other_targets_is_not_judged_in_the_place_of_those_asked_for(
    build: Path,
) -> None:
    gnucap_run(build, "1,1")
    assert judged(build, "1,1") == 2  # one in each stage
    assert judged(build, "0,0;2,2") == 4
    assert judged(build, "2,2") == 4  # more than asked for is at hand
    assert judged(build, 3) == 6


def test_the_sample_is_what_is_judged_unless_told_otherwise(build: Path) -> None:
    from oscc.verbs.verify import _complete

    program = BuildFolder.open(build).program()
    every = sample_targets(program)
    arrays: dict[str, Any] = {}
    for stage in program.stages:
        index = every[stage.name]
        arrays |= {
            f"{stage.name}.index": index,
            f"{stage.name}.phase": np.zeros(len(index)),
            f"{stage.name}.raw.half_step_rad": np.zeros((len(index), 1)),
        }
    whole = Observables("ngspice", program.digest(), arrays, {})
    assert _complete(whole, program, VerifyOptions())
    cut = {key: value[:1] for key, value in arrays.items()}
    one = Observables("ngspice", program.digest(), cut, {})
    assert not _complete(one, program, VerifyOptions())


def test_ideal_elements_are_those_of_the_decks_where_no_simulator_ran(
    build: Path,
) -> None:
    from oscc.verbs.energy import energy_folder

    assert energy_folder(build).ideal_elements is None
    program = BuildFolder.open(build).program()
    index = write_sample(program, {NAME: np.array([[3, 1]])}, build)
    assert index["ideal_elements"]["G"] > 0
    assert verify_folder(build).ideal_elements == index["ideal_elements"]
    assert energy_folder(build).ideal_elements == index["ideal_elements"]


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
