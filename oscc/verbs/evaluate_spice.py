"""SPICE on a drawn sample of what an evaluation ran, each dwell judged as by verify.

For every coupling step, windows are drawn evenly over the text, and in each of them a
target evenly over its tokens and coordinates; of pair cells one of those that their
dwell decides. The stages of these windows are kept as the closed loop ran them: on the
phases that the circuit gave the layers before. The loop goes on with the circuit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from oscc.arrays import FloatArray, IntArray
from oscc.checks import require_whole
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc.ladder.levels import LevelResult, compare, compare_dwells
from oscc.ladder.locks import compare_cells, decided_by_ratio
from oscc.ladder.table import closing_line
from oscc.observables import Observables
from oscc.seeds import stream
from oscc.verbs.simulate import WHOLE, SimulateOptions, simulate
from oscc.verbs.verify import VerifyOptions, cached, judge_all


@dataclass(frozen=True, slots=True)
class SpiceRequest:
    """SPICE on a sample of what an evaluation runs.

    Args:
        count: Targets of each coupling step, >= 1.
        simulator: One simulator, such as `gnucap`; all that are installed without it.
        simulate: Processes, time limit, and the folder that takes the decks.
    """

    count: int
    simulator: str = ""
    simulate: SimulateOptions = field(default_factory=SimulateOptions)

    def __post_init__(self) -> None:
        require_whole("count", self.count, least=1)
        from oscc.verbs.verify_levels import simulators_of

        simulators_of(self.simulator)


@dataclass(slots=True, eq=False)
class SpiceSample:
    """Stages of drawn windows, and the targets of each that are run as decks.

    Args:
        request: How many targets of each coupling step, and how they are run.
        windows: Windows of the evaluation, in all.
        seed: Seed of the draw.
    """

    request: SpiceRequest
    windows: int
    seed: int = 0
    stages: dict[str, Stage] = field(default_factory=dict)
    targets: dict[str, IntArray] = field(default_factory=dict)
    _passed: Counter[str] = field(default_factory=Counter)
    _drawn: dict[str, Counter[int]] = field(default_factory=dict)

    def keep(self, step: str, stage: Stage | None) -> None:
        """Take note of a step of the next window; kept if its window was drawn.

        Args:
            step: Name of the step, the same in every window.
            stage: What ran; None where the window had nothing to run.
        """
        window = self._passed[step]
        self._passed[step] += 1
        wanted = self._of_step(step)[window]
        if not wanted or stage is None:
            return
        index = _targets(stage, wanted, stream(self.seed, f"spice {step}", window + 1))
        if len(index):
            name = f"window.{window}.{step}"
            self.stages[name] = replace(stage, name=name)
            self.targets[name] = index

    def _of_step(self, step: str) -> Counter[int]:
        """How many targets each window gives of a step."""
        if step not in self._drawn:
            random = stream(self.seed, f"spice {step}")
            count = self.request.count
            drawn = random.choice(
                self.windows, size=count, replace=count > self.windows
            )
            self._drawn[step] = Counter(drawn.tolist())
        return self._drawn[step]


def _targets(stage: Stage, wanted: int, random: np.random.Generator) -> IntArray:
    """Some targets of a stage, evenly drawn, ascending: (token, coordinate), or rows.

    Of pair cells the rows of decided ones, shape (M,); of phases shape (M, 2).
    """
    of_cells = stage.readout == "coherence"
    pool = np.arange(stage.targets)
    if of_cells:
        pool = np.flatnonzero(decided_by_ratio(stage))
    count = min(wanted, pool.size)
    rows = np.sort(random.choice(pool, size=count, replace=False)).astype(np.int64)
    return rows if of_cells else np.asarray(stage.target_index[rows])


def judge_sample(sample: SpiceSample, **fields: Any) -> dict[str, Any]:
    """Run the sample in simulators, judge it, and say what each step showed.

    Args:
        sample: What the loop kept.
        fields: Of the program that holds its stages, such as `device`.

    Returns:
        The entry `spice` of evaluate.json.

    A simulator that is missing or failed, and a run that did not converge, are in the
    entry: what the loop found before is not lost.
    """
    request = sample.request
    if not sample.stages:
        why = "the drawn windows hold no pair that their dwell decides"
        return _entry(request, [], [], (4, f"INCONCLUSIVE   {why}; take more tokens"))
    made = Program(
        stages=tuple(sample.stages.values()),
        host_operations=(),
        tokens=np.zeros(0, dtype=np.int64),  # stages of many windows
        **fields,
    )
    seen: dict[str, Observables] = {}

    def run(engine: str) -> Observables:
        start = None if engine in WHOLE else runner("circuit")
        chosen = _options(sample, engine)
        _clear(chosen.decks)
        seen[engine] = simulate(made, engine, start=start, options=chosen)
        return seen[engine]

    runner = cached(run)
    level = f"spice:{request.simulator}" if request.simulator else "spice"
    verdict = judge_all(made, runner, VerifyOptions(levels=(level,)))
    converged = {entry.engine for entry in verdict.convergence if entry.passed}
    layers = [
        row
        for engine in seen
        if engine in converged
        for row in _by_step(made, seen[engine], runner("circuit"))
    ]
    outcome = (verdict.exit_status, closing_line(verdict))
    return _entry(request, verdict.levels, layers, outcome) | {
        "convergence": [entry.to_json() for entry in verdict.convergence]
    }


def _entry(
    request: SpiceRequest,
    levels: Sequence[LevelResult],
    layers: Sequence[Mapping[str, Any]],
    outcome: tuple[int, str],
) -> dict[str, Any]:
    """What evaluate.json holds of a sample; the outcome is exit status and sentence."""
    status, sentence = outcome
    return {
        "targets_a_step": request.count,
        "passed": status == 0,
        "exit_status": status,
        "sentence": sentence,
        "levels": [one.to_json() for one in levels],
        "convergence": [],
        "layers": list(layers),
    }


def _options(sample: SpiceSample, engine: str) -> SimulateOptions:
    """How one engine is run; a simulator on the drawn targets, decks in its folder."""
    options = sample.request.simulate
    if engine in WHOLE:
        return replace(options, targets=None, decks=None)
    folder = options.decks
    decks = None if folder is None else folder / engine / "decks"
    return replace(options, targets=sample.targets, decks=decks)


def _clear(decks: Path | None) -> None:
    """Remove the decks of an earlier sample, so that none stands beside this one's."""
    for path in () if decks is None else decks.glob("*.cir"):
        path.unlink()


