"""Run the ladder on a program or a build folder, and judge it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oscc.arrays import FloatArray
from oscc.build import BuildFolder
from oscc.errors import OsccError, RequestError, ToolError, UndecidedError
from oscc.ir.interpret import run as run_ir
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc.ladder.convergence import Convergence, gate, run_twice
from oscc.ladder.correlations import (
    EXACT_NAT,
    has_correlations,
    judge_correlations,
    require_converged,
    summed,
)
from oscc.ladder.gap import causes
from oscc.ladder.levels import LevelResult, StageErrors, compare, compare_dwells, judge
from oscc.ladder.locks import lock_causes
from oscc.ladder.verdict import Verdict
from oscc.observables import Observables
from oscc.verbs import verify_cells
from oscc.verbs.closed_loop import ClosedLoop
from oscc.verbs.closed_loop_locks import LockClosedLoop
from oscc.verbs.ideal import ideal_elements
from oscc.verbs.simulate import (
    WHOLE,
    SimulateOptions,
    chosen_targets,
    simulate,
    simulate_into,
)
from oscc.verbs.verify_levels import LEVELS, Level, levels_of

if TYPE_CHECKING:
    from oscc.checkpoint import LoadedCheckpoint

DEFAULT_LEVELS = ("ir", "phase", "circuit")

Runner = Callable[[str], Observables]


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """What is judged, and how strictly.

    Args:
        levels: `ir`, `phase`, `circuit`, `spice` or `spice:ENGINE`.
        tolerance_rad: Largest rms error by level, in the place of the program's own.
        tolerance_coherence: The same for pair cells, in their coherence.
        simulate: How engines are run.
        tile: Whether the oscillator tile of fidelity `oscillators` is run too.
        model: The checkpoint, for a closed loop; None judges the open loop.
    """

    levels: Sequence[str] = DEFAULT_LEVELS
    tolerance_rad: Mapping[str, float] = field(default_factory=dict)
    tolerance_coherence: Mapping[str, float] = field(default_factory=dict)
    simulate: SimulateOptions = field(default_factory=SimulateOptions)
    tile: bool = False
    model: LoadedCheckpoint | None = None


def verify(
    program: Program,
    seen: Observables | Collection[Observables] = (),
    options: VerifyOptions = VerifyOptions(),
) -> Verdict:
    """Verdict of a program; engines whose observables miss are run.

    Args:
        program: What was compiled.
        seen: Observables at hand.
        options: Levels, tolerances, how engines are run.

    Raises:
        RequestError: an unknown level, or observables of another program.
    """
    given = [seen] if isinstance(seen, Observables) else list(seen)
    cache = {one.engine: one for one in given}
    for one in given:
        if one.program != program.digest():
            raise RequestError(
                f"The {one.engine} run was made from program {one.program[:8]}, "
                f"this one is {program.digest()[:8]}. Simulate it again."
            )
        _require_all_stages(program, one)

    def run(engine: str) -> Observables:
        start = run("circuit") if engine not in WHOLE else None
        if engine not in cache:
            cache[engine] = simulate(
                program, engine, start=start, options=_simulation(engine, options)
            )
        return cache[engine]

    return judge_all(program, run, options)


def _require_all_stages(program: Program, seen: Observables) -> None:
    missing = [s.name for s in program.stages if s.name not in seen.stages]
    if missing:
        raise RequestError(
            f"The {seen.engine} run holds no stage {missing[0]}, so it cannot be "
            "judged as a whole. Simulate all stages."
        )


def judge_all(
    program: Program,
    run: Runner,
    options: VerifyOptions,
    folder: BuildFolder | None = None,
) -> Verdict:
    """Judge every level that was asked for, with engines run on demand.

    Raises:
        RequestError: an unknown level, or none at all.
    """
    listed = [
        one for word in options.levels for one in levels_of(word, program, options)
    ]
    wanted = list(dict.fromkeys(listed))
    if not wanted:
        raise RequestError(f"No level was asked for; there are {', '.join(LEVELS)}.")
    loop: ClosedLoop | LockClosedLoop | None = None
    if options.model is not None:
        kind = LockClosedLoop if program.of_cells else ClosedLoop
        loop = kind(program, options.model, options.simulate.jobs)
        run = cached(loop.run)
    results: list[LevelResult] = []
    gates: list[Convergence] = []
    used: dict[str, Observables] = {}
    for one in wanted:
        result, entry = _judge_one(program, one, run, used)
        results.append(result)
        results += _correlated(program, one, run)
        gates += [entry] if entry is not None else []
    tile = _tile(program, options) if _wants_tile(program, options, results) else None
    return Verdict(
        program=program.digest(),
        levels=tuple(results),
        causes=_all_causes(program, used, tile),
        convergence=tuple(gates),
        fidelity=program.stages[0].fidelity,
        ideal_elements=ideal_elements(program, used.values(), tile=tile, folder=folder)
        or {},
        fidelity_gap=tile,
        loop="open" if loop is None else "closed",
        model=None if loop is None else loop.agreement(list(loop.logits)[-1]),
        notes=program.notes,
    )


def cached(run: Runner) -> Runner:
    """The runner, asked once for each engine."""
    kept: dict[str, Observables] = {}

    def once(engine: str) -> Observables:
        if engine not in kept:
            kept[engine] = run(engine)
        return kept[engine]

    return once


def _wants_tile(
    program: Program, options: VerifyOptions, results: Sequence[LevelResult]
) -> bool:
    """Whether a tile is run: asked for, or what the program is and gnucap judges."""
    if program.of_cells:  # every deck of theirs holds real cells already
        return False
    real = any(stage.fidelity == "oscillators" for stage in program.stages)
    ran = any(one.engine == "gnucap" and one.passed is not None for one in results)
    return options.tile or (real and ran)


def _tile(program: Program, options: VerifyOptions) -> dict[str, Any]:
    """Facts of the tile; where it could not run, the reason alone.

    What the levels showed is not lost with it.
    """
    from oscc.verbs.tile import tile_facts

    try:
        return tile_facts(program, options.simulate)
    except ToolError as error:
        return {"reason": str(error)}


def _all_causes(
    program: Program, used: Mapping[str, Observables], tile: Mapping[str, Any] | None
) -> dict[str, dict[str, float | None]]:
    if program.of_cells:
        return dict(lock_causes(program, used))
    found: dict[str, dict[str, float | None]] = {**causes(program, used)}  # type: ignore[dict-item]
    if tile is not None and "rms_rad" in tile:
        found["loading"] = {"rms_rad": tile["rms_rad"], "max_rad": tile["max_rad"]}
    return found


def _correlated(program: Program, one: Level, run: Runner) -> list[LevelResult]:
    """Verdict of scores and logits, where oscillators form them."""
    if not program.correlations:
        return []
    exact = one.level in ("ir", "phase")
    asked = EXACT_NAT if exact else one.tolerance_rad
    try:
        above = None if one.reference == "digital" else run(one.reference)
        seen = run(one.engine)
        if one.level == "spice":
            require_converged(program, seen, asked)
        result = judge_correlations(
            program,
            seen,
            lambda c: c.digital if above is None else summed(above, c),
            names=(one.level, one.engine, one.reference),
            tolerance=asked,
        )
        return [result]
    except (ToolError, UndecidedError) as error:
        return [replace(_not_run(one, error), tolerance_rad=None, tolerance_nat=asked)]


def _judge_one(
    program: Program, one: Level, run: Runner, used: dict[str, Observables]
) -> tuple[LevelResult, Convergence | None]:
    from oscc_backends.spice import why_no_deck

    try:
        if program.of_cells:
            return verify_cells.judge_level(
                program,
                (one.level, one.engine, one.reference),
                run,
                used,
                one.tolerance_rad,
            )
        if one.level == "spice" and why_no_deck(program):
            raise UndecidedError(why_no_deck(program))
        errors, seen = _errors(program, one, run, used)
        result = judge(
            errors,
            level=one.level,
            engine=one.engine,
            reference=one.reference,
            tolerance_rad=one.tolerance_rad,
        )
    except (ToolError, UndecidedError) as error:
        return _not_run(one, error), None
    if one.level != "spice":
        return result, None
    return _gated(program, one, seen, result)


def _gated(
    program: Program, one: Level, seen: Observables, result: LevelResult
) -> tuple[LevelResult, Convergence | None]:
    """The level's result where its run converged; else no number is offered."""
    entry = gate(program, seen, tolerance_rad=one.tolerance_rad)
    if entry is None:
        fault = (
            "it was run at one step only, so that its convergence is not known. "
            "Simulate it again with the gate."
        )
        return _not_run(one, UndecidedError(fault)), None
    if not entry.passed:
        return _not_run(one, UndecidedError(entry.sentence)), entry
    return result, entry


