"""Coupling of one target as elements: sources, weights, sum, gate.

Fidelity `pairwise`. A held source is ideal: one sine for each harmonic and route,

    v_U_N_R = cos(n omega (t - t_gate) + n theta_U + arg I_NR)

where I_NR is the current phasor for a unit of field of that harmonic and route. The
routes of one harmonic have offsets of their own, and a real weight cannot turn a
phasor; so each source has one output a route, turned by what that route needs. Pairs
that are listed one by one have an offset each, so their outputs are turned one by one.
One transconductor for each pair term carries the weight into the sum node of its
harmonic and route, x_N_R; the sums meet in node y, scaled by |I_NR|. Negative
weights are negative transconductors (an inverted copy of the source in hardware).

Fidelity `summed`. One ideal source for each harmonic, whose phasor the host computed.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from oscc.arrays import ComplexArray, FloatArray, IntArray
from oscc.phases import TURN
from oscc_netlists.circuit import Section
from oscc_netlists.element import (
    Amplifier,
    Behavioural,
    Dc,
    Element,
    Pulse,
    Resistor,
    Sine,
    Switch,
    SwitchModel,
    Transconductor,
    VoltageSource,
)
from oscc_netlists.numbers import number
from oscc_netlists.timing import Timing

WEIGHT_SIEMENS = 1e-4
SUM_OHM = 1e4
GATE_LOAD_OHM = 1e6
GATE_MODEL = SwitchModel("swg", 0.5, 0.1, 1.0, 1e12)
ROUTE_LETTER = {"present": "p", "successor": "s", "edges": "e"}


@dataclass(frozen=True, slots=True, eq=False)
class RouteTerms:
    """What one target receives over one route.

    Args:
        route: `present`, `successor`, or `edges` for pairs listed one by one.
        source: Token of each source, or its row in a flat bank, shape (S,).
        weight: Its weight, shape (S,).
        harmonic: Orders, shape (N,).
        unit_A: Current phasor for a unit of field, shape (N,), [A].
        offset_rad: Offset of each source at every order, shape (S,), [rad]; None: 0.
    """

    route: str
    source: IntArray
    weight: FloatArray
    harmonic: IntArray
    unit_A: ComplexArray
    offset_rad: FloatArray | None = None

    @property
    def offsets(self) -> FloatArray:
        """Offset of each source, shape (S,), [rad]."""
        zero = np.zeros(self.source.size)
        return zero if self.offset_rad is None else self.offset_rad

    @property
    def terms(self) -> Iterator[tuple[int, float, float]]:
        """Source, weight and offset of every pair."""
        parts = (self.source, self.weight, self.offsets)
        return zip(*(part.tolist() for part in parts), strict=True)


@dataclass(frozen=True, slots=True, eq=False)
class Pull:
    """All that pulls one target during one dwell.

    Args:
        theta_rad: Phase of each source, shape (S,).
        routes: Pair terms by route.
        offset_A: Direct current that stands for a detuning.
    """

    theta_rad: FloatArray
    routes: tuple[RouteTerms, ...]
    offset_A: float = 0.0

    def phasors_A(self) -> dict[int, complex]:
        """Injected current phasor of each harmonic, summed over sources and routes."""
        out: dict[int, complex] = {}
        for terms in self.routes:
            held = self.theta_rad[terms.source]
            for order, unit in zip(terms.harmonic, terms.unit_A, strict=True):
                angle = order * held + terms.offsets
                field = complex((terms.weight * np.exp(1j * angle)).sum())
                out[int(order)] = out.get(int(order), 0j) + complex(unit) * field
        return out


@dataclass(frozen=True, slots=True)
class Window:
    """When the gate is open, [s]."""

    open_s: float
    close_s: float


def sine(
    timing: Timing, window: Window, order: int, phase_rad: float, amplitude: float = 1.0
) -> Sine:
    """The wave amplitude cos(n omega (t - t_gate) + phase) of a dialect.

    ngspice has a phase argument. gnucap has a delay only, written here as one below
    zero: the wave then runs from the start, and no source puts a time step of its own
    into the run (with delays above zero a deck of 256 sources takes 2.5 times as long).
    """
    omega = order * timing.omega
    angle = math.fmod(phase_rad - omega * window.open_s + TURN / 4, TURN)
    angle = angle + TURN if angle < 0 else angle
    freq = order / timing.period_s
    if timing.settings.dialect == "gnucap":
        return Sine(0.0, amplitude, freq, delay_s=-angle / omega)
    return Sine(0.0, amplitude, freq, phase_deg=math.degrees(angle))


_WEIGHT_COMMENT = (
    "one transconductor a pair term: g_TOKEN_HARMONIC_ROUTE, "
    f"{number(WEIGHT_SIEMENS)} S is weight 1"
)


def pairwise(
    pull: Pull, timing: Timing, window: Window
) -> tuple[tuple[Section, ...], float]:
    """Sections of the pair terms into node `y`, and ampere per volt there."""
    full = sum(float(np.abs(t.unit_A).sum()) for t in pull.routes) + abs(pull.offset_A)
    full = full or 1.0
    sources: list[Element] = [*_offset_source(pull)]
    weights: list[Element] = []
    shaper: list[Element] = [Resistor("r_y", "y", "0", SUM_OHM)]
    for terms in pull.routes:
        if not terms.source.size:
            continue
        letter = ROUTE_LETTER[terms.route]
        for order, unit in zip(terms.harmonic.tolist(), terms.unit_A, strict=True):
            tag = f"{order}_{letter}"
            for token, size, offset in terms.terms:
                angle = order * float(pull.theta_rad[token]) + cmath.phase(unit)
                wave = sine(timing, window, order, angle + offset)
                node = f"u_{token}_{tag}"
                sources.append(VoltageSource(f"v_{token}_{tag}", node, "0", wave))
                siemens = WEIGHT_SIEMENS * size
                ends = ("0", f"x_{tag}", node, "0")
                weights.append(Transconductor(f"g_{token}_{tag}", *ends, siemens))
            share = abs(unit) / full / SUM_OHM / (WEIGHT_SIEMENS * SUM_OHM)
            shaper.append(Resistor(f"r_x_{tag}", f"x_{tag}", "0", SUM_OHM))
            shaper.append(
                Transconductor(f"g_x_{tag}", "0", "y", f"x_{tag}", "0", share)
            )
    return (
        Section("source", "held sources: v_TOKEN_HARMONIC_ROUTE", tuple(sources)),
        Section("weight", _WEIGHT_COMMENT, tuple(weights)),
        Section(
            "shaper",
            "sum of each harmonic and route, then all into y",
            (*shaper, *_offset_share(pull, full)),
        ),
    ), full


def summed(
    pull: Pull, timing: Timing, window: Window
) -> tuple[tuple[Section, ...], float]:
    """Sections of one source a harmonic into node `y`, and ampere per volt there."""
    phasors = pull.phasors_A()
    full = sum(abs(value) for value in phasors.values()) + abs(pull.offset_A) or 1.0
    sources: list[Element] = [*_offset_source(pull)]
    shaper: list[Element] = [Resistor("r_y", "y", "0", SUM_OHM)]
    for order, value in sorted(phasors.items()):
        wave = sine(timing, window, order, cmath.phase(value))
        node = f"u_{order}"
        sources.append(VoltageSource(f"v_sum_{order}", node, "0", wave))
        share = abs(value) / full / SUM_OHM
        shaper.append(Transconductor(f"g_x_{order}", "0", "y", node, "0", share))
    return (
        Section("source", "one a harmonic: the host did the sum", tuple(sources)),
        Section(
            "shaper", "all harmonics into y", (*shaper, *_offset_share(pull, full))
        ),
    ), full


def _offset_source(pull: Pull) -> tuple[Element, ...]:
    """The direct current of a detuning as a source of one volt."""
    if not pull.offset_A:
        return ()
    return (VoltageSource("v_detuning", "u_detuning", "0", Dc(1.0)),)


def _offset_share(pull: Pull, full: float) -> tuple[Element, ...]:
    if not pull.offset_A:
        return ()
    share = pull.offset_A / full / SUM_OHM
    return (Transconductor("g_detuning", "0", "y", "u_detuning", "0", share),)


def gate(timing: Timing, window: Window, ampere_per_volt: float, node: str) -> Section:
    """Section that lets node `y` drive the target while the gate is open."""
    edge = timing.period_s * (1e-5 if timing.settings.dialect == "gnucap" else 1e-4)
    width = window.close_s - window.open_s
    # half the edge earlier, so that the half-way points are the wanted times
    pulse = Pulse(0.0, 1.0, window.open_s - edge / 2, edge, edge, width - edge, 1.0)
    control = VoltageSource("v_gate", "gate", "0", pulse)
    if timing.settings.dialect == "ngspice":
        current = f"{number(ampere_per_volt)}*v(y)*v(gate)"
        return Section(
            "gate",
            "gate, then the injected current into the node",
            (control, Behavioural("b_gate", "0", node, current)),
        )
    loss = 1 + GATE_MODEL.on_ohm / GATE_LOAD_OHM
    return Section(
        "gate",
        "buffer, switch and load, then the injected current into the node",
        (
            control,
            Amplifier("e_gate", "k", "0", "y", "0", 1.0),
            Switch("s_gate", "k", "z", "gate", "0", GATE_MODEL.name),
            Resistor("r_gate", "z", "0", GATE_LOAD_OHM),
            Transconductor("g_gate", "0", node, "z", "0", ampere_per_volt * loss),
        ),
    )