def _by_step(
    program: Program, seen: Observables, circuit: Observables
) -> list[dict[str, Any]]:
    """Errors of every step over its windows, against the circuit and the digital."""
    errors = _cell_errors if program.of_cells else _phase_errors
    unit = "coherence" if program.of_cells else "rad"
    by_step: dict[str, list[tuple[FloatArray, FloatArray]]] = {}
    for name, pair in errors(program, seen, circuit).items():
        by_step.setdefault(name.split(".", 2)[2], []).append(pair)
    return [
        {
            "engine": seen.engine,
            "stage": step,
            "windows": len(pairs),
            "targets": sum(len(from_circuit) for from_circuit, _ in pairs),
            **_size([one for one, _ in pairs], "circuit", unit),
            **_size([other for _, other in pairs], "digital", unit),
        }
        for step, pairs in by_step.items()
    ]


def _phase_errors(
    program: Program, seen: Observables, circuit: Observables
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Of every dwell against the circuit, (M, D), and of the phase read, (M,)."""
    dwell_by_dwell = compare_dwells(program, seen, circuit)
    digital = compare(program, seen, lambda s: s.on_grid(s.digital_rad))
    return {
        one.stage: (one.error_rad, other.error_rad)
        for one, other in zip(dwell_by_dwell, digital, strict=True)
    }


def _cell_errors(
    program: Program, seen: Observables, circuit: Observables
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Of the coherence of decided cells, (M,) each."""
    above = compare_cells(
        program, seen, lambda s: np.asarray(circuit.arrays[f"{s.name}.coherence"])
    )
    digital = compare_cells(program, seen, _digital_coherence)
    return {
        one.stage: (one.error[one.decided], other.error[other.decided])
        for one, other in zip(above, digital, strict=True)
    }


def _digital_coherence(stage: Stage) -> FloatArray:
    assert stage.digital_coherence is not None
    return stage.digital_coherence


def _size(
    errors: Sequence[FloatArray], against: str, unit: str
) -> dict[str, float | None]:
    every = np.abs(np.concatenate([part.ravel() for part in errors]))
    empty = not every.size
    return {
        f"rms_{unit}_to_{against}": None
        if empty
        else float(np.sqrt(np.mean(every**2))),
        f"max_{unit}_to_{against}": None if empty else float(every.max()),
    }
