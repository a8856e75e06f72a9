"""What the dialects share: one line an element, comments, the fixed order of a deck."""

from __future__ import annotations

from oscc_netlists.circuit import Circuit, Transient
from oscc_netlists.element import (
    Amplifier,
    Behavioural,
    Capacitor,
    CurrentSource,
    Dc,
    Element,
    Inductor,
    Pulse,
    Resistor,
    Sine,
    Switch,
    SwitchModel,
    Transconductor,
    VoltageSource,
    Wave,
)
from oscc_netlists.names import safe_comment
from oscc_netlists.numbers import number


def title_line(circuit: Circuit) -> str:
    """Line 1, a comment: a simulator ignores it whatever it holds."""
    return f"* {safe_comment(circuit.title)}"


def header_lines(circuit: Circuit) -> list[str]:
    """Comment lines of the header."""
    return [f"* {safe_comment(k)}: {safe_comment(v)}" for k, v in circuit.header]


def section_lines(circuit: Circuit) -> list[str]:
    """Every section: a blank comment, its role with its sentence, its elements."""
    lines = []
    for section in circuit.sections:
        lines += ["*", f"* [{section.role}] {safe_comment(section.comment)}"]
        lines += [element_line(element) for element in section.elements]
    return lines


def element_line(element: Element) -> str:
    """One element in the notation that both simulators read."""
    name = f"{element.name} {element.plus} {element.minus}"
    match element:
        case Resistor():
            return f"{name} {number(element.ohm, what=element.name)}"
        case Capacitor():
            start = number(element.start_V, what=element.name)
            return f"{name} {number(element.farad, what=element.name)} ic={start}"
        case Inductor():
            start = number(element.start_A, what=element.name)
            return f"{name} {number(element.henry, what=element.name)} ic={start}"
        case VoltageSource() | CurrentSource():
            return f"{name} {wave_text(element.wave, element.name)}"
        case Transconductor() | Amplifier() | Switch():
            return f"{name} {_control(element)}"
        case Behavioural():
            return f"{name} i={element.ampere}"


def _control(element: Transconductor | Amplifier | Switch) -> str:
    pair = f"{element.control_plus} {element.control_minus}"
    if isinstance(element, Switch):
        return f"{pair} {element.model}"
    size = element.siemens if isinstance(element, Transconductor) else element.gain
    return f"{pair} {number(size, what=element.name)}"


def wave_text(wave: Wave, name: str) -> str:
    """A source's wave; a sine has a phase only where it is not zero."""
    match wave:
        case Dc():
            return f"dc {number(wave.level, what=name)}"
        case Sine():
            values = [wave.offset, wave.amplitude, wave.freq_Hz, wave.delay_s, 0.0]
            if wave.phase_deg:
                values.append(wave.phase_deg)
            return f"sin({' '.join(number(v, what=name) for v in values)})"
        case Pulse():
            edges = [wave.delay_s, wave.rise_s, wave.fall_s, wave.width_s]
            values = [wave.low, wave.high, *edges, wave.period_s]
            return f"pulse({' '.join(number(v, what=name) for v in values)})"


def model_line(model: SwitchModel) -> str:
    """A switch model."""
    return (
        f".model {model.name} sw(vt={number(model.threshold_V)} "
        f"vh={number(model.hysteresis_V)} ron={number(model.on_ohm)} "
        f"roff={number(model.off_ohm)})"
    )


def options_line(transient: Transient) -> list[str]:
    """The options line, none where there are no options."""
    words = [
        f"{key}={value if isinstance(value, str) else number(value)}"
        for key, value in transient.options
    ]
    return [f".options {' '.join(words)}"] if words else []


def join(lines: list[str]) -> str:
    """Lines with a final newline."""
    return "\n".join(lines) + "\n"
