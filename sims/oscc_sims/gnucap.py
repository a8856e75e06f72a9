"""Engine `gnucap`: the abrupt two-state deck in gnucap, a second opinion (level 4)."""

from __future__ import annotations

from oscc_sims.spice_engine import SpiceEngine


class GnucapEngine(SpiceEngine):
    """gnucap as a child process for each deck; it locates switching events."""

    name = "gnucap"
    dialect = "gnucap"
