"""Tile of real cells (fidelity `oscillators`): every source a VO2 cell, for gnucap.

    cell     series resistor, capacitor, two-state device
    write    a clamp holds the node below v_mit, so that the cell is insulating whatever
             it was before, and lets go at a programmed time: start-stop
    weight   source buffer, then one transconductor for each pair and route
    sum      one node for each target and route
    shaper   one channel for each harmonic after the sum, see `shaper`
    gate     one for each target, opened at one time for all

A free reference cell in the same deck is written alike; increments are read against it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from oscc.arrays import FloatArray
from oscc.device.card import Card
from oscc.device.piecewise import period_s
from oscc.errors import RequestError
from oscc.phases import TURN
from oscc_netlists import shaper, vo2
from oscc_netlists.circuit import Circuit, Section, Transient, Vector, ideal_elements
from oscc_netlists.couplers import (
    GATE_LOAD_OHM,
    GATE_MODEL,
    ROUTE_LETTER,
    SUM_OHM,
    WEIGHT_SIEMENS,
    Window,
)
from oscc_netlists.dialects import write
from oscc_netlists.element import (
    Amplifier,
    Capacitor,
    Dc,
    Element,
    Pulse,
    Resistor,
    Switch,
    SwitchModel,
    Transconductor,
    VoltageSource,
)
from oscc_netlists.settings import Settings
from oscc_netlists.shaper import ShaperPlan

CLAMP_MODEL = SwitchModel("swc", 0.5, 0.1, 10.0, 1e12)
HOLD_OF_V_MIT = 0.98
READ_PERIODS = 4
CALIBRATION_PERIODS = 60
EDGE_S = 1e-12
DIALECT, REFERENCE = "gnucap", "n_ref"


@dataclass(frozen=True, slots=True)
class WriteTiming:
    """Free run of a written cell in gnucap: period, and phase when it is let go."""

    settings: Settings
    period_s: float
    release_rad: float

    @property
    def omega(self) -> float:
        """Angular frequency, [rad/s]."""
        return TURN / self.period_s


@dataclass(frozen=True, slots=True, eq=False)
class TileSpec:
    """One coordinate of one stage, during one dwell.

    Args:
        theta_rad: Source phases, shape (M,).
        phi0_rad: Target phases at the opening of the gate, shape (N,).
        gain: Signed gain of each target over the dwell, shape (N,) [rad].
        weights: By route, shape (N, M).
        periods: Whole periods that the gate is open.
        settle: Periods that the sources run before the gate opens.
    """

    theta_rad: FloatArray
    phi0_rad: FloatArray
    gain: FloatArray
    weights: Mapping[str, FloatArray]
    periods: int
    settle: int


@dataclass(frozen=True, slots=True, eq=False)
class TileDeck:
    """A tile as a deck, with the times that its reading needs.

    Args:
        circuit: The deck as data.
        text: The deck as text.
        window: When the gate is open.
        release_s: When each cell is let go, by node.
        targets: Node of each target, in order.
        sources: Node of each source, in order.
        written_rad: Phase that each source is written to pass when the gate opens.
        dialect: What the text is written in.
        reference: Node of the free reference.
    """

    circuit: Circuit
    text: str
    window: Window
    release_s: Mapping[str, float]
    targets: tuple[str, ...]
    sources: tuple[str, ...]
    written_rad: FloatArray
    dialect: str = DIALECT
    reference: str = REFERENCE


def written_cell(card: Card, name: str, release_s: float, role: str) -> list[Section]:
    """Sections of a cell at node `n_NAME` and of the clamp that writes its phase."""
    node = f"n_{name}"
    hold = HOLD_OF_V_MIT * card.v_mit_V
    pulse = Pulse(1.0, 0.0, release_s, EDGE_S, EDGE_S, 1.0, 2.0)
    clamp = (
        VoltageSource(f"v_w_{name}", f"w_{name}", "0", pulse),
        Switch(f"s_w_{name}", node, "hold", f"w_{name}", "0", CLAMP_MODEL.name),
    )
    cell = vo2.abrupt_cell(card, name, node, hold)
    return [
        Section(role, f"cell {name}", cell),
        Section("write", f"holds cell {name} below v_mit, then lets it go", clamp),
    ]


def calibration_deck(card: Card, settings: Settings) -> tuple[Circuit, str, float]:
    """One written cell alone at node `n_ref`: circuit, text, when it is let go."""
    _require_gnucap(settings)
    release = 0.5 * period_s(card)
    cell = written_cell(card, "ref", release, "reference")
    stop = release + (CALIBRATION_PERIODS + 3) * period_s(card)
    circuit = Circuit(
        f"oscc written reference of {card.name}",
        (("card", card.name), ("dialect", DIALECT)),
        (_supply(card), *cell),
        _models(card),
        Transient(period_s(card) / settings.steps_per_period, stop, settings.options),
        (Vector("v", REFERENCE),),
    )
    return circuit, write(circuit, DIALECT), release


def release_s(timing: WriteTiming, gate_s: float, phase: float, settle: int) -> float:
    """When to let a cell go so that it passes a phase at a time, settle turns later."""
    turn = math.fmod(phase - timing.release_rad, TURN)
    turn = turn + TURN if turn < 0 else turn
    return gate_s - (turn + TURN * settle) / timing.omega


def tile_deck(
    card: Card,
    spec: TileSpec,
    plan: ShaperPlan,
    timing: WriteTiming,
    header: Mapping[str, object],
) -> TileDeck:
    """The whole tile as one deck.

    Args:
        header: Lines of the header beside those that every deck has.

    Raises:
        RequestError: settings of another simulator than gnucap.
    """
    _require_gnucap(timing.settings)
    opened = (spec.settle + 2) * timing.period_s
    window = Window(opened, opened + spec.periods * timing.period_s)
    release = _releases(spec, plan, timing, opened)
    sources = tuple(f"n_s{k}" for k in range(spec.theta_rad.size))
    targets = tuple(f"n_t{k}" for k in range(spec.phi0_rad.size))
    sections = [_supply(card)]
    for name, time in release.items():
        role = {"s": "source", "t": "target", "r": "reference"}[name[0]]
        sections += written_cell(card, name, time, role)
    sections += [_buffers(sources), *_network(spec, plan, targets), _clock(window)]
    read = [Vector("v", name) for name in (REFERENCE, *targets, *sources)]
    bare = Circuit(
        "oscc tile of VO2 oscillators, fidelity oscillators, for gnucap",
        (),
        tuple(sections),
        (*_models(card), GATE_MODEL),
        _run(timing, window),
        (*read, Vector("i", "v_supply")),
    )
    circuit = replace(bare, header=_header(bare, card, window, header))
    return TileDeck(
        circuit,
        write(circuit, DIALECT),
        window,
        {f"n_{name}": time for name, time in release.items()},
        targets,
        sources,
        np.mod(spec.theta_rad + plan.offset_rad, TURN),
    )


def _run(timing: WriteTiming, window: Window) -> Transient:
    settings = timing.settings
    stop = window.close_s + READ_PERIODS * timing.period_s
    step = timing.period_s / settings.steps_per_period
    return Transient(step, stop, _options(settings))


def _options(settings: Settings) -> tuple[tuple[str, float | str], ...]:
    """The node order that fills the matrix least; no value depends on it."""
    kept = tuple(pair for pair in settings.options if pair[0] != "order")
    return (*kept, ("order", "reverse"))


def _releases(
    spec: TileSpec, plan: ShaperPlan, timing: WriteTiming, opened: float
) -> dict[str, float]:
    """When each cell is let go: sources at their phase plus the shaper's offset."""
    phases = {f"s{k}": p + plan.offset_rad for k, p in enumerate(spec.theta_rad)}
    phases |= {f"t{k}": p for k, p in enumerate(spec.phi0_rad)}
    out = {
        name: release_s(timing, opened, float(phase), spec.settle)
        for name, phase in phases.items()
    }
    out["ref"] = opened - (spec.settle + 0.5) * timing.period_s
    return out


