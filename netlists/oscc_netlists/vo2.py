"""The VO2 cell as elements: two-state for gnucap, smooth for ngspice.

gnucap locates the events of its switch, so there the cell is the device of the card:
series resistor, capacitor, switch with hysteresis. ngspice does not (the switch locks
to the step grid), so there the device is a conductance that follows x in [0, 1]:

    x' = (s - x) / tau,   s = min(1, max(0, 1/2 + u / w)),   y' = (x - y) / (lag tau)
    u  = v + (tau / C) i_C - (v_imt - (v_imt - v_mit) y)

The clipped ramp has no tail that fires early; feeding back the lagged y keeps each
implicit step single-valued; the lead term, from the capacitor's own current, cancels
the delay tau to first order. Measured errors: docs/reference/spice.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from oscc.device.card import Card
from oscc.device.piecewise import period_s
from oscc_netlists.element import (
    Amplifier,
    Behavioural,
    Capacitor,
    Dc,
    Element,
    Resistor,
    Switch,
    SwitchModel,
    VoltageSource,
)
from oscc_netlists.numbers import number

STATE_FARAD = 1e-12
DEVICE_MODEL = "swm"


@dataclass(frozen=True, slots=True)
class Smoothing:
    """Parameters of the smooth cell, each as a share of the card.

    Args:
        tau: Time constant of x over the free period.
        width: Width of the comparator's ramp over v_imt - v_mit.
        lag: Time constant of y over that of x.
    """

    tau: float = 1.0 / 2000.0
    width: float = 0.5e-3
    lag: float = 20.0


def device_model(card: Card) -> SwitchModel:
    """Switch model of the two-state device: closed is metallic."""
    middle = (card.v_imt_V + card.v_mit_V) / 2
    half = (card.v_imt_V - card.v_mit_V) / 2
    return SwitchModel(DEVICE_MODEL, middle, half, card.r_met_ohm, card.r_ins_ohm)


def start_V(card: Card, dialect: str) -> float:
    """Node voltage at which every free cell starts, in a state that is not in doubt.

    gnucap: just above v_imt, so that the switch closes at once. ngspice: v_mit, with
    the device insulating.
    """
    if dialect == "gnucap":
        return card.v_imt_V + 1e-3 * (card.v_imt_V - card.v_mit_V)
    return card.v_mit_V


def abrupt_cell(
    card: Card, name: str, node: str, begin_V: float
) -> tuple[Element, ...]:
    """Series resistor, capacitor, two-state device; the supply node is `vdd`."""
    return (
        Resistor(f"r_{name}", "vdd", node, card.r_series_ohm),
        Capacitor(f"c_{name}", node, "0", card.c_F, begin_V),
        Switch(f"s_{name}", node, "0", node, "0", DEVICE_MODEL),
    )


def smooth_cell(
    card: Card,
    name: str,
    node: str,
    begin_V: float,
    smoothing: Smoothing | None = None,
) -> tuple[Element, ...]:
    """The same cell for ngspice; node `x_NAME` is the metallic share of the device."""
    form = smoothing or Smoothing()
    tau = form.tau * period_s(card)
    swing = card.v_imt_V - card.v_mit_V
    g_ins, g_met = 1 / card.r_ins_ohm, 1 / card.r_met_ohm
    x, y, inner = f"x_{name}", f"y_{name}", f"i_{name}"
    above = (
        f"v({node})+{number(tau / card.c_F)}*i(v_{name})"
        f"-({number(card.v_imt_V)}-{number(swing)}*v({y}))"
    )
    ramp = f"min(1.0,max(0.0,0.5+({above})/{number(form.width * swing)}))"
    share = f"({number(g_ins)}+{number(g_met - g_ins)}*v({x}))"
    return (
        Resistor(f"r_{name}", "vdd", node, card.r_series_ohm),
        Capacitor(f"c_{name}", node, inner, card.c_F, begin_V),
        VoltageSource(f"v_{name}", inner, "0", Dc(0.0)),
        Behavioural(f"b_{name}", node, "0", f"v({node})*{share}"),
        Behavioural(
            f"b_x_{name}", "0", x, f"{number(STATE_FARAD / tau)}*({ramp}-v({x}))"
        ),
        Capacitor(f"c_x_{name}", x, "0", STATE_FARAD, 0.0),
        Amplifier(f"e_y_{name}", f"z_{name}", "0", x, "0", 1.0),
        Resistor(f"r_y_{name}", f"z_{name}", y, form.lag * tau / STATE_FARAD),
        Capacitor(f"c_y_{name}", y, "0", STATE_FARAD, 0.0),
    )


def free_cell(card: Card, dialect: str, name: str, node: str) -> tuple[Element, ...]:
    """A cell of a dialect that runs freely from the start."""
    begin = start_V(card, dialect)
    if dialect == "gnucap":
        return abrupt_cell(card, name, node, begin)
    return smooth_cell(card, name, node, begin)