def _not_run(one: Level, error: OsccError) -> LevelResult:
    return LevelResult(
        level=one.level,
        engine=one.engine,
        reference=one.reference,
        tolerance_rad=None if one.cells else one.tolerance_rad,
        tolerance_coherence=one.tolerance_rad if one.cells else None,
        passed=None,
        reason=str(error),
        blame=error.exit_status,
    )


def _errors(
    program: Program, one: Level, run: Runner, used: dict[str, Observables]
) -> tuple[list[StageErrors], Observables]:
    seen = used[one.engine] = run(one.engine)
    if one.level == "spice":
        used["circuit"] = run("circuit")
        return compare_dwells(program, seen, used["circuit"]), seen
    if one.reference == "digital":
        return compare(program, seen, _digital), seen
    above = used[one.reference] = run(one.reference)
    return compare(program, seen, lambda stage: above.phase(stage.name)), seen


def _digital(stage: Stage) -> FloatArray:
    return stage.on_grid(stage.digital_rad)


def verify_folder(build: Path, options: VerifyOptions = VerifyOptions()) -> Verdict:
    """Verdict of a build folder, written to its verify.json.

    Raises:
        RequestError: not a build folder, an unknown level, or observables of another
            program.
    """
    folder = BuildFolder.open(build)
    with folder.locked():
        program = folder.program()
        run = cached(lambda engine: _from_folder(folder, program, engine, options))
        verdict = judge_all(program, run, options, folder)
        folder.write_json("verify.json", verdict.to_json())
    return verdict


