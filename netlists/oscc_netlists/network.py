"""A deck back to the network that it is: pair weights and injected currents (LVS).

Everything is taken from the elements and how they are joined, nothing from comments:
a weight is a transconductor from a source's node into a sum node; the sum reaches
node y through the shaper; the gate carries v(y) into the target.
"""

from __future__ import annotations

import cmath
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from oscc.arrays import ComplexArray, FloatArray, IntArray
from oscc.errors import RequestError
from oscc.phases import TURN
from oscc_netlists.circuit import Circuit
from oscc_netlists.couplers import GATE_LOAD_OHM, GATE_MODEL, ROUTE_LETTER
from oscc_netlists.couplers import WEIGHT_SIEMENS as UNIT
from oscc_netlists.element import (
    Behavioural,
    Dc,
    Element,
    Pulse,
    Resistor,
    Sine,
    Transconductor,
    VoltageSource,
)

_WEIGHT = re.compile(r"g_(\d+)_(\d+)_([pse])")
_SOURCE = re.compile(r"v_(?:\d+|sum)_(\d+)(?:_[pse])?")
_GATED = re.compile(r"([^*]+)\*v\(y\)\*v\(gate\)")


@dataclass(frozen=True, slots=True, eq=False)
class PairTerms:
    """Every pair term of a deck.

    Args:
        source: Token of the source, or its row in a flat bank, shape (E,).
        harmonic: Order, shape (E,).
        route: `present`, `successor` or `edges`, E words.
        weight: Weight of the pair, shape (E,).
        current_A: Phasor that the term injects, shape (E,), [A].
    """

    source: IntArray
    harmonic: IntArray
    route: tuple[str, ...]
    weight: FloatArray
    current_A: ComplexArray


def read_pairs(circuit: Circuit) -> PairTerms:
    """Pair terms of a `pairwise` deck.

    Raises:
        RequestError: a weight that no source drives, or whose source has a frequency
            other than its harmonic's.
    """
    paths = _Paths(circuit)
    letters = {letter: route for route, letter in ROUTE_LETTER.items()}
    rows = []
    for element in _of_role(circuit, "weight"):
        found = _WEIGHT.fullmatch(element.name)
        if found is None or not isinstance(element, Transconductor):
            raise RequestError(f"`{element.name}` is no weight of a pair.")
        order = int(found[2])
        phasor = paths.source_phasor(element.control_plus, order)
        gain = element.siemens * paths.from_sum(element.minus)
        weight = element.siemens / UNIT
        rows.append((int(found[1]), order, letters[found[3]], weight, phasor * gain))
    columns = list(zip(*rows, strict=True)) if rows else [()] * 5
    return PairTerms(
        np.array(columns[0], dtype=np.int64),
        np.array(columns[1], dtype=np.int64),
        tuple(columns[2]),
        np.array(columns[3], dtype=np.float64),
        np.array(columns[4], dtype=np.complex128),
    )


def injected_A(circuit: Circuit) -> dict[int, complex]:
    """Phasor of the injected current by harmonic, from the elements of any deck.

    The time origin is the opening of the gate; order 0 is a direct current.

    Raises:
        RequestError: the deck is not of one target.
    """
    paths = _Paths(circuit)
    weights = _of_role(circuit, "weight")
    out: dict[int, complex] = {}
    if weights:
        pairs = read_pairs(circuit)
        for order, value in zip(pairs.harmonic.tolist(), pairs.current_A, strict=True):
            out[order] = out.get(order, 0j) + complex(value)
    for element in _of_role(circuit, "shaper"):
        if not isinstance(element, Transconductor):
            continue
        if element.control_plus not in paths.sources:
            continue
        gain = element.siemens * paths.load_ohm(element.minus) * paths.gate_siemens
        order = paths.order_of(element.control_plus)
        phasor = paths.source_phasor(element.control_plus, order)
        out[order] = out.get(order, 0j) + phasor * gain
    return out


class _Paths:
    """Sources, loads and gate of a deck of one target, found by how they are joined."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self.sources: dict[str, VoltageSource] = {
            e.plus: e
            for e in _of_role(circuit, "source")
            if isinstance(e, VoltageSource)
        }
        self._loads = {e.plus: e for e in _kind(circuit, Resistor) if e.minus == "0"}
        self._taps = {
            e.control_plus: e
            for e in _of_role(circuit, "shaper")
            if isinstance(e, Transconductor)
        }
        self.open_s, self.gate_siemens = self._gate()
        self.carrier_Hz = self._carrier()

    def _gate(self) -> tuple[float, float]:
        opened = siemens = None
        for element in _of_role(self.circuit, "gate"):
            if isinstance(element, VoltageSource) and isinstance(element.wave, Pulse):
                opened = element.wave.delay_s + element.wave.rise_s / 2
            elif isinstance(element, Behavioural):
                found = _GATED.fullmatch(element.ampere)
                siemens = float(found[1]) if found else None
            elif isinstance(element, Transconductor):
                loss = 1 + GATE_MODEL.on_ohm / GATE_LOAD_OHM
                siemens = element.siemens / loss
        if opened is None or siemens is None:
            raise RequestError("The deck has no gate of one target.")
        return opened, siemens

    def load_ohm(self, node: str) -> float:
        """Resistor from a node to ground."""
        if node not in self._loads:
            raise RequestError(f"Node `{node}` has no load to ground.")
        return self._loads[node].ohm

    def from_sum(self, node: str) -> float:
        """Injected ampere for each ampere into a sum node."""
        if node not in self._taps:
            raise RequestError(f"The sum node `{node}` leads nowhere.")
        tap = self._taps[node]
        into = tap.siemens * self.load_ohm(tap.minus)
        return self.load_ohm(node) * into * self.gate_siemens

    def order_of(self, node: str) -> int:
        """Harmonic order of a source, 0 for a constant one."""
        wave = self.sources[node].wave
        if isinstance(wave, Dc):
            return 0
        if not isinstance(wave, Sine):
            raise RequestError(f"Source at `{node}` is no sine.")
        return round(wave.freq_Hz / self.carrier_Hz)

    def _carrier(self) -> float:
        """Frequency of which every source runs at its own harmonic."""
        bases = []
        for source in self.sources.values():
            found = _SOURCE.fullmatch(source.name)
            if found is not None and isinstance(source.wave, Sine):
                bases.append(source.wave.freq_Hz / int(found[1]))
        if bases and max(bases) / min(bases) - 1 > 1e-12:
            raise RequestError("The sources are no harmonics of one carrier.")
        return bases[0] if bases else 1.0

    def source_phasor(self, node: str, order: int) -> complex:
        """Peak phasor of a source at the opening of the gate."""
        if node not in self.sources:
            raise RequestError(f"No source drives node `{node}`.")
        wave = self.sources[node].wave
        if isinstance(wave, Dc):
            return complex(wave.level)
        if not isinstance(wave, Sine) or self.order_of(node) != order:
            raise RequestError(
                f"The source at node `{node}` does not run at harmonic {order}."
            )
        turns = wave.freq_Hz * (self.open_s - wave.delay_s)
        angle = TURN * turns + math.radians(wave.phase_deg) - TURN / 4
        return wave.amplitude * cmath.exp(1j * angle)


def _of_role(circuit: Circuit, role: str) -> list[Element]:
    return [e for s in circuit.sections if s.role == role for e in s.elements]


def _kind(circuit: Circuit, kind: type[Resistor]) -> Iterable[Resistor]:
    return (e for e in circuit.elements() if isinstance(e, kind))