def _header(
    bare: Circuit, card: Card, window: Window, given: Mapping[str, object]
) -> tuple[tuple[str, str], ...]:
    counts = " ".join(f"{k} {n}" for k, n in ideal_elements(bare).items())
    lines = {"fidelity": "oscillators", **given, "ideal_elements": counts}
    lines |= {"card": card.name, "dialect": DIALECT, "calibrated": "yes"}
    lines["gate_s"] = f"{window.open_s!r} to {window.close_s!r}"
    return tuple((key, str(value)) for key, value in lines.items())


def _network(
    spec: TileSpec, plan: ShaperPlan, targets: tuple[str, ...]
) -> list[Section]:
    """Weights, sums, shapers and gates, target by target."""
    out = []
    loss = 1 + GATE_MODEL.on_ohm / GATE_LOAD_OHM
    for number, node in enumerate(targets):
        weights: list[Element] = []
        shaped: list[Element] = []
        y = f"y_{number}"
        for route, matrix in spec.weights.items():
            tag = f"{number}_{ROUTE_LETTER[route]}"
            row = matrix[number]
            if not row.any():
                continue
            weights += _row(tag, row)
            shaped += _sum_node(plan, tag)
            for order in range(1, plan.channels + 1):
                shaped += shaper.channel(plan, tag, order, f"x_{tag}")
            shaped += shaper.taps(plan, route, tag, y)
        size = float(spec.gain[number]) * shaper.full_A(plan) * loss
        gated = (
            Resistor(f"r_y_{number}", y, "0", SUM_OHM),
            Amplifier(f"e_y_{number}", f"k_{number}", "0", y, "0", 1.0),
            Switch(f"s_y_{number}", f"k_{number}", f"z_{number}", "gate", "0", "swg"),
            Resistor(f"r_z_{number}", f"z_{number}", "0", GATE_LOAD_OHM),
            Transconductor(f"g_y_{number}", "0", node, f"z_{number}", "0", size),
        )
        out += [
            Section("weight", f"target {number}: one a pair and route", tuple(weights)),
            Section("shaper", f"target {number}: sums and channels", tuple(shaped)),
            Section("gate", f"target {number}", gated),
        ]
    return [section for section in out if section.elements]


