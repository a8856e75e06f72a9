"""What is suspicious in a circuit: nodes that float or have no path for direct current.

Simulators solve such nodes in silence (gmin) and end with exit status 0.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from oscc_netlists.circuit import Circuit, currents_read
from oscc_netlists.element import (
    Amplifier,
    Behavioural,
    Element,
    Inductor,
    Resistor,
    Switch,
    Transconductor,
    VoltageSource,
    parse_expression,
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: its kind, the node or element, and a sentence."""

    kind: str
    name: str
    message: str


def lint(circuit: Circuit) -> tuple[Finding, ...]:
    """Faults of a circuit, none if it is sound.

    Kinds: `floating_node` (one connection only, or only control inputs),
    `no_dc_path` (reaches ground only through capacitors or current sources),
    `unknown_current` (an expression reads the current of what is no voltage source).
    """
    return (*_floating(circuit), *_without_path(circuit), *_currents(circuit))


def _floating(circuit: Circuit) -> list[Finding]:
    ends: Counter[str] = Counter()
    touched: Counter[str] = Counter()
    for element in circuit.elements():
        ends.update({element.plus, element.minus})
        touched.update(set(element.nodes))
    out = []
    for node in sorted(circuit.nodes):
        if not ends[node]:
            text = f"node `{node}` is read but nothing drives it"
            out.append(Finding("floating_node", node, text))
        elif touched[node] < 2:
            text = f"node `{node}` has one connection only"
            out.append(Finding("floating_node", node, text))
    return out


def _conducts(element: Element) -> bool:
    if isinstance(element, Behavioural):
        own = {element.plus, element.minus}
        return bool(own & set(parse_expression(element.ampere, element.name)))
    return isinstance(element, Resistor | Inductor | VoltageSource | Amplifier | Switch)


def _without_path(circuit: Circuit) -> list[Finding]:
    parent = {node: node for node in (*circuit.nodes, "0")}

    def root(node: str) -> str:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for element in circuit.elements():
        if _conducts(element):
            parent[root(element.plus)] = root(element.minus)
    for one, other in _gyrators(circuit):
        parent[root(one)] = root(other)
    ground = root("0")
    return [
        Finding("no_dc_path", node, f"node `{node}` has no path for direct current")
        for node in sorted(circuit.nodes)
        if root(node) != ground
    ]


def _gyrators(circuit: Circuit) -> list[tuple[str, str]]:
    """Nodes that control each other's current: their voltages settle together."""
    drives = set()
    for element in circuit.elements():
        if isinstance(element, Transconductor):
            out = element.minus if element.plus == "0" else element.plus
            drives.add((element.control_plus, out))
    return [(a, b) for a, b in drives if a < b and (b, a) in drives]


def _currents(circuit: Circuit) -> list[Finding]:
    sources = {e.name for e in circuit.elements() if isinstance(e, VoltageSource)}
    return [
        Finding("unknown_current", name, f"`i({name})` is read, but is no source")
        for name in sorted(currents_read(circuit) - sources)
    ]
