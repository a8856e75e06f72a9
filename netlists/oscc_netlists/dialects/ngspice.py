"""Decks for ngspice 39: smooth cells, sines with a phase, `.save` of what is needed."""

from __future__ import annotations

from oscc.errors import RequestError
from oscc_netlists.circuit import Circuit
from oscc_netlists.dialects import base
from oscc_netlists.element import Switch
from oscc_netlists.numbers import number


def write(circuit: Circuit) -> str:
    """Text of the deck.

    Raises:
        RequestError: a switch of two states, which ngspice does not locate in time.
    """
    for element in circuit.elements():
        if isinstance(element, Switch):
            raise RequestError(
                f"Element `{element.name}`: ngspice's switch locks to the step grid "
                "and biases the period. Use a smooth cell in this dialect."
            )
    run = circuit.transient
    step, stop = number(run.step_s), number(run.stop_s)
    return base.join(
        [
            base.title_line(circuit),
            *base.header_lines(circuit),
            *base.section_lines(circuit),
            "*",
            "* [run]",
            *map(base.model_line, circuit.models),
            *base.options_line(run),
            f".save {' '.join(map(str, circuit.vectors))}",
            f".tran {step} {stop} 0 {step} uic",
            ".end",
        ]
    )
