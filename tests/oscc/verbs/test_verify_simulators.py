"""verify: levels of simulators, their gate, their targets, and a tile that fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oscc.arrays import FloatArray
from oscc.build import BuildFolder
from oscc.errors import OsccError, RequestError, ToolError, UndecidedError
from oscc.files import read_json
from oscc.ir import Program
from oscc.ladder.verdict import FORMAT
from oscc.observables import Observables
from oscc.testing.tiny import tiny_program, tiny_stage
from oscc.verbs.compile import (
    sample_targets,
)
from oscc.verbs.simulate import SimulateOptions, simulate, simulate_folder
from oscc.verbs.verify import VerifyOptions, judge_all, verify, verify_folder
from oscc_backends.deck_files import write_sample

NAME = "layer.0.coupling"


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
    assert level.reason == (
        "halving the step moves 1 of 2 targets by up to 2.00 mrad, most "
        f"{NAME} token 3 coordinate 0"
    )
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
    found = {one.level: one for one in verdict.levels}
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


@pytest.mark.parametrize("levels", [("ir", "phase"), ("ir",)])
def test_a_tile_that_cannot_run_costs_no_level(
    levels: tuple[str, ...], build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reason is told, the levels stand in verify.json, and the status is 3."""
    monkeypatch.setenv("OSCC_GNUCAP", "no-such-program")
    verdict = verify_folder(build, VerifyOptions(levels=levels, tile=True))
    assert [one.passed for one in verdict.levels] == [True] * len(levels)
    assert not verdict.passed
    assert verdict.exit_status == 3
    assert "gnucap" in str(verdict).splitlines()[-1]
    written = read_json(build / "verify.json", FORMAT)
    assert set(written["fidelity_gap"]) == {"reason"}
    assert "loading" not in written["causes"]
