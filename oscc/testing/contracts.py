"""Contract tests: what every backend, engine and family must keep.

Each takes the thing under test, so that a third party can call it on its own:

    from oscc.testing.contracts import check_engine
    def test_mine():
        check_engine(MyEngine(), my_backend.build, tolerance_rad=1e-3)

A broken contract raises AssertionError with a sentence that says which.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from oscc.arrays import FloatArray
from oscc.errors import RequestError
from oscc.ir import Program, Stage
from oscc.ir.interpret import field, interpret
from oscc.ir.views import pairs
from oscc.observables import Observables
from oscc.testing.flat import modes_stage
from oscc.testing.tiny import tiny_program, tiny_stage


class Build(Protocol):
    """Function `build` of a backend."""

    def __call__(
        self, program: Program, *, stages: Collection[str] | None = None
    ) -> Any:
        """Artefact of all stages, or of those named."""


class Engine(Protocol):
    """Engine that runs a whole artefact."""

    name: str

    def available(self) -> tuple[bool, str]:
        """Whether it can run, with its version or the reason why not."""

    def run(self, artefact: Any) -> Observables:
        """Observables of every target."""


def _require(holds: bool, sentence: str) -> None:
    if not holds:
        raise AssertionError(sentence)


def two_stage_program() -> Program:
    """Stages of unequal shapes, harmonics and routes; moderate drives.

    Example:
        >>> [stage.targets for stage in two_stage_program().stages]
        [6, 16]
    """
    return tiny_program(
        tiny_stage(3, tokens=3, coordinates=2, gain_rad=1.0),
        tiny_stage(
            4,
            tokens=4,
            harmonics=(1,),
            routes=("present",),
            gain_rad=1.0,
            name="layer.1.coupling",
        ),
    )


def check_backend(build: Build, program: Program | None = None) -> None:
    """A backend names its program, keeps stages apart, repeats itself.

    Args:
        build: Function of the backend.
        program: What to build; two small stages without it.

    Raises:
        AssertionError: the contract is broken.
    """
    chosen = program or two_stage_program()
    names = [stage.name for stage in chosen.stages]
    artefact = build(chosen)
    _require(artefact.program == chosen.digest(), "The artefact must name its program.")
    found = [problem.stage for problem in artefact.problems]
    _require(found == names, f"Problems must be the stages {names}, but are {found}.")
    last = build(chosen, stages=[names[-1]])
    _require(
        [problem.stage for problem in last.problems] == names[-1:],
        "`stages` must select stages by name.",
    )
    for stage, problem in zip(chosen.stages, artefact.problems, strict=True):
        _require(
            bool((problem.phi0_rad == stage.phi0_rad.ravel()).all()),
            f"{stage.name}: start phases must be those of the stage, token by token.",
        )
    _require(_same(artefact, build(chosen)), "Building twice must give equal problems.")
    _refuses_unknown_stage(build, chosen)


def _same(one: Any, other: Any) -> bool:
    pairs_of = zip(one.problems, other.problems, strict=True)
    return all(
        np.array_equal(getattr(a, name), getattr(b, name))
        for a, b in pairs_of
        for name in ("drive", "phi0_rad", "detuning_rad", "harmonics", "index")
    )


def _refuses_unknown_stage(build: Build, program: Program) -> None:
    try:
        build(program, stages=["no such stage"])
    except RequestError as error:
        _require("no such stage" in str(error), "The message must name the stage.")
        return
    raise AssertionError("An unknown stage must be refused with a RequestError.")


def check_engine(engine: Engine, build: Build, *, tolerance_rad: float) -> None:
    """An engine gives every stage its phases, repeats itself and keeps the laws.

    Args:
        engine: The engine; it must be available.
        build: Function of the backend that makes its artefacts.
        tolerance_rad: Largest rms distance from the interpreter that it claims.

    Raises:
        AssertionError: the contract is broken.
    """
    check_interface(engine)
    program = two_stage_program()
    seen = check_observables(engine, build, program)
    listed = tiny_program(modes_stage(gain_rad=np.linspace(-1.0, 1.0, 12)))
    both = zip(
        (program, listed), (seen, check_observables(engine, build, listed)), strict=True
    )
    for made, found in both:
        for stage in made.stages:
            wanted = stage.on_grid(interpret(stage))
            _near(found.phase(stage.name), wanted, tolerance_rad, "interpreter")
    again = engine.run(build(program))
    for name, array in seen.arrays.items():
        _require(
            array.tobytes() == again.arrays[name].tobytes(),
            f"Running twice must give the same bits, but `{name}` differs.",
        )
    for name, law in LAWS.items():
        law(lambda stage: _run_one(engine, build, stage), tolerance_rad, name)


def check_interface(engine: Engine) -> None:
    """Name and availability are there, cheap to ask for twice.

    Raises:
        AssertionError: the contract is broken.
    """
    _require(engine.name.isidentifier(), "`name` must be one plain word.")
    there, detail = engine.available()
    _require(isinstance(there, bool) and bool(detail), "`available` needs a detail.")
    _require(engine.available() == (there, detail), "`available` must repeat itself.")


def check_observables(engine: Engine, build: Build, program: Program) -> Observables:
    """Observables belong to the program and have its shapes.

    Returns:
        What the engine saw.

    Raises:
        AssertionError: the contract is broken.
    """
    artefact = build(program)
    before = [np.array(problem.drive) for problem in artefact.problems]
    seen = engine.run(artefact)
    _require(seen.engine == engine.name, "Observables must carry the engine's name.")
    _require(seen.program == program.digest(), "Observables must name their program.")
    names = sorted(stage.name for stage in program.stages)
    _require(sorted(seen.stages) == names, f"Stages must be {names}: {seen.stages}.")
    for stage in program.stages:
        phase = seen.phase(stage.name)
        _require(
            phase.shape == stage.grid and phase.dtype == np.float64,
            f"{stage.name}: phases must be float64 of shape {stage.grid}, "
            f"but are {phase.dtype} of {phase.shape}.",
        )
    for problem, drive in zip(artefact.problems, before, strict=True):
        _require(
            np.array_equal(problem.drive, drive), "An engine must not write its input."
        )
    return seen


Run = Callable[[Stage], FloatArray]


def _run_one(engine: Engine, build: Build, stage: Stage) -> FloatArray:
    return engine.run(build(tiny_program(stage))).phase(stage.name)


def _near(
    found: FloatArray, wanted: FloatArray, tolerance_rad: float, law: str
) -> None:
    rms = float(np.sqrt(np.mean((found - wanted) ** 2)))
    _require(rms <= tolerance_rad, f"{law}: off by {rms:.3g} rad, not {tolerance_rad}.")


def _law_stage() -> Stage:
    return tiny_stage(7, tokens=3, coordinates=4, gain_rad=1.0)


def _zero_gain(run: Run, tolerance_rad: float, law: str) -> None:
    stage = replace(_law_stage(), gain_rad=np.zeros((3, 4)))
    _near(run(stage), stage.phi0_rad, tolerance_rad, law)


def _turn_of_a_source(run: Run, tolerance_rad: float, law: str) -> None:
    stage = _law_stage()
    theta = np.array(stage.theta_rad)
    theta[1, 2] += 2.0 * np.pi
    turned = replace(stage, theta_rad=theta)
    _near(run(turned), run(stage), tolerance_rad, law)


def _turn_of_a_target(run: Run, tolerance_rad: float, law: str) -> None:
    stage = _law_stage()
    start = np.array(stage.phi0_rad)
    start[2, 1] += 4.0 * np.pi
    turned = replace(stage, phi0_rad=start)
    wanted = np.array(run(stage))
    wanted[2, 1] += 4.0 * np.pi
    _near(run(turned), wanted, tolerance_rad, law)


def _rotation(run: Run, tolerance_rad: float, law: str) -> None:
    stage = _law_stage()
    turned = replace(
        stage, theta_rad=stage.theta_rad + 0.7, phi0_rad=stage.phi0_rad + 0.7
    )
    _near(run(turned), run(stage) + 0.7, 2.0 * tolerance_rad, law)


def _relabelling(run: Run, tolerance_rad: float, law: str) -> None:
    """Coordinates of one head change places."""
    stage = _law_stage()
    order = np.array([1, 0, 3, 2])
    moved = replace(
        stage,
        theta_rad=stage.theta_rad[:, order],
        phi0_rad=stage.phi0_rad[:, order],
        gain_rad=stage.gain_rad[:, order],
        couplings=tuple(
            replace(c, gamma=c.gamma[:, order], alpha_rad=c.alpha_rad[:, order])
            for c in stage.couplings
        ),
    )
    _near(run(moved), run(stage)[:, order], tolerance_rad, law)


LAWS: dict[str, Callable[[Run, float, str], None]] = {
    "zero gain is the identity": _zero_gain,
    "a turn of a source changes nothing": _turn_of_a_source,
    "a turn of a target is kept": _turn_of_a_target,
    "rotating all phases rotates the result": _rotation,
    "relabelling coordinates permutes the result": _relabelling,
}
"""What every engine keeps within its tolerance."""


def check_family(family: str, update: str) -> None:
    """A lowered family is its digital layer, causal, and the sum of its pairs.

    Args:
        family: A family that can be lowered.
        update: `flow` or `euler`.

    Raises:
        AssertionError: the contract is broken.
    """
    from oscc.lower import lower
    from oscc.testing.tiny import tiny_model
    from oscc.trace import trace

    model = tiny_model(family, update, seed=5, gain_rad=6.0)
    tokens = np.arange(6)
    device = tiny_program().device
    stages = lower(trace(model, tokens), device).stages
    changed = np.where(np.arange(6) == 4, 90, tokens)
    others = lower(trace(model, changed), device).stages
    for stage, other in zip(stages, others, strict=True):
        largest = np.abs(interpret(stage) - stage.digital_rad).max()
        _require(largest < 1e-6, f"{stage.name}: off by {largest:.3g} rad.")
        one, two = (s.on_grid(s.digital_rad) for s in (stage, other))
        _require(
            np.array_equal(two[:4], one[:4]),
            f"{stage.name}: a later symbol changed an earlier phase.",
        )
        _require(
            not np.array_equal(two[4:], one[4:]),
            f"{stage.name}: a symbol changed nothing at all.",
        )
        _pairs_sum_to_field(stage)


def _pairs_sum_to_field(stage: Stage) -> None:
    real, imaginary = field(stage)
    summed = np.zeros((len(stage.harmonics), stage.targets), dtype=np.complex128)
    theta = stage.theta_rad.ravel()
    for chunk in pairs(stage):
        slot = np.searchsorted(stage.harmonics, chunk.harmonic)
        angle = chunk.harmonic * theta[chunk.source] + chunk.frustration_rad
        np.add.at(summed, (slot, chunk.target), chunk.strength * np.exp(1j * angle))
    wanted = (real + 1j * imaginary).reshape(summed.shape)
    _require(
        float(np.abs(summed - wanted).max()) < 1e-12,
        f"{stage.name}: pairs do not sum to the factored form.",
    )