def _row(tag: str, row: FloatArray) -> list[Element]:
    """Weights of one target and route; a weight of zero is left out."""
    number, letter = tag.split("_")
    return [
        Transconductor(
            f"g_w_{number}_{source}_{letter}",
            "0",
            f"x_{tag}",
            f"b_{source}",
            "0",
            WEIGHT_SIEMENS * float(size),
        )
        for source, size in enumerate(row)
        if size
    ]


def _sum_node(plan: ShaperPlan, tag: str) -> list[Element]:
    """Sum resistor, and what the weights of the row load it with, in parallel."""
    node = f"x_{tag}"
    out: list[Element] = [Resistor(f"r_x_{tag}", node, "0", SUM_OHM)]
    if math.isfinite(plan.load.ohm):
        out.append(Resistor(f"r_o_{tag}", node, "0", plan.load.ohm))
    if plan.load.farad:
        out.append(Capacitor(f"c_o_{tag}", node, "0", plan.load.farad, 0.0))
    return out


def _buffers(sources: tuple[str, ...]) -> Section:
    elements = tuple(
        Amplifier(f"e_b_{k}", f"b_{k}", "0", node, "0", 1.0)
        for k, node in enumerate(sources)
    )
    return Section("buffer", "one a source, so that weights do not load it", elements)


def _clock(window: Window) -> Section:
    width = window.close_s - window.open_s
    pulse = Pulse(0.0, 1.0, window.open_s, EDGE_S, EDGE_S, width, 1.0)
    clock = VoltageSource("v_gate", "gate", "0", pulse)
    return Section("gate", "one time for every target", (clock,))


def _supply(card: Card) -> Section:
    hold = HOLD_OF_V_MIT * card.v_mit_V
    sources = (
        VoltageSource("v_supply", "vdd", "0", Dc(card.vdd_V)),
        VoltageSource("v_hold", "hold", "0", Dc(hold)),
    )
    return Section("reference", "supply, and the level that cells are held at", sources)


def _models(card: Card) -> tuple[SwitchModel, ...]:
    return (vo2.device_model(card), CLAMP_MODEL)


def _require_gnucap(settings: Settings) -> None:
    if settings.dialect != DIALECT:
        raise RequestError(
            "A tile of real cells is a gnucap deck: ngspice takes 25 times as long."
        )
