"""Engines by name, opened on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from oscc.checks import nearest
from oscc.errors import RequestError

BUILT_IN = {
    "phase": "oscc_sims.phase:PhaseEngine",
    "circuit": "oscc_sims.circuit:CircuitEngine",
    "ngspice": "oscc_sims.ngspice:NgspiceEngine",
    "gnucap": "oscc_sims.gnucap:GnucapEngine",
    "pyspice": "oscc_sims.pyspice:PySpiceEngine",
}

SIMULATORS = ("ngspice", "gnucap")
"""Engines that run decks of sampled targets, started at the circuit engine's phases."""


def engine(name: str) -> Any:
    """A new engine of a name.

    Raises:
        RequestError: there is none of that name.

    Example:
        >>> engine("phase").available()
        (True, 'built in')
    """
    if name not in BUILT_IN:
        raise RequestError(
            f"There is no engine `{name}`; there are {', '.join(BUILT_IN)}."
            f"{nearest(name, BUILT_IN)}"
        )
    module, attribute = BUILT_IN[name].split(":")
    return getattr(import_module(module), attribute)()
