"""Deck of a lock cell: two oscillators, mutually coupled through tuned tanks.

Both cells start at V_MIT, insulating, the tanks at rest. Nothing is gated and no
reference runs beside them: the pair is its own reference, as a simulator's bias of the
period is common to both cells and drops out of their phase difference.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oscc.device.card import Card
from oscc.device.lock_cell import TANK_OHM, LockCell, capacitors_F
from oscc.device.piecewise import period_s
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
    Transconductor,
    VoltageSource,
)
from oscc_netlists.settings import Settings
from oscc_netlists.timing import READ_PERIODS

FIDELITY = "oscillators"
NODES = ("n_1", "n_2")
SUPPLY = "v_supply"

BELOW = {"gnucap": 1e-3, "ngspice": 1e-2}
"""How far below V_IMT crossings are read, over the swing: before the node turns, as
mid level is passed again by the detuned metallic fall; further off for the smooth cell.
"""


@dataclass(frozen=True, slots=True, eq=False)
class LockDeck:
    """Deck of one lock cell with what is needed to read it.

    Args:
        circuit: The deck as data.
        text: The deck as text.
        dialect: Which simulator reads it.
        cell: Element values.
        ratio: Detuning over lock range, x.
        end_s: End of the dwell.
        level_V: Level at which crossings are read.
        facts: What the deck is of, for `origin.json` and messages.
    """

    circuit: Circuit
    text: str
    dialect: str
    cell: LockCell
    ratio: float
    end_s: float
    level_V: float
    facts: Mapping[str, Any]


def lock_deck(
    cell: LockCell,
    ratio: float,
    periods: int,
    settings: Settings,
    *,
    facts: Mapping[str, Any] | None = None,
) -> LockDeck:
    """Deck of one pair over one dwell.

    Args:
        cell: Element values.
        ratio: Detuning over lock range, x.
        periods: Dwell in free periods of the card.
        settings: Simulator and how it steps.
        facts: Header lines beside those that every deck has.

    Raises:
        RequestError: the pair is detuned beyond the trim of the card.

    Example:
        >>> from oscc.device import load_card
        >>> from oscc.device.lock_cell import lock_cell
        >>> from oscc_netlists.settings import default_settings
        >>> cell = lock_cell(load_card("vo2-two-state-5k5"))
        >>> deck = lock_deck(cell, 0.6, 100, default_settings("gnucap"))
        >>> ideal_elements(deck.circuit)
        {'E': 2, 'G': 2}
    """
    card, period = cell.card, period_s(cell.card)
    pair = capacitors_F(card, cell.rate, [ratio])[:, 0]
    sections = [_supply(card)]
    for one, (node, farad) in enumerate(zip(NODES, pair, strict=True), start=1):
        own = dataclasses.replace(card, c_F=float(farad), f_max_Hz=None)
        sections.append(_oscillator(own, str(one), node, settings.dialect))
    sections += [_tanks(cell), _weights(cell)]
    gnucap = settings.dialect == "gnucap"
    models: tuple[SwitchModel, ...] = (vo2.device_model(card),) if gnucap else ()
    stop = (periods + READ_PERIODS) * period
    run = Transient(period / settings.steps_per_period, stop, settings.options)
    bare = Circuit("", (), tuple(sections), models, run, ())
    given = dict(facts or {})
    circuit = dataclasses.replace(
        bare,
        title=f"oscc lock cell, two coupled oscillators, for {settings.dialect}",
        header=_header(bare, cell, (ratio, periods), settings, given),
        vectors=(*(Vector("v", node) for node in NODES), Vector("i", SUPPLY)),
    )
    swing = card.v_imt_V - card.v_mit_V
    level = card.v_imt_V - BELOW[settings.dialect] * swing
    text = write(circuit, settings.dialect)
    end = periods * period
    return LockDeck(circuit, text, settings.dialect, cell, ratio, end, level, given)


def _supply(card: Card) -> Section:
    source = VoltageSource(SUPPLY, "vdd", "0", Dc(card.vdd_V))
    return Section("target", f"supply of both cells, card {card.name}", (source,))


def _oscillator(card: Card, name: str, node: str, dialect: str) -> Section:
    if dialect == "gnucap":
        cell, kind = vo2.abrupt_cell(card, name, node, card.v_mit_V), "two-state"
    else:
        cell, kind = vo2.smooth_cell(card, name, node, card.v_mit_V), "smooth"
    comment = f"oscillator {name}, {kind} VO2 cell, detuned by its capacitor"
    return Section("target", comment, cell)


def _tanks(cell: LockCell) -> Section:
    """Buffer, resistor and tank that each node drives."""
    elements: list[Element] = []
    for one, node in enumerate(NODES, start=1):
        u = f"u_{one}"
        elements += [
            Amplifier(f"e_b_{one}", f"b_{one}", "0", node, "0", 1.0),
            Resistor(f"r_t_{one}", f"b_{one}", u, TANK_OHM),
            Inductor(f"l_t_{one}", u, "0", cell.tank_H, 0.0),
            Capacitor(f"c_t_{one}", u, "0", cell.tank_F, 0.0),
        ]
    comment = f"buffer and tank of each node, quality {cell.quality!r}"
    return Section("shaper", comment, tuple(elements))


def _weights(cell: LockCell) -> Section:
    """Transconductor from the tank of each oscillator into the node of the other."""
    elements = tuple(
        Transconductor(f"g_{one}_{other}", "0", f"n_{one}", f"u_{other}", "0", gm)
        for one, other, gm in ((1, 2, cell.siemens), (2, 1, cell.siemens))
    )
    return Section("weight", "what each node hears of the other", elements)


def _header(
    bare: Circuit,
    cell: LockCell,
    dwell: tuple[float, int],
    settings: Settings,
    given: Mapping[str, Any],
) -> tuple[tuple[str, str], ...]:
    counts = ideal_elements(bare)
    lines = {str(key): str(value) for key, value in given.items()}
    lines["fidelity"] = FIDELITY
    lines["ratio"], lines["periods"] = repr(float(dwell[0])), str(int(dwell[1]))
    lines["lock_range"] = f"{cell.rate!r} of the frequency"
    lines["quality"] = repr(float(cell.quality))
    lines["ideal_elements"] = " ".join(f"{k} {n}" for k, n in counts.items())
    lines["card"] = cell.card.name
    lines["dialect"] = settings.dialect
    lines["calibrated"] = "yes"
    lines["reference"] = "none, the pair is read against itself"
    return tuple(lines.items())
