"""Decks of one cell: the free reference, and one target under one dwell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oscc.checks import require_choice
from oscc.device.card import Card
from oscc_netlists import couplers, vo2
from oscc_netlists.circuit import (
    Circuit,
    Section,
    Transient,
    Vector,
    ideal_elements,
)
from oscc_netlists.couplers import Pull, Window
from oscc_netlists.dialects import write
from oscc_netlists.element import Dc, SwitchModel, VoltageSource
from oscc_netlists.settings import Settings
from oscc_netlists.timing import (
    READ_PERIODS,
    REFERENCE_PERIODS,
    Timing,
    closed_form,
)

FIDELITIES = ("pairwise", "summed")
NODE = "n"


@dataclass(frozen=True, slots=True, eq=False)
class Deck:
    """A deck with what is needed to run and to read it.

    Args:
        circuit: The deck as data.
        text: The deck as text.
        dialect: Which simulator reads it.
        timing: The free run that it is built on.
        window: When its gate is open; None in a reference deck.
        node: Node whose crossings are read.
        ampere_per_volt: Injected current over v(y) while the gate is open.
        facts: What the deck is of, for `origin.json` and messages.
    """

    circuit: Circuit
    text: str
    dialect: str
    timing: Timing
    window: Window | None
    node: str
    ampere_per_volt: float
    facts: Mapping[str, Any]


def reference_deck(
    card: Card, settings: Settings, *, periods: int = REFERENCE_PERIODS
) -> Deck:
    """One free cell, to measure the simulator's own period and crossing phase."""
    timing = closed_form(card, settings)
    stop = timing.first_s + (periods + 1.5) * timing.period_s
    run = Transient(timing.period_s / settings.steps_per_period, stop, settings.options)
    circuit = Circuit(
        title=f"oscc free reference of {card.name}",
        header=(("card", card.name), ("dialect", settings.dialect)),
        sections=(_supply(card), _cell(card, settings, "reference")),
        models=_models(card, settings),
        transient=run,
        vectors=(Vector("v", NODE),),
    )
    text = write(circuit, settings.dialect)
    facts = {"card": card.name}
    return Deck(circuit, text, settings.dialect, timing, None, NODE, 0.0, facts)


def target_deck(
    card: Card,
    pull: Pull,
    timing: Timing,
    periods: int,
    phi0_rad: float,
    *,
    fidelity: str = "pairwise",
    facts: Mapping[str, Any] | None = None,
    energy: bool = False,
) -> Deck:
    """One target under one dwell.

    Args:
        pull: What pulls it.
        timing: Free run of the simulator with the same settings.
        periods: Whole periods that the gate is open.
        phi0_rad: Phase of the target when the gate opens.
        fidelity: `pairwise` or `summed`.
        facts: Header lines beside those that every deck has.
        energy: Also keep what the energies are integrated from.

    Raises:
        RequestError: an unknown fidelity.
    """
    require_choice("fidelity", fidelity, FIDELITIES)
    settings = timing.settings
    opened = timing.gate_s(card, phi0_rad)
    window = Window(opened, opened + periods * timing.period_s)
    couple = couplers.pairwise if fidelity == "pairwise" else couplers.summed
    coupling, scale = couple(pull, timing, window)
    sections = (
        _supply(card),
        _cell(card, settings, "target"),
        *(section for section in coupling if section.elements),
        couplers.gate(timing, window, scale, NODE),
    )
    models = _models(card, settings)
    if settings.dialect == "gnucap":
        models = (*models, couplers.GATE_MODEL)
    run = _run(timing, window)
    bare = Circuit("", (), sections, models, run, ())
    given = dict(facts or {})
    circuit = Circuit(
        title=f"oscc target, fidelity {fidelity}, for {settings.dialect}",
        header=_header(bare, card, timing, window, {**given, "fidelity": fidelity}),
        sections=sections,
        models=models,
        transient=run,
        vectors=_vectors(settings, energy),
    )
    text = write(circuit, settings.dialect)
    return Deck(circuit, text, settings.dialect, timing, window, NODE, scale, given)


def _run(timing: Timing, window: Window) -> Transient:
    """From the start until the crossings after the gate have been read."""
    settings = timing.settings
    stop = window.close_s + READ_PERIODS * timing.period_s
    step = timing.period_s / settings.steps_per_period
    return Transient(step, stop, settings.options)


def _vectors(settings: Settings, energy: bool) -> tuple[Vector, ...]:
    read = (Vector("v", NODE),)
    if not energy or settings.dialect != "ngspice":
        return read
    rest = (Vector("v", "x_cell"), Vector("v", "y"), Vector("v", "gate"))
    return (*read, *rest, Vector("i", "v_supply"))


def _supply(card: Card) -> Section:
    source = VoltageSource("v_supply", "vdd", "0", Dc(card.vdd_V))
    return Section("target", f"supply of the cell, card {card.name}", (source,))


def _cell(card: Card, settings: Settings, role: str) -> Section:
    cell = vo2.free_cell(card, settings.dialect, "cell", NODE)
    kind = (
        "two-state VO2 cell"
        if settings.dialect == "gnucap"
        else "VO2 cell, smooth two-state device (x_cell is its metallic share)"
    )
    return Section(role, f"{kind}, runs freely until the gate opens", cell)


def _models(card: Card, settings: Settings) -> tuple[SwitchModel, ...]:
    return (vo2.device_model(card),) if settings.dialect == "gnucap" else ()


def _header(
    bare: Circuit,
    card: Card,
    timing: Timing,
    window: Window,
    given: Mapping[str, Any],
) -> tuple[tuple[str, str], ...]:
    counts = ideal_elements(bare)
    lines = {str(key): str(value) for key, value in given.items()}
    lines["ideal_elements"] = " ".join(f"{k} {n}" for k, n in counts.items())
    lines["card"] = card.name
    lines["dialect"] = timing.settings.dialect
    lines["calibrated"] = "yes" if timing.calibrated else "no"
    lines["period_s"] = repr(float(timing.period_s))
    lines["gate_s"] = f"{float(window.open_s)!r} to {float(window.close_s)!r}"
    return tuple(lines.items())
