"""Engine `ngspice`: the plain smooth-cell deck in ngspice (level 4)."""

from __future__ import annotations

from oscc_sims.spice_engine import SpiceEngine


class NgspiceEngine(SpiceEngine):
    """ngspice as a child process for each deck; it also hands out the energies."""

    name = "ngspice"
    dialect = "ngspice"
