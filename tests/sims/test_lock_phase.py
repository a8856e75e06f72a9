"""Lock stages in phase dynamics, against an integrator and the fixed points."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from oscc.ir.interpret import interpret
from oscc.observables import load, save
from oscc.testing.flat import cells_stage
from oscc.testing.tiny import tiny_program, tiny_stage
from oscc_backends import phase
from oscc_backends.lock import problem
from oscc_sims import lock_phase
from oscc_sims.null import NullEngine
from oscc_sims.phase import PhaseEngine
from oscc_sims.reference import ReferenceEngine, solve_locks

RATIO = np.concatenate([np.linspace(-1.6, 1.6, 33), [0.9999, 1.0001]])


def test_cells_end_where_the_interpreter_says() -> None:
    stage = cells_stage(RATIO, gain_rad=12.6)
    seen = lock_phase.solve(problem(stage))
    # the interpreter's tolerance is 1e-12 a step over some hundred steps
    np.testing.assert_allclose(seen.psi_rad, interpret(stage), atol=1e-9)


def test_read_out_is_that_of_the_reference() -> None:
    """The reference finds the passing of pi/2 as an event along the way."""
    for gain in (1.0, 6.3, 25.1):
        cells = problem(cells_stage(RATIO, gain_rad=gain))
        seen, slow = lock_phase.solve(cells), solve_locks(cells)
        assert np.array_equal(seen.locked, slow.locked)
        np.testing.assert_allclose(seen.coherence, slow.coherence, atol=1e-9)
        # settled phases tell x to sqrt(1 - x^2) of their own error
        np.testing.assert_allclose(seen.margin, slow.margin, atol=1e-8)


def test_margins_are_what_was_programmed() -> None:
    for gain in (0.5, 12.6, 100.0):
        seen = lock_phase.solve(problem(cells_stage(RATIO, gain_rad=gain)))
        np.testing.assert_allclose(seen.margin, 1 - np.abs(RATIO), atol=1e-10)


def test_settled_cells_have_the_digital_coherence() -> None:
    stage = cells_stage(RATIO, gain_rad=25.1)
    seen = lock_phase.solve(problem(stage))
    decided = seen.locked >= 0
    assert stage.digital_coherence is not None
    error = np.abs(seen.coherence - stage.digital_coherence)
    assert error[decided].max() < 0.01
    undecided = np.abs(np.abs(RATIO) - 1)[~decided]
    assert undecided.size == 4  # -1, 1 and the two beside 1
    assert undecided.max() < 0.01


def test_engines_of_phases_take_mixed_programs(tmp_path: Path) -> None:
    program = tiny_program(tiny_stage(), cells_stage(RATIO, gain_rad=12.6))
    artefact = phase.build(program)
    seen = PhaseEngine().run(artefact)
    assert set(seen.arrays) == {
        "layer.0.coupling.phase",
        *(f"layer.0.locks.{n}" for n in ("locked", "coherence", "margin")),
        "layer.0.locks.raw.psi_rad",
    }
    assert seen.arrays["layer.0.locks.locked"].dtype == np.int8
    assert sorted(seen.stages) == ["layer.0.coupling", "layer.0.locks"]
    path = tmp_path / "observables.safetensors"
    save(seen, path)
    for name, array in load(path).arrays.items():
        assert array.dtype == seen.arrays[name].dtype
        np.testing.assert_array_equal(array, seen.arrays[name])
    slow = ReferenceEngine().run(artefact)
    for name, array in seen.arrays.items():
        np.testing.assert_allclose(array, slow.arrays[name], atol=1e-8)
    null = NullEngine().run(artefact)
    assert (null.arrays["layer.0.locks.coherence"] == 1).all()
