"""Energy of the free cycle in closed form, split by the part that takes it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oscc.device.card import Card
from oscc.device.piecewise import INSULATING, METALLIC, segments


@dataclass(frozen=True, slots=True)
class CycleEnergy:
    """Energy of one free period, [J]; supply equals the sum of the other parts.

    The two capacitor parts are what the capacitor takes up in each state; they cancel.
    """

    supply_J: float
    r_series_J: float
    vo2_met_J: float
    vo2_ins_J: float
    capacitor_met_J: float
    capacitor_ins_J: float


def energy_per_period_J(card: Card) -> CycleEnergy:
    """Supply energy of one free period, with the parts that take it.

    Integrals over one state of length L, from V_a to V_b, with asymptote U:
        int V   = U L + tau (V_a - V_b)
        int V^2 = U^2 L + 2 U tau (V_a - V_b) + tau/2 ((V_a - U)^2 - (V_b - U)^2)

    Example:
        >>> from oscc.device import load_card
        >>> round(energy_per_period_J(load_card("vo2-two-state-6k")).supply_J * 1e9, 4)
        0.9025
    """
    piece, vdd = segments(card), card.vdd_V
    length, tau, v_inf = piece.length_s, piece.tau_s, piece.v_inf_V
    begin, end = piece.v_start_V, piece.v_end_V
    mean = v_inf * length + tau * (begin - end)
    square = (
        v_inf**2 * length
        + 2.0 * v_inf * tau * (begin - end)
        + tau / 2.0 * ((begin - v_inf) ** 2 - (end - v_inf) ** 2)
    )
    supply = vdd * (vdd * length - mean) / card.r_series_ohm
    series = (vdd**2 * length - 2.0 * vdd * mean + square) / card.r_series_ohm
    device = square / np.array([card.r_met_ohm, card.r_ins_ohm])
    store = card.c_F / 2.0 * (end**2 - begin**2)
    return CycleEnergy(
        supply_J=float(supply.sum()),
        r_series_J=float(series.sum()),
        vo2_met_J=float(device[METALLIC]),
        vo2_ins_J=float(device[INSULATING]),
        capacitor_met_J=float(store[METALLIC]),
        capacitor_ins_J=float(store[INSULATING]),
    )
