"""Dialect writers, one file a simulator."""

from __future__ import annotations

from oscc.checks import require_choice
from oscc_netlists.circuit import Circuit
from oscc_netlists.dialects import gnucap, ngspice

DIALECTS = ("ngspice", "gnucap")


def write(circuit: Circuit, dialect: str) -> str:
    """Text of a deck in a dialect.

    Raises:
        RequestError: an unknown dialect, a number that is not finite, or an element
            that the simulator does not know.
    """
    require_choice("dialect", dialect, DIALECTS)
    writer = ngspice.write if dialect == "ngspice" else gnucap.write
    return writer(circuit)
