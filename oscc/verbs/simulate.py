"""Run an engine on a program, or on a build folder."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from oscc.arrays import IntArray
from oscc.build import BuildFolder
from oscc.errors import RequestError, ToolError
from oscc.files import dump_json, write_atomic
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc.observables import Observables
from oscc.observables import save as save_observables
from oscc.verbs.simulate_cells import list_cells, simulate_cells

WHOLE = ("ir", "phase", "circuit")
"""Engines that run every target of a program; the others run decks of a sample."""


@dataclass(frozen=True, slots=True)
class SimulateOptions:
    """How an engine is run.

    Args:
        stages: Stages to run; None takes all.
        targets: Sampled targets of a simulator: a number a stage, `all`, or a list of
            `TOKEN,COORDINATE`; by stage, token and coordinate of each in an array
            (M, 2), or the rows of pair cells, (M,); None takes the program's sample.
        fidelity: What the decks hold; None takes the program's.
        jobs: Processes or threads; no result depends on it.
        timeout_s: Longest time of one simulator run.
        gate: Run every deck a second time at half the step.
        decks: Folder that keeps the decks, None keeps none.
    """

    stages: Collection[str] | None = None
    targets: int | str | Collection[str] | Mapping[str, IntArray] | None = None
    fidelity: str | None = None
    jobs: int = 1
    timeout_s: float = 600.0
    gate: bool = True
    decks: Path | None = None


def simulate(
    program: Program,
    engine: str = "circuit",
    *,
    start: Observables | None = None,
    options: SimulateOptions = SimulateOptions(),
) -> Observables:
    """Observables of an engine.

    Args:
        program: What to run.
        engine: `ir`, `phase`, `circuit`, `ngspice` or `gnucap`.
        start: Circuit observables that simulators start from; made where they miss.
        options: Stages, targets, processes, limits.

    Raises:
        RequestError: an unknown engine, stage or target.
        ToolError: a simulator is missing or failed.
        UndecidedError: an engine could not reach its accuracy.
    """
    _require_some_stage(program, options)
    if engine in WHOLE:
        _require_all_targets(engine, options)
    if engine == "ir":
        from oscc.ir.interpret import run

        return run(program)
    if engine == "phase":
        from oscc_backends import phase as phase_backend
        from oscc_sims.phase import PhaseEngine

        artefact = phase_backend.build(program, stages=options.stages)
        return PhaseEngine().run(artefact)
    if engine == "circuit":
        from oscc_backends import circuit as circuit_backend
        from oscc_sims.circuit import CircuitEngine

        network = circuit_backend.build(program, stages=options.stages)
        return CircuitEngine().run(network, threads=options.jobs)
    return _simulator(program, engine, start, options)


def _require_some_stage(program: Program, options: SimulateOptions) -> None:
    if options.stages is not None and not list(options.stages):
        names = ", ".join(stage.name for stage in program.stages)
        raise RequestError(f"No stage was asked for; the program has {names}.")


def _require_all_targets(engine: str, options: SimulateOptions) -> None:
    if options.targets not in (None, "all"):
        raise RequestError(
            f"Engine {engine} always runs every target; a choice of targets is for the "
            "simulators."
        )


def _simulator(
    program: Program,
    name: str,
    start: Observables | None,
    options: SimulateOptions,
) -> Observables:
    from oscc_backends.deck_files import deck_fidelity
    from oscc_sims.registry import engine as open_engine

    runner = open_engine(name)
    there, detail = runner.available()
    if not there:
        raise ToolError(f"{name} cannot run: {detail}")
    if program.of_cells:
        return simulate_cells(program, name, options)
    targets = chosen_targets(program, options)
    if start is None:
        start = simulate(program, "circuit", options=replace(options, targets=None))
    seen: Observables = runner.run(
        program,
        targets,
        start,
        fidelity=options.fidelity or deck_fidelity(program.stages[0]),
        jobs=options.jobs,
        timeout=options.timeout_s,
        decks_dir=options.decks,
        gate=options.gate,
    )
    return _with_correlations(program, runner, seen, options)


def _with_correlations(
    program: Program, runner: Any, seen: Observables, options: SimulateOptions
) -> Observables:
    """The run with scores and logits from decks of their tanks, where it has any."""
    from oscc.device.card_file import card_from_mapping
    from oscc_sims import correlate_spice

    if not program.correlations or options.stages is not None:
        return seen
    arrays = correlate_spice.run(
        card_from_mapping(program.device, "the program's device card"),
        program.correlations,
        runner.open(),
        runner.dialect,
        gate=options.gate,
        jobs=options.jobs,
        timeout_s=options.timeout_s,
        decks_dir=None if options.decks is None else options.decks.parent / "branches",
    )
    return replace(seen, arrays={**seen.arrays, **arrays})


def chosen_targets(program: Program, options: SimulateOptions) -> dict[str, IntArray]:
    """Token and coordinate of the targets that a simulator runs, by stage.

    Raises:
        RequestError: a target that is not in the program, or a malformed list.
    """
    from oscc.verbs.compile import sample_targets

    wanted = options.targets
    stages = [s for s in program.stages if _asked(s, options.stages, program)]
    if isinstance(wanted, Mapping):
        return {s.name: wanted[s.name] for s in stages if s.name in wanted}
    if wanted is None or isinstance(wanted, int) or str(wanted).isdigit():
        count = None if wanted is None else int(str(wanted))
        if count is not None and count < 1:
            raise RequestError(
                f"A simulator runs 1 target a stage or more, but {count} were asked "
                "for."
            )
        sample = sample_targets(program, count)
        return {stage.name: sample[stage.name] for stage in stages}
    if wanted == "all":
        return {s.name: s.target_index for s in stages}
    listed = wanted.split(";") if isinstance(wanted, str) else list(wanted)
    return {s.name: _parse(listed, s) for s in stages}


def _asked(stage: Stage, names: Collection[str] | None, program: Program) -> bool:
    for name in names or ():
        program.stage(name)
    return names is None or stage.name in names


def _parse(listed: Collection[str], stage: Stage) -> IntArray:
    out, first = [], stage.begins
    tokens, coordinates = stage.grid
    for entry in listed:
        parts = str(entry).split(",")
        if len(parts) != 2 or not all(p.strip().isdigit() for p in parts):
            raise RequestError(
                f"Target {entry!r} must be TOKEN,COORDINATE, such as 17,3; several are "
                "parted by `;`."
            )
        token, coordinate = int(parts[0]), int(parts[1])
        if not 0 <= token - first < tokens or coordinate >= coordinates:
            rows = f"its {tokens} tokens" if not first else f"its tokens from {first}"
            raise RequestError(
                f"stage {stage.name}: target {entry} is not among {rows} "
                f"and {coordinates} coordinates."
            )
        out.append((token, coordinate))
    return np.array(sorted(set(out)), dtype=np.int64)


def simulate_folder(
    build: Path, engine: str, options: SimulateOptions = SimulateOptions()
) -> Observables:
    """Run an engine on a build folder and keep what it saw under `sim/ENGINE`.

    Raises:
        RequestError: not a build folder, or observables of another program in it.
        ToolError: a simulator is missing or failed.
        UndecidedError: an engine could not reach its accuracy.
    """
    folder = BuildFolder.open(build)
    with folder.locked():
        program = folder.program()
        return simulate_into(folder, program, engine, options)


def simulate_into(
    folder: BuildFolder, program: Program, engine: str, options: SimulateOptions
) -> Observables:
    """Run an engine and write its files; the folder is held by the caller."""
    from oscc_sims.registry import BUILT_IN

    start, decks = None, None
    if engine in BUILT_IN and engine not in WHOLE:
        start = None if program.of_cells else _start(folder, program, options)
        decks = folder.path / "sim" / engine / "decks"
        options = replace(options, decks=decks)
    began = time.perf_counter()
    seen = simulate(program, engine, start=start, options=options)
    wall = time.perf_counter() - began
    save_observables(seen, folder.observables_path(engine))
    if decks is not None:
        from oscc_backends.deck_files import list_run

        if program.of_cells:
            list_cells(folder.path, program, seen)
        else:
            list_run(folder.path, seen)
    write_atomic(
        folder.path / "sim" / engine / "run.json",
        dump_json(_run_facts(program, seen, wall, options)),
    )
    folder.refresh_manifest()
    return seen


def _start(
    folder: BuildFolder, program: Program, options: SimulateOptions
) -> Observables:
    """The circuit run that simulators start from, made where it misses a stage."""
    found = folder.observables("circuit", program)
    wanted = options.stages or [stage.name for stage in program.stages]
    if found is not None and set(wanted) <= set(found.stages):
        return found
    whole = replace(options, targets=None, stages=None)
    return simulate_into(folder, program, "circuit", whole)


def _run_facts(
    program: Program, seen: Observables, wall: float, options: SimulateOptions
) -> Mapping[str, Any]:
    from oscc.ir.plan import total_periods

    targets = {
        stage.name: seen.targets(stage.name)
        for stage in program.stages
        if stage.name in seen.stages
    }
    periods = sum(
        count * total_periods(program.stage(name)) for name, count in targets.items()
    )
    return {
        "format": "oscc.run/1",
        "engine": seen.engine,
        "program": seen.program,
        "wall_s": wall,
        "jobs": options.jobs,
        "targets": targets,
        "oscillator_periods": periods,
        "facts": dict(seen.facts),
    }
