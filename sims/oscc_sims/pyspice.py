"""Engine `pyspice`: ngspice's library through PySpice, in a worker process a deck.

The optional extra `pyspice` (GPL-3). It reads the same deck text as the engine
`ngspice` and computes the same waveforms; it is a check of the embedding, not of the
physics.
"""

from __future__ import annotations

import importlib.util
import io
import sys
from importlib.metadata import version as package_version
from pathlib import Path

import numpy as np

from oscc.config import environment
from oscc.errors import ToolError
from oscc_sims import pyspice_worker
from oscc_sims.process import Children
from oscc_sims.rawfile import Plot
from oscc_sims.simulator import (
    DECK_FILE,
    Runnable,
    Simulator,
    SimulatorFault,
    check_waveforms,
)
from oscc_sims.spice_engine import SpiceEngine

TABLE_FILE = "table.npy"
MEND = 'Install it with: pip install "PySpice>=1.5" (GPL-3).'


def open_pyspice() -> Simulator:
    """PySpice as a simulator of ngspice decks.

    Raises:
        ToolError: the package is not installed.
    """
    if importlib.util.find_spec("PySpice") is None:
        raise ToolError(f"The package PySpice is not installed. {MEND}")
    return Simulator("pyspice", package_version("PySpice"), run_deck)


def run_deck(children: Children, deck: Runnable, timeout_s: float) -> Plot:
    """Waveforms of an ngspice deck, by a worker process.

    Raises:
        SimulatorFault: the run failed in any way.
        ToolError: the worker cannot be started.
    """
    wanted = [str(vector) for vector in deck.circuit.vectors]
    script = str(Path(pyspice_worker.__file__).resolve())
    # PySpice warns at its first import; an interpreter that makes warnings errors
    # would fail once and then never again
    command = [sys.executable, "-W", "default", script, DECK_FILE, TABLE_FILE, *wanted]
    done = children.run(
        command,
        {DECK_FILE: deck.text},
        outputs=[TABLE_FILE],
        timeout_s=timeout_s,
        environment={"NGSPICE_LIBRARY_PATH": environment().ngspice_library},
    )
    log = f"{done.output[-2000:]}{done.errors[-4000:]}"
    if done.timed_out:
        raise SimulatorFault(
            f"stopped by the time limit after {done.wall_s:.0f} s", log
        )
    if done.status != 0 or TABLE_FILE not in done.files:
        lines = [line for line in done.errors.splitlines() if line.strip()]
        last = lines[-1].strip() if lines else "no message"
        raise SimulatorFault(f"ended with status {done.status}: {last}", log)
    values = np.load(io.BytesIO(done.files[TABLE_FILE]), allow_pickle=False)
    plot = Plot("Transient Analysis", ("time", *wanted), values)
    check_waveforms(deck, plot, log)
    return plot


class PySpiceEngine(SpiceEngine):
    """PySpice on the ngspice decks of sampled targets."""

    name = "pyspice"
    dialect = "ngspice"

    def open(self) -> Simulator:
        """PySpice, where it is installed.

        Raises:
            ToolError: it is not.
        """
        return open_pyspice()
