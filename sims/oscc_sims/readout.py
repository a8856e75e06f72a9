"""Phases from waveforms: crossings counted against the simulator's own free run."""

from __future__ import annotations

import numpy as np

from oscc.arrays import FloatArray
from oscc.device.card import Card
from oscc.phases import TURN
from oscc_netlists.deck import Deck
from oscc_netlists.settings import Settings
from oscc_netlists.timing import REFERENCE_PERIODS, Timing, level_V
from oscc_sims.crossings import upward
from oscc_sims.rawfile import Plot
from oscc_sims.simulator import SimulatorFault

PERIOD_SPREAD = 1e-3


def level_crossings(card: Card, deck: Deck, plot: Plot) -> FloatArray:
    """Upward crossings of the level by the deck's node, [s]."""
    return upward(plot.column("time"), plot.column(f"v({deck.node})"), level_V(card))


def free_timing(card: Card, deck: Deck, plot: Plot) -> Timing:
    """Timing of a reference run: a straight line through its crossings.

    Raises:
        SimulatorFault: too few crossings, or periods that differ among themselves.
    """
    times = level_crossings(card, deck, plot)
    settings: Settings = deck.timing.settings
    if times.size < REFERENCE_PERIODS:
        raise SimulatorFault(
            f"the free reference crossed {times.size} times, "
            f"not {REFERENCE_PERIODS} or more"
        )
    # the first crossing still feels the start: leave it out of the line
    count = np.arange(times.size)
    period, first = np.polyfit(count[1:], times[1:], 1)
    spread = float(np.abs(times - (first + period * count)).max()) / float(period)
    if spread > PERIOD_SPREAD:
        raise SimulatorFault(
            f"crossings of the free reference scatter by {spread:.2g} of a period"
        )
    return Timing(settings, float(period), float(first), calibrated=True)


def increment_rad(card: Card, deck: Deck, plot: Plot, largest_rad: float) -> float:
    """Unwrapped phase that the pull added over the dwell, [rad].

    Both the target and the free run start alike, so the k-th crossing of one belongs
    to the k-th of the other: no start phase and no unwrapping guess enters.

    Args:
        largest_rad: Bound of the increment, from the drive.

    Raises:
        SimulatorFault: fewer crossings than expected, crossings after the gate that
            are no period apart, or an increment beyond its bound.
    """
    timing, window = deck.timing, deck.window
    assert window is not None
    times = level_crossings(card, deck, plot)
    late = np.nonzero(times > window.close_s)[0]
    if late.size < 2:
        raise SimulatorFault(
            f"the target crossed {late.size} times after the gate, not twice or more"
        )
    leads = TURN * late - timing.omega * (times[late] - timing.first_s)
    spread = float(leads.max() - leads.min())
    if spread > TURN * PERIOD_SPREAD:
        raise SimulatorFault(
            f"periods after the gate differ by {spread:.2g} rad: a false switching"
        )
    found = float(leads.mean())
    if abs(found) > largest_rad + 0.5:
        raise SimulatorFault(
            f"the target moved by {found:.3g} rad, beyond the bound "
            f"{largest_rad:.3g} rad: crossings are missing or too many"
        )
    return found
