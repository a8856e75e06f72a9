"""Energies of one dwell from the waveforms of an ngspice deck.

    supply + injected = r_series + vo2 + capacitor

over the time that the gate is open. The sources that model x, y and the comparator of
the smooth cell draw from ground, not from the supply: they carry no energy meaning.
"""

from __future__ import annotations

import numpy as np

from oscc.arrays import FloatArray
from oscc.device.card import Card
from oscc_netlists.deck import Deck
from oscc_sims.rawfile import Plot
from oscc_sims.simulator import SimulatorFault

PARTS = ("supply_J", "r_series_J", "vo2_J", "capacitor_J", "injected_J")
"""Energies in the order of `dwell_energy_J`; the capacitor's is what it took up."""

BALANCE = 0.01


def dwell_energy_J(card: Card, deck: Deck, plot: Plot) -> FloatArray:
    """Energies of a target while its gate is open, by `PARTS`, shape (5,) [J].

    Trapezoid over the simulator's own time points, the window's ends interpolated.

    Raises:
        SimulatorFault: the parts do not balance to 1 % of the supply.
    """
    window = deck.window
    assert window is not None
    time, kept = np.unique(plot.column("time"), return_index=True)
    # one point on either side of each edge, so that the steps of the gate are kept
    inside = time[(time > window.open_s) & (time < window.close_s)]
    grid = np.concatenate([[window.open_s], inside, [window.close_s]])

    def at(name: str) -> FloatArray:
        return np.asarray(np.interp(grid, time, plot.column(name)[kept]))

    v, x = at(f"v({deck.node})"), at("v(x_cell)")
    g_ins, g_met = 1 / card.r_ins_ohm, 1 / card.r_met_ohm
    injected = deck.ampere_per_volt * at("v(y)") * at("v(gate)")
    flow = {
        "supply_J": -card.vdd_V * at("i(v_supply)"),
        "r_series_J": (card.vdd_V - v) ** 2 / card.r_series_ohm,
        "vo2_J": v**2 * (g_ins + (g_met - g_ins) * x),
        "injected_J": v * injected,
    }
    energy = {name: float(np.trapezoid(p, grid)) for name, p in flow.items()}
    energy["capacitor_J"] = float(card.c_F * (v[-1] ** 2 - v[0] ** 2) / 2)
    out = np.array([energy[name] for name in PARTS])
    error = balance_error(out)
    if abs(error) > BALANCE:
        raise SimulatorFault(f"the energies of the dwell do not balance: {error:.2%}")
    return out


def balance_error(energy_J: FloatArray) -> float:
    """(supply + injected - parts) over supply; `energy_J` by `PARTS`, shape (5,).

    Example:
        >>> balance_error(np.array([2.0, 1.0, 1.0, 0.5, 0.5]))
        0.0
    """
    supply, r_series, vo2, capacitor, injected = (float(e) for e in energy_J)
    return (supply + injected - r_series - vo2 - capacitor) / supply
