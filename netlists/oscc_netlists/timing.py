"""Timing of a deck: the simulator's own free period and crossing phase.

Carriers, gate and read-out of a deck are all built from these, so that the period bias
of a simulator drops out. They come from one free reference deck for each card, dialect
and settings; the closed form stands in only for decks that are never judged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from oscc.device.card import Card
from oscc.device.piecewise import INSULATING, METALLIC, period_s, segments
from oscc.phases import TURN
from oscc_netlists.settings import Settings

REFERENCE_PERIODS = 24
READ_PERIODS = 2.25


@dataclass(frozen=True, slots=True)
class Timing:
    """Free run of a card's cell in one simulator.

    Args:
        settings: The simulator's settings.
        period_s: Free period.
        first_s: Time of the first upward crossing of the level, by the fit.
        calibrated: Whether a simulator gave them, rather than the closed form.
    """

    settings: Settings
    period_s: float
    first_s: float
    calibrated: bool

    @property
    def omega(self) -> float:
        """Angular frequency of the free run, [rad/s]."""
        return TURN / self.period_s

    def lead_s(self, card: Card) -> float:
        """Time from the crossing of the level to phase zero, at v_imt."""
        return rise_s(card)

    def phase_rad(self, card: Card, time_s: float) -> float:
        """Phase of the free run at a time, [rad]."""
        return self.omega * (time_s - self.first_s - self.lead_s(card))

    def gate_s(self, card: Card, phi0_rad: float) -> float:
        """First time after a whole period at which the free run has a phase, [s]."""
        earliest = self.period_s
        turn = math.fmod(phi0_rad - self.phase_rad(card, earliest), TURN)
        return earliest + (turn + TURN if turn < 0 else turn) / self.omega


def level_V(card: Card) -> float:
    """Level at which crossings are read, midway between the thresholds."""
    return (card.v_imt_V + card.v_mit_V) / 2


def rise_s(card: Card) -> float:
    """Time that a free insulating cell takes from the level to v_imt, [s].

    Exact in every simulator: a resistor and a capacitor, no event in between.
    """
    piece = segments(card)
    v_inf = float(piece.v_inf_V[INSULATING])
    ratio = (v_inf - level_V(card)) / (v_inf - card.v_imt_V)
    return float(piece.tau_s[INSULATING]) * math.log(ratio)


def closed_form(card: Card, settings: Settings) -> Timing:
    """Timing of the ideal cell from the start of a deck; not calibrated.

    Example:
        >>> from oscc.device import load_card
        >>> from oscc_netlists.settings import default_settings
        >>> card = load_card("vo2-two-state-6k")
        >>> closed_form(card, default_settings("gnucap")).calibrated
        False
    """
    piece = segments(card)
    from_v_mit = float(piece.length_s[INSULATING]) - rise_s(card)
    late = float(piece.length_s[METALLIC]) if settings.dialect == "gnucap" else 0.0
    return Timing(settings, period_s(card), late + from_v_mit, calibrated=False)
