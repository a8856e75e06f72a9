"""Deck of a correlator's branch: one cell let go at V_MIT, its buffer, its tank.

All cells of a bank are one circuit, and so are both banks: what tells them apart is
when each was let go. The voltage of one tank as a function of the time since its
release is therefore that of all of them, and one deck serves a whole correlation.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from oscc.device.card import Card
from oscc.device.lock_cell import TANK_OHM
from oscc.device.piecewise import omega, period_s
from oscc_netlists import vo2
from oscc_netlists.circuit import (
    Circuit,
    Section,
    Transient,
    Vector,
    ideal_elements,
)
from oscc_netlists.dialects import write
from oscc_netlists.element import (
    Amplifier,
    Capacitor,
    Dc,
    Element,
    Inductor,
    Resistor,
    SwitchModel,
    VoltageSource,
)
from oscc_netlists.lock import BELOW
from oscc_netlists.settings import Settings

NODE, TANK = "n_1", "u_1"
SUPPLY = "v_supply"


@dataclass(frozen=True, slots=True, eq=False)
class CorrelatorDeck:
    """Deck of one branch with what is needed to read it.

    Args:
        circuit: The deck as data.
        text: The deck as text.
        dialect: Which simulator reads it.
        level_V: Level at which crossings of the node are read.
    """

    circuit: Circuit
    text: str
    dialect: str
    level_V: float


def correlator_deck(
    card: Card, quality: float, periods: int, settings: Settings
) -> CorrelatorDeck:
    """Deck of one branch.

    Args:
        card: Device card.
        quality: Q of the tank, tuned to the card.
        periods: Free periods to run.
        settings: Simulator and how it steps.

    Example:
        >>> from oscc.device import load_card
        >>> from oscc_netlists.settings import default_settings
        >>> card = load_card("vo2-two-state-6k")
        >>> deck = correlator_deck(card, 5.0, 20, default_settings("gnucap"))
        >>> ideal_elements(deck.circuit)
        {'E': 1}
    """
    gnucap = settings.dialect == "gnucap"
    models: tuple[SwitchModel, ...] = (vo2.device_model(card),) if gnucap else ()
    period = period_s(card)
    step = period / settings.steps_per_period
    run = Transient(step, periods * period, settings.options)
    bare = Circuit("", (), _sections(card, quality, gnucap), models, run, ())
    counts = " ".join(f"{k} {n}" for k, n in ideal_elements(bare).items())
    header = (
        ("fidelity", "oscillators"),
        ("quality", repr(float(quality))),
        ("periods", str(int(periods))),
        ("ideal_elements", counts),
        ("card", card.name),
        ("dialect", settings.dialect),
        ("calibrated", "yes"),
        ("reference", "none, the cell is read against itself"),
    )
    circuit = dataclasses.replace(
        bare,
        title=f"oscc branch of a correlator, for {settings.dialect}",
        header=header,
        vectors=(Vector("v", NODE), Vector("v", TANK)),
    )
    swing = card.v_imt_V - card.v_mit_V
    level = card.v_imt_V - BELOW[settings.dialect] * swing
    text = write(circuit, settings.dialect)
    return CorrelatorDeck(circuit, text, settings.dialect, level)


def _sections(card: Card, quality: float, gnucap: bool) -> tuple[Section, ...]:
    own = dataclasses.replace(card, f_max_Hz=None)
    make = vo2.abrupt_cell if gnucap else vo2.smooth_cell
    supply = VoltageSource(SUPPLY, "vdd", "0", Dc(card.vdd_V))
    # a node held at V_MIT before: the inductor carries its current, the tank rests
    held = card.v_mit_V / TANK_OHM
    tank: tuple[Element, ...] = (
        Amplifier("e_b_1", "b_1", "0", NODE, "0", 1.0),
        Resistor("r_t_1", "b_1", TANK, TANK_OHM),
        Inductor("l_t_1", TANK, "0", TANK_OHM / (quality * omega(card)), held),
        Capacitor("c_t_1", TANK, "0", quality / (TANK_OHM * omega(card)), 0.0),
    )
    kind = "two-state" if gnucap else "smooth"
    return (
        Section("target", f"supply, card {card.name}", (supply,)),
        Section("target", f"{kind} VO2 cell", make(own, "1", NODE, card.v_mit_V)),
        Section("shaper", f"buffer and tank, quality {quality!r}", tank),
    )
