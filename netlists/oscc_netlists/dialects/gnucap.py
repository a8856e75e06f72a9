"""Decks for gnucap 0.36: abrupt switches, delayed sines, no behavioural source.

gnucap skips a line that it does not know and goes on with exit status 0, so what it
cannot read is refused here.
"""

from __future__ import annotations

from oscc.errors import RequestError
from oscc_netlists.circuit import Circuit
from oscc_netlists.dialects import base
from oscc_netlists.element import Behavioural, CurrentSource, Sine, VoltageSource
from oscc_netlists.numbers import number


def write(circuit: Circuit) -> str:
    """Text of the deck.

    Raises:
        RequestError: a behavioural source, or a sine with a phase argument.
    """
    for element in circuit.elements():
        if isinstance(element, Behavioural):
            raise RequestError(
                f"Element `{element.name}`: gnucap has no behavioural source."
            )
        if (
            isinstance(element, VoltageSource | CurrentSource)
            and isinstance(element.wave, Sine)
            and element.wave.phase_deg
        ):
            raise RequestError(
                f"Element `{element.name}`: gnucap's sine has no phase; delay it."
            )
    run = circuit.transient
    return base.join(
        [
            base.title_line(circuit),
            *base.header_lines(circuit),
            *base.section_lines(circuit),
            "*",
            "* [run]",
            *map(base.model_line, circuit.models),
            *base.options_line(run),
            f".print tran {' '.join(map(str, circuit.vectors))}",
            f".tran {number(run.step_s)} {number(run.stop_s)} 0 trace all uic",
            ".end",
        ]
    )
