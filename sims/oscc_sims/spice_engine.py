"""Runs every dwell of sampled targets as decks in one simulator.

Each dwell starts at the phase that the circuit engine recorded for it, so that a
simulator is judged substep by substep, over P and over 2P periods. One deck holds one
target; decks run side by side in processes of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from oscc.arrays import FloatArray, IntArray
from oscc.checks import require_shape
from oscc.device.card import Card
from oscc.errors import RequestError, ToolError
from oscc.ir.plan import dwells
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc.observables import Observables
from oscc_backends.spice import prepare
from oscc_netlists.circuit import largest_count
from oscc_netlists.settings import Settings, default_settings
from oscc_netlists.timing import Timing
from oscc_sims.calibration import calibrate
from oscc_sims.simulator import Simulator, open_simulator
from oscc_sims.spice_energy import PARTS, balance_error
from oscc_sims.spice_jobs import Bench, Job, Reading, run_all

DEFAULT_TIMEOUT_S = 300.0


class SpiceEngine:
    """One simulator on the decks of sampled targets; the subclass names it."""

    name = ""
    dialect = ""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or default_settings(self.dialect)

    def open(self) -> Simulator:
        """The simulator, where it can run.

        Raises:
            ToolError: it is missing or cannot run.
        """
        return open_simulator(self.dialect)

    def available(self) -> tuple[bool, str]:
        """Whether the simulator can run, with its version or the reason why not."""
        try:
            return True, self.open().version
        except ToolError as error:
            return False, str(error)

    def run(
        self,
        program: Program,
        targets: Mapping[str, IntArray],
        start: Observables,
        *,
        fidelity: str = "pairwise",
        jobs: int = 1,
        timeout: float = DEFAULT_TIMEOUT_S,
        decks_dir: Path | None = None,
        gate: bool = False,
    ) -> Observables:
        """Every dwell of the sampled targets.

        Args:
            program: The program.
            targets: Token and coordinate of each target by stage, shape (M, 2).
            start: What the circuit engine saw: `STAGE.raw.start_rad` gives the phase
                at which each dwell starts.
            fidelity: `pairwise` or `summed`.
            jobs: Decks that run side by side.
            timeout: Time limit of one deck, [s].
            decks_dir: Folder that takes every deck; failed ones go to `failed` beside.
            gate: Also run every dwell with finer settings.

        Returns:
            `STAGE.index` (M, 2), `STAGE.phase` (M,), `STAGE.raw.start_rad` and
            `STAGE.raw.end_rad` (M, D), with `gate` also `STAGE.raw.half_step_rad`;
            from ngspice the energies of all dwells by part, each (M,) [J].

        Raises:
            ToolError: the simulator is missing, or any deck failed; the failed deck
                and its log are kept.
            RequestError: `start` is of another program or lacks a stage.
        """
        simulator = self.open()
        prepared = prepare(program)
        if start.program != prepared.digest:
            raise RequestError(
                "The start phases are of another program. Simulate the circuit again."
            )
        kinds = (False, True) if gate else (False,)
        work: list[Job] = []
        for name, index in targets.items():
            work += _jobs(program.stage(name), index, start, kinds)
        timings = self._timings(prepared.card, simulator, kinds, timeout)
        rest = (simulator, timings, fidelity, timeout, decks_dir)
        seen = run_all(Bench(prepared, self.dialect, *rest), work, jobs)
        arrays: dict[str, Any] = {}
        facts: dict[str, Any] = self._stated() | {
            "version": simulator.version,
            "fidelity": fidelity,
            "decks": len(work),
            "period_s": timings[False].period_s,
            "ideal_elements": largest_count(reading.ideal for reading in seen),
        }
        for name, index in targets.items():
            every = zip(work, seen, strict=True)
            found = [(job, reading) for job, reading in every if job.stage == name]
            arrays |= _arrays(program.stage(name), index, found)
            facts[name] = _facts(found)
        return Observables(self.name, prepared.digest, arrays, facts)

    def _timings(
        self,
        card: Card,
        simulator: Simulator,
        kinds: Sequence[bool],
        timeout_s: float,
    ) -> dict[bool, Timing]:
        """Free run of the card with the plain and, if asked for, the finer settings."""
        settings = {False: self.settings, True: self.settings.finer()}
        return {
            finer: calibrate(card, settings[finer], simulator, timeout_s=timeout_s)
            for finer in kinds
        }

    def _stated(self) -> dict[str, Any]:
        steps = {"steps_per_period": self.settings.steps_per_period}
        return {"settings": dict(self.settings.options) | steps}


def _jobs(
    stage: Stage, index: IntArray, start: Observables, kinds: Sequence[bool]
) -> list[Job]:
    require_shape("targets", np.asarray(index), (-1, 2), axes="(M, 2)")
    begins = start.arrays.get(f"{stage.name}.raw.start_rad")
    plan = dwells(stage)
    wanted = (stage.targets, len(plan))
    if begins is None or begins.shape != wanted:
        raise RequestError(
            f"stage {stage.name}: the start phases must have shape {wanted}, but are "
            f"{'missing' if begins is None else begins.shape}. "
            "Simulate the circuit again."
        )
    rows = stage.rows_of(index)
    return [
        Job(
            stage.name,
            row,
            column,
            dwell,
            int(token),
            int(coordinate),
            float(begins[rows[row], column]),
            finer,
        )
        for finer in kinds
        for row, (token, coordinate) in enumerate(np.asarray(index))
        for column, dwell in enumerate(plan)
    ]


def _arrays(
    stage: Stage, index: IntArray, found: Sequence[tuple[Job, Reading]]
) -> dict[str, Any]:
    shape = (len(index), len(dwells(stage)))
    start, end, fine = (np.full(shape, np.nan) for _ in range(3))
    energy = np.zeros((len(index), len(PARTS)))
    for job, reading in found:
        place = (job.row, job.column)
        (fine if job.finer else end)[place] = reading.end_rad
        start[place] = job.start_rad
        if reading.energy_J is not None:
            energy[job.row] += reading.energy_J
    name = stage.name
    out: dict[str, Any] = {
        f"{name}.index": np.array(index, dtype=np.int64).reshape(-1, 2),
        f"{name}.phase": combined_rad(stage, np.asarray(index), end),
        f"{name}.raw.start_rad": start,
        f"{name}.raw.end_rad": end,
    }
    if np.isfinite(fine).all() and fine.size:
        out[f"{name}.raw.half_step_rad"] = fine
    if energy.any():
        out |= {
            f"{name}.{part}": np.ascontiguousarray(energy[:, column])
            for column, part in enumerate(PARTS)
        }
    return out


def combined_rad(stage: Stage, index: IntArray, end: FloatArray) -> FloatArray:
    """Phase of a stage from the read-outs of its dwells, shape (M,) [rad].

        extrapolated  2 psi(2P) - psi(P) of the last substep
        probe         phi0 + (psi(+epsilon) - psi(-epsilon)) / (2 epsilon)

    Args:
        index: Token and coordinate, shape (M, 2).
        end: Read-out of every dwell, shape (M, D).
    """

    def last(read: FloatArray) -> FloatArray:
        if stage.scheme == "extrapolated":
            return np.asarray(2 * read[:, -1] - read[:, -2])
        return np.asarray(read[:, -1])

    if stage.update == "flow":
        return last(end)
    plus, minus = np.split(end, 2, axis=1)
    moved = (last(plus) - last(minus)) / (2 * stage.probe_epsilon)
    return np.asarray(stage.phi0_rad.ravel()[stage.rows_of(index)] + moved)


def _facts(found: Sequence[tuple[Job, Reading]]) -> dict[str, Any]:
    energies = [reading.energy_J for _, reading in found]
    errors = [abs(balance_error(energy)) for energy in energies if energy is not None]
    return {
        "ideal_elements": largest_count(reading.ideal for _, reading in found),
        "balance_error": max(errors, default=None),
    }
