"""The coupling of pair cells, from the wanted accuracy, by trial in the circuit.

A strong coupling decides a pair in few periods, so that a cell costs little; but the
law dpsi/dt = Delta - K sin psi is of first order in it. Tried are cells below the edge
of the lock range, in a dwell that settles them, against the law itself.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from oscc.device.card import Card
from oscc.device.lock_cell import largest_ratio
from oscc.device.lock_law import phase_difference_rad
from oscc.errors import RequestError, UndecidedError

COUPLINGS = (0.04, 0.02, 0.01, 0.005)
"""Tried K/w0, strongest first: twice the coupling is half the periods."""

SHARE = 0.5
"""Of the accuracy: what the law of the cell may err by."""

EDGE = 0.95
"""Largest |x| that is tried; nearer to the edge an error is judged in x."""

_CELLS = 20
_PULL_RAD = 8 * np.pi  # settles x = EDGE to 1e-6


class Coupling(NamedTuple):
    """A coupling K/w0, with the largest error of its law in the cosine below `EDGE`.

    None where it was not tried.
    """

    rate: float
    law_error: float | None


def law_error(card: Card, rate: float, *, threads: int = 1) -> float:
    """Largest error of the circuit's cosine against the law, |x| <= `EDGE`.

    Args:
        card: Device card.
        rate: K/w0.
        threads: Worker threads; the result does not depend on it.

    Raises:
        RequestError: the card cannot carry the coupling, or reach the detunings.
        UndecidedError: a cell could not be followed.

    Example:
        >>> from oscc.device import load_card
        >>> 0.003 < law_error(load_card("vo2-two-state-5k5"), 0.02) < 0.005
        True
    """
    from oscc_backends.artefact import LockProblem
    from oscc_sims.lock_circuit import solve

    x = np.linspace(0.0, EDGE, _CELLS)
    periods = round(_PULL_RAD / (2 * np.pi * rate))
    pull = 2 * np.pi * rate * periods
    none = np.zeros((x.size, 3), dtype=np.int64)
    problem = LockProblem("trial of the coupling", x, pull, periods, none)
    found = solve(card, problem, threads=threads).reading.coherence
    return float(np.abs(found - np.cos(phase_difference_rad(x, pull))).max())


def choose_coupling(
    card: Card, accuracy: float, limit: float, *, threads: int = 1
) -> Coupling:
    """The strongest coupling whose law errs by at most `SHARE` of the accuracy.

    Args:
        card: Device card.
        accuracy: Wanted accuracy of a cosine.
        limit: Largest |x| of a pair that gets a cell, which the trim has to reach.
        threads: Worker threads; the result does not depend on it.

    Raises:
        RequestError: none does; the message names the best.
    """
    tried: list[tuple[float, float]] = []
    refused = ""
    for rate in COUPLINGS:
        if largest_ratio(card, rate) < limit:
            continue
        try:
            error = law_error(card, rate, threads=threads)
        except (RequestError, UndecidedError) as fault:
            refused = str(fault)
            continue
        if error <= SHARE * accuracy:
            return Coupling(rate, error)
        tried.append((error, rate))
    if not tried:
        raise RequestError(
            refused
            or f"card {card.name}: its trim does not reach {limit:g} lock ranges at "
            f"any coupling from {COUPLINGS[-1]:g} up. Lower compile.lock_margin."
        )
    least, rate = min(tried)
    raise RequestError(
        f"card {card.name}: no coupling of pair cells keeps their law to "
        f"{SHARE * accuracy:.2g} in cos, half of the accuracy; the nearest is K/w0 "
        f"{rate:g} with {least:.2g}. Ask for {_rounded_up(1e3 * least / SHARE)} mrad "
        "or more, or set compile.lock_coupling yourself."
    )


def _rounded_up(value: float) -> str:
    """Two figures, not below the value."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{math.ceil(value / unit) * unit:g}"
