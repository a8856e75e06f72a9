"""One deck of one dwell as a job: build it, run it, read it, keep it where it fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from oscc.arrays import FloatArray
from oscc.errors import ToolError
from oscc.files import write_atomic
from oscc.ir.plan import Dwell
from oscc_backends.spice import Prepared, build_deck, deck_name, largest_move_rad
from oscc_netlists.circuit import ideal_elements
from oscc_netlists.deck import Deck
from oscc_netlists.timing import Timing
from oscc_sims.process import Children, side_by_side
from oscc_sims.readout import increment_rad
from oscc_sims.simulator import Simulator, SimulatorFault
from oscc_sims.spice_energy import dwell_energy_J


@dataclass(frozen=True, slots=True)
class Job:
    """One deck to run: where its result belongs, and what it needs.

    Args:
        stage: Name of the stage.
        row: Row of the target in the sample.
        column: Column of the dwell in the plan.
        dwell: The dwell.
        token: Token of the target.
        coordinate: Coordinate of the target.
        start_rad: Phase at which the gate opens.
        finer: Whether it belongs to the convergence run.
    """

    stage: str
    row: int
    column: int
    dwell: Dwell
    token: int
    coordinate: int
    start_rad: float
    finer: bool

    @property
    def where(self) -> str:
        """Target and dwell, for messages."""
        return (
            f"{self.stage}/{self.token}/{self.coordinate} "
            f"(substep {self.dwell.substep}, {self.dwell.periods} periods)"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Bench:
    """What all jobs of a run share.

    Args:
        prepared: The program with its card.
        dialect: What the decks are written in.
        simulator: What runs them.
        timings: Free run by whether the settings are the finer ones.
        fidelity: `pairwise` or `summed`.
        timeout_s: Time limit of one deck.
        folder: Folder that takes the decks, or None.
    """

    prepared: Prepared
    dialect: str
    simulator: Simulator
    timings: Mapping[bool, Timing]
    fidelity: str
    timeout_s: float
    folder: Path | None


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What one deck gave.

    Args:
        end_rad: Phase at the end of the dwell, unwrapped.
        energy_J: Energies by `spice_energy.PARTS`, shape (5,); None if not kept.
        ideal: Ideal elements of the deck by letter.
    """

    end_rad: float
    energy_J: FloatArray | None
    ideal: Mapping[str, int]


def run_all(bench: Bench, work: Sequence[Job], jobs: int) -> list[Reading]:
    """Every job, some side by side, results in the order of the jobs.

    The first failure stops the rest: nothing is reported of a run that is not whole.

    Raises:
        ToolError: a deck failed.
    """
    pieces = [partial(_run_with, bench, job) for job in work]
    return side_by_side(pieces, jobs)


def _run_with(bench: Bench, job: Job, children: Children) -> Reading:
    return run_one(bench, children, job)


def run_one(bench: Bench, children: Children, job: Job) -> Reading:
    """One deck from the IR to a phase.

    Raises:
        ToolError: it gave no number; deck and log are kept beside the decks.
    """
    wants_energy = bench.dialect == "ngspice" and not job.finer
    deck = build_deck(
        bench.prepared,
        job.stage,
        job.token,
        job.coordinate,
        job.dwell,
        phi0_rad=job.start_rad,
        fidelity=bench.fidelity,
        dialect=bench.dialect,
        timing=bench.timings[job.finer],
        energy=wants_energy,
    )
    name = deck_name(bench.prepared, deck, finer=job.finer)
    if bench.folder is not None:
        write_atomic(bench.folder / name, deck.text)
    card = bench.prepared.card
    stage = bench.prepared.program.stage(job.stage)
    bound = largest_move_rad(stage, job.token, job.coordinate, job.dwell)
    try:
        plot = bench.simulator.run(children, deck, bench.timeout_s)
        moved = increment_rad(card, deck, plot, bound)
        energy = dwell_energy_J(card, deck, plot) if wants_energy else None
    except SimulatorFault as fault:
        raise _failure(bench, job, deck, name, fault) from fault
    return Reading(job.start_rad + moved, energy, ideal_elements(deck.circuit))


def _failure(
    bench: Bench, job: Job, deck: Deck, name: str, fault: SimulatorFault
) -> ToolError:
    kept = ""
    if bench.folder is not None:
        place = bench.folder.parent / "failed" / name.removesuffix(".cir")
        write_atomic(place / "deck.cir", deck.text)
        write_atomic(place / "log.txt", f"{fault.reason}\n{fault.log}\n")
        kept = f" Deck and log: {place}"
    stop = deck.circuit.transient.stop_s * 1e6
    at = "" if fault.reached_s is None else f" at {fault.reached_s * 1e6:.4g}"
    at = f"{at} of {stop:.4g} us" if at else ""
    return ToolError(
        f"{bench.simulator.name} failed{at} for {job.where}: {fault.reason}. "
        f"No phase is reported.{kept}"
    )
