"""Engine `circuit`: the event-driven exact circuit of the device card (level 3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from oscc.arrays import FloatArray
from oscc.device.card import Card
from oscc.device.card_file import card_from_mapping
from oscc.observables import Observables
from oscc_backends.artefact import CircuitArtefact, LockProblem, ScalarProblem
from oscc_sims import correlate_circuit, lock_circuit
from oscc_sims.circuit_dwell import ENERGY_PARTS
from oscc_sims.schemes import SchemeResult, run_probe, run_scheme


def solve(
    card: Card, problem: ScalarProblem, *, threads: int = 1, energy: bool = False
) -> tuple[FloatArray, tuple[SchemeResult, ...]]:
    """Phases of every target at the end of a stage, with the runs behind them.

    Args:
        card: Device card.
        problem: Targets of one stage.
        threads: Worker threads; the result does not depend on it.
        energy: Also integrate the energies of every dwell.

    Returns:
        Phases, shape (M,) [rad], and one run for a flow, two for a probe.

    Raises:
        RequestError: a target needs more injection than the card allows.
        UndecidedError: a target could not be followed to the end of a dwell.
    """
    shared: dict[str, Any] = {
        "scheme": problem.scheme,
        "substeps": problem.substeps,
        "dwell_periods": problem.dwell_periods,
        "threads": threads,
        "energy": energy,
        "detuning_rad": problem.detuning_rad if problem.detuning_rad.any() else None,
        "where": f"stage {problem.stage}",
    }
    start = problem.phi0_rad
    if problem.update == "flow":
        run = run_scheme(card, problem.drive, problem.harmonics, start, **shared)
        return run.phase_rad, (run,)
    probe = run_probe(
        card,
        problem.drive,
        problem.harmonics,
        start,
        epsilon=problem.probe_epsilon,
        **shared,
    )
    return probe.phase_rad, (probe.plus, probe.minus)


class CircuitEngine:
    """Engine of level 3; it needs nothing but numpy and numba."""

    name = "circuit"

    def available(self) -> tuple[bool, str]:
        """Whether the engine can run, with its version or the reason why not."""
        return True, "built in"

    def run(
        self, artefact: CircuitArtefact, *, threads: int = 1, energy: bool = True
    ) -> Observables:
        """Run every problem of an artefact.

        Raises:
            RequestError: a target needs more injection than the card allows.
            UndecidedError: a target could not be followed to the end of a dwell.
        """
        card = card_from_mapping(dict(artefact.device), "the program's device card")
        arrays: dict[str, Any] = {}
        facts: dict[str, Any] = {}
        for problem in artefact.problems:
            if isinstance(problem, LockProblem):
                locks = lock_circuit.solve(
                    card, problem, threads=threads, energy=energy
                )
                arrays |= lock_circuit.arrays(problem.stage, locks)
                facts[problem.stage] = lock_circuit.facts(problem, locks)
                continue
            phase, runs = solve(card, problem, threads=threads, energy=energy)
            shape = problem.grid
            name = problem.stage
            arrays[f"{name}.phase"] = phase.reshape(shape)
            arrays[f"{name}.raw.start_rad"] = _joined(runs, "start_rad")
            arrays[f"{name}.raw.end_rad"] = _joined(runs, "end_rad")
            if energy:
                arrays |= _energies(name, runs)
            facts[name] = {
                "targets": int(phase.size),
                "periods_in_all": sum(run.periods for run in runs),
                "injection_ratio": float(
                    max(run.injection_ratio.max() for run in runs)
                ),
                "fallback_targets": sum(run.fallback_lanes for run in runs),
            }
        for one in artefact.correlations:
            arrays[f"{one.name}.correlation"] = correlate_circuit.solve(card, one)
            facts[one.name] = correlate_circuit.facts(one)
        return Observables(self.name, artefact.program, arrays, facts)


def _joined(runs: tuple[SchemeResult, ...], name: str) -> FloatArray:
    return np.concatenate([getattr(run, name) for run in runs], axis=1)


def _energies(stage: str, runs: tuple[SchemeResult, ...]) -> dict[str, FloatArray]:
    """Energy of every target over all dwells of the stage, by part, each (M,) [J]."""
    every = np.concatenate(
        [run.energy_J for run in runs if run.energy_J is not None], 1
    )
    total = every.sum(axis=1)
    return {
        f"{stage}.{part}": np.ascontiguousarray(total[:, column])
        for column, part in enumerate(ENERGY_PARTS)
    }