def _from_folder(
    folder: BuildFolder, program: Program, engine: str, options: VerifyOptions
) -> Observables:
    """Observables at hand, run anew where they miss or come from another program."""
    try:
        seen = folder.observables(engine, program)
    except RequestError:
        seen = None
    if seen is not None and _complete(seen, program, options):
        return seen
    if engine == "ir":
        return run_ir(program)
    return simulate_into(folder, program, engine, _simulation(engine, options))


def _simulation(engine: str, options: VerifyOptions) -> SimulateOptions:
    """How an engine is run: every stage, and the choice of targets for simulators."""
    targets = None if engine in WHOLE else options.simulate.targets
    return replace(options.simulate, stages=None, targets=targets)


def _complete(seen: Observables, program: Program, options: VerifyOptions) -> bool:
    """Whether a run can be judged: every stage, from simulators at two steps.

    A simulator must have run the targets that are asked for, or more of them.
    """
    if set(seen.stages) != {stage.name for stage in program.stages}:
        return False
    if seen.engine in WHOLE:
        return has_correlations(program, seen, gate=False)
    simulation = _simulation(seen.engine, options)
    if program.of_cells:
        return verify_cells.complete(seen, program, simulation)
    if not has_correlations(program, seen, gate=options.simulate.gate):
        return False
    wanted = chosen_targets(program, simulation)
    for name, index in wanted.items():
        at_hand = {tuple(row) for row in seen.arrays[f"{name}.index"].tolist()}
        if not {tuple(row) for row in index.tolist()} <= at_hand:
            return False
    return not options.simulate.gate or run_twice(seen)
