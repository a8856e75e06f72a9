"""The gap by cause: sums telescope, each step has one cause, known sizes come back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oscc.arrays import FloatArray
from oscc.ir import Program
from oscc.ladder.gap import CAUSES, causes, phase_cause
from oscc.observables import Observables
from oscc.testing.tiny import tiny_program, tiny_stage

NAME = "layer.0.coupling"


def seen(program: Program, engine: str, phases: FloatArray) -> Observables:
    return Observables(engine, program.digest(), {f"{NAME}.phase": phases}, {})


def ladder(
    program: Program, integrator: float, update: float, averaging: float
) -> dict[str, Observables]:
    """Levels that are off by constants, so that every cause has a known size."""
    digital = program.stages[0].digital_rad
    return {
        "ir": seen(program, "ir", digital + integrator),
        "phase": seen(program, "phase", digital + integrator + update),
        "circuit": seen(program, "circuit", digital + integrator + update + averaging),
    }


def test_each_step_has_its_cause_and_its_size() -> None:
    program = tiny_program()
    found = causes(program, ladder(program, 0.25, -0.5, 0.125))
    assert list(found) == ["integrator_gap", "averaging", "unexplained"]
    for name, size in zip(found, (0.25, 0.125, 0.5), strict=True):
        assert found[name]["rms_rad"] == pytest.approx(size, rel=1e-12)
        assert found[name]["max_rad"] == pytest.approx(size, rel=1e-12)


def test_the_steps_add_up_to_the_whole_gap() -> None:
    """circuit - digital = integrator + update + averaging, target by target."""
    program = tiny_program()
    random = np.random.default_rng(1)
    digital = program.stages[0].digital_rad
    steps = [random.standard_normal((4, 4)) for _ in range(3)]
    levels = [digital + sum(steps[: k + 1]) for k in range(3)]
    runs = {
        name: seen(program, name, phases)
        for name, phases in zip(("ir", "phase", "circuit"), levels, strict=True)
    }
    found = causes(program, runs)
    sizes = [
        found[n]["rms_rad"] for n in ("integrator_gap", "unexplained", "averaging")
    ]
    for size, step in zip(sizes, steps, strict=True):
        assert size == pytest.approx(np.sqrt(np.mean(step**2)), rel=1e-12)
    whole = runs["circuit"].phase(NAME) - digital
    assert np.abs(whole - sum(steps)).max() < 1e-12


@pytest.mark.parametrize(
    ("model", "update", "cause"),
    [
        ("flow", "flow", "unexplained"),
        ("euler", "flow", "euler_gap"),
        ("euler", "probe", "probe_bias"),
        ("flow", "probe", "euler_gap"),
    ],
)
def test_what_separates_phase_from_ir(model: str, update: str, cause: str) -> None:
    stage = tiny_stage(model_update=model, update=update)
    assert phase_cause(stage) == cause
    program = tiny_program(stage)
    assert cause in causes(program, ladder(program, 0.0, 0.1, 0.0))


def test_levels_that_did_not_run_leave_their_cause_out() -> None:
    program = tiny_program()
    runs = ladder(program, 0.1, 0.1, 0.1)
    assert causes(program, {}) == {}
    assert list(causes(program, {"ir": runs["ir"]})) == ["integrator_gap"]
    del runs["ir"]
    assert list(causes(program, runs)) == ["averaging"]


def test_discretisation_is_what_simulators_add_dwell_by_dwell() -> None:
    program = tiny_program()
    runs = ladder(program, 0.0, 0.0, 0.0)
    ends = np.arange(32.0).reshape(16, 2)
    circuit = runs["circuit"]
    runs["circuit"] = replace(
        circuit, arrays={**circuit.arrays, f"{NAME}.raw.end_rad": ends}
    )
    arrays = {
        f"{NAME}.phase": np.zeros(1),
        f"{NAME}.index": np.array([[2, 3]]),
        f"{NAME}.raw.end_rad": ends[11:12] + np.array([0.3, -0.4]),
    }
    runs["ngspice"] = Observables("ngspice", program.digest(), arrays, {})
    found = causes(program, runs)["discretisation"]
    assert found["rms_rad"] == pytest.approx(np.sqrt((0.09 + 0.16) / 2))
    assert found["max_rad"] == pytest.approx(0.4)


def test_every_cause_is_one_of_the_contract() -> None:
    assert set(CAUSES) == {
        *("euler_gap", "integrator_gap", "probe_bias", "averaging", "harmonics"),
        *("discretisation", "quantisation", "pruning", "mismatch", "noise"),
        *("loading", "unexplained"),
    }
