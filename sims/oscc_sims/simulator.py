"""One deck through one SPICE program: success is judged by the data, never by status.

ngspice ends with status 0 after a division by zero or a floating node, and gnucap
whatever happens. So a run counts only if the program ended by itself, its log names no
fault, the vectors asked for are there, finite and bounded, and time reached the end.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from oscc.config import environment
from oscc.errors import ToolError
from oscc_netlists.circuit import Circuit
from oscc_netlists.element import Dc, VoltageSource
from oscc_sims.gnucap_output import faults, read_table
from oscc_sims.process import Children, Finished
from oscc_sims.rawfile import Plot, transient

DECK_FILE, RAW_FILE = "deck.cir", "out.raw"
LARGEST_OF_SUPPLY = 100.0
_NGSPICE_FAULT = re.compile(
    r"error|abort|singular|too small|failed|unknown|can't|no such", re.IGNORECASE
)
_HARMLESS = re.compile(r"spinit|no compatibility mode|code model", re.IGNORECASE)


class SimulatorFault(Exception):
    """A run that gives no number: what was wrong, with the log and the time reached.

    Args:
        reason: One line.
        log: What the program printed.
        reached_s: Time that the run reached; None where nothing came back.
    """

    def __init__(
        self, reason: str, log: str = "", reached_s: float | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.log = log
        self.reached_s = reached_s


def program_path(dialect: str) -> str | None:
    """Path of the simulator's program, None where it is not found."""
    found = environment()
    return shutil.which(found.ngspice if dialect == "ngspice" else found.gnucap)


def version(dialect: str) -> str:
    """Version that the program states of itself.

    Raises:
        ToolError: it is missing, or says nothing that looks like its version.
    """
    path = program_path(dialect)
    if path is None:
        wanted = getattr(environment(), dialect)
        raise ToolError(
            f"The program `{wanted}` is not found. Install it "
            f"(`apt-get install {dialect}`) or set OSCC_{dialect.upper()}."
        )
    with Children() as children:
        done = children.run([path, "--version"], {}, timeout_s=20)
    if "plugin not found" in done.output + done.errors:
        raise ToolError(
            f"`{path}` lacks its plug-ins and cannot run a deck. Install them: "
            "apt-get install gnucap-default-plugins0."
        )
    pattern = r"ngspice-(\S+)" if dialect == "ngspice" else r"main version: \S* ?(\S+)"
    said = re.search(pattern, done.output + done.errors)
    if said is None:
        raise ToolError(f"`{path} --version` names no version of {dialect}.")
    return said[1]


class Runnable(Protocol):
    """A deck of any kind, as far as a simulator is concerned."""

    @property
    def circuit(self) -> Circuit:
        """The deck as data."""

    @property
    def text(self) -> str:
        """The deck as text."""

    @property
    def dialect(self) -> str:
        """What the text is written in."""


Runner: TypeAlias = Callable[[Children, Runnable, float], Plot]


@dataclass(frozen=True, slots=True)
class Simulator:
    """A simulator that is there: its name, its version, how it runs a deck.

    Args:
        name: `ngspice`, `gnucap` or `pyspice`.
        version: As it states it.
        run: Waveforms of a deck within a time limit [s]; raises `SimulatorFault`.
    """

    name: str
    version: str
    run: Runner


def open_simulator(dialect: str) -> Simulator:
    """The program of a dialect.

    Raises:
        ToolError: it is missing or cannot run.
    """
    known = version(dialect)
    path = str(program_path(dialect))

    def run(children: Children, deck: Runnable, timeout_s: float) -> Plot:
        return run_deck(children, deck, path, timeout_s=timeout_s)

    return Simulator(dialect, known, run)


def run_deck(
    children: Children, deck: Runnable, program: str, *, timeout_s: float
) -> Plot:
    """Waveforms of a deck.

    Args:
        program: Path of the simulator that reads the deck's dialect.

    Raises:
        SimulatorFault: the run failed in any way.
        ToolError: the program cannot be started.
    """
    if deck.dialect == "ngspice":
        arguments = [program, "-n", "-b", "-r", RAW_FILE, DECK_FILE]
    else:
        arguments = [program, "-b", DECK_FILE]
    files = {DECK_FILE: deck.text}
    done = children.run(arguments, files, outputs=[RAW_FILE], timeout_s=timeout_s)
    return read_run(deck, done)


def read_run(deck: Runnable, done: Finished) -> Plot:
    """Waveforms of a finished run.

    Raises:
        SimulatorFault: see the module.
    """
    log = f"{done.output[-4000:] if deck.dialect == 'ngspice' else ''}{done.errors}"
    if deck.dialect == "gnucap":
        head, _, tail = done.output.partition("#Time")
        log = f"{head}{tail[-2000:]}{done.errors}"
    if done.timed_out:
        raise SimulatorFault(
            f"stopped by the time limit after {done.wall_s:.0f} s", log
        )
    found = _faults(deck, done)
    try:
        plot = _plot(deck, done)
    except ToolError as error:
        raise SimulatorFault(found or str(error), log) from error
    reached = float(plot.column("time")[-1])
    if found or done.status != 0:
        reason = found or f"ended with status {done.status}"
        raise SimulatorFault(reason, log, reached)
    check_waveforms(deck, plot, log)
    return plot


def check_waveforms(deck: Runnable, plot: Plot, log: str = "") -> None:
    """Refuse waveforms that are cut short, not finite or out of bounds.

    Raises:
        SimulatorFault: see above.
    """
    time = plot.column("time")
    reached = float(time[-1])
    wanted = deck.circuit.transient.stop_s
    if (np.diff(time) < 0).any() or not np.isfinite(plot.values).all():
        raise SimulatorFault("returned values that are not finite", log, reached)
    if reached < wanted - 2 * deck.circuit.transient.step_s:
        raise SimulatorFault(
            f"stopped at {reached * 1e6:.4g} of {wanted * 1e6:.4g} us", log, reached
        )
    bound = LARGEST_OF_SUPPLY * _supply_V(deck)
    for vector in deck.circuit.vectors:
        size = float(np.abs(plot.column(str(vector))).max())
        if vector.kind == "v" and size > bound:
            raise SimulatorFault(f"{vector} reached {size:.3g} V", log, reached)


def _supply_V(deck: Runnable) -> float:
    levels = [
        abs(e.wave.level)
        for e in deck.circuit.elements()
        if isinstance(e, VoltageSource) and isinstance(e.wave, Dc)
    ]
    return max(levels, default=1.0)


def _faults(deck: Runnable, done: Finished) -> str:
    if deck.dialect == "gnucap":
        return "; ".join(faults(done.output.partition("#Time")[0] + done.errors)[:3])
    lines = (done.output + "\n" + done.errors).splitlines()
    bad = [
        line.strip()
        for line in lines
        if _NGSPICE_FAULT.search(line) and not _HARMLESS.search(line)
    ]
    return "; ".join(bad[:3])


def _plot(deck: Runnable, done: Finished) -> Plot:
    wanted = tuple(str(vector) for vector in deck.circuit.vectors)
    if deck.dialect == "gnucap":
        return read_table(done.output, wanted)
    if RAW_FILE not in done.files:
        raise ToolError("ended without a raw file")
    plot = transient(done.files[RAW_FILE])
    # ngspice names the current of source v_supply `i(v_supply)`, in lower case
    for name in wanted:
        plot.column(name)
    return plot
