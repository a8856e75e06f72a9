"""Reader of decks: text back to a circuit, by a strict grammar of our own decks.

Anything else in a file is refused, dot-words that run commands or read files above all.
"""

from __future__ import annotations

import re

from oscc.errors import RequestError
from oscc_netlists.circuit import Circuit, Section, Transient, Vector
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
from oscc_netlists.numbers import read_number

_SECTION = re.compile(r"\* \[([a-z]+)\] ?(.*)")
_HEADER = re.compile(r"\* ([^:]+): (.*)")
_WAVE = re.compile(r"(sin|pulse)\(([^()]*)\)")
_MODEL = re.compile(r"\.model (\S+) sw\(vt=(\S+) vh=(\S+) ron=(\S+) roff=(\S+)\)")
_VECTOR = re.compile(r"([vi])\(([a-z0-9_]+)\)")


def read(text: str, *, where: str = "deck") -> tuple[Circuit, str]:
    """Circuit of a deck's text, and the dialect it is written in.

    Raises:
        RequestError: a line that our decks do not hold, with its number.
    """
    lines = text.splitlines()
    if not lines or not lines[0].startswith("* "):
        raise RequestError(f"`{where}` line 1 must be a comment: it is the title.")
    state = _Reading(where)
    for count, line in enumerate(lines[1:], start=2):
        try:
            state.take(line)
        except (RequestError, ValueError, IndexError, TypeError) as error:
            raise RequestError(f"`{where}` line {count}: {error}") from error
    return state.finish(lines[0][2:])


class _Reading:
    """State of one pass over the lines of a deck."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.header: list[tuple[str, str]] = []
        self.sections: list[tuple[str, str, list[Element]]] = []
        self.models: list[SwitchModel] = []
        self.options: tuple[tuple[str, float | str], ...] = ()
        self.vectors: tuple[Vector, ...] = ()
        self.run: tuple[float, float] | None = None
        self.dialect = ""
        self.ended = False

    def take(self, line: str) -> None:
        """Take one line."""
        if self.ended:
            raise RequestError("there is text after `.end`.")
        if line.startswith("*"):
            self._comment(line)
        elif line.startswith("."):
            self._dot(line)
        else:
            if not self.sections:
                raise RequestError("an element stands before the first section.")
            self.sections[-1][2].append(read_element(line))

    def _comment(self, line: str) -> None:
        section = _SECTION.fullmatch(line)
        if section:
            if section[1] != "run":
                self.sections.append((section[1], section[2], []))
        elif line != "*":
            found = _HEADER.fullmatch(line)
            if found is None or self.sections:
                raise RequestError(f"unexpected comment {line!r}.")
            self.header.append((found[1], found[2]))

    def _dot(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == ".model":
            found = _MODEL.fullmatch(line)
            if found is None:
                raise RequestError("a model of another kind.")
            values = [read_number(value) for value in found.groups()[1:]]
            self.models.append(SwitchModel(found[1], *values))
        elif word == ".options":
            self.options = tuple(_option(entry) for entry in rest.split())
        elif word in (".save", ".print"):
            names = rest.split()[1:] if word == ".print" else rest.split()
            self.dialect = "gnucap" if word == ".print" else "ngspice"
            self.vectors = tuple(_vector(name) for name in names)
        elif word == ".tran":
            step, stop = rest.split()[:2]
            self.run = (read_number(step), read_number(stop))
        elif word == ".end":
            self.ended = True
        else:
            raise RequestError(f"`{word}` is not allowed in a deck.")

    def finish(self, title: str) -> tuple[Circuit, str]:
        """The circuit, once every line is read."""
        if not self.ended or self.run is None:
            raise RequestError(f"`{self.where}` has no `.tran` or no `.end`.")
        sections = tuple(Section(r, c, tuple(e)) for r, c, e in self.sections)
        circuit = Circuit(
            title,
            tuple(self.header),
            sections,
            tuple(self.models),
            Transient(*self.run, self.options),
            self.vectors,
        )
        return circuit, self.dialect


def read_element(line: str) -> Element:
    """Element of one line.

    Raises:
        RequestError: another kind of element, or a number with a unit letter.

    Example:
        >>> read_element("rs vdd n 6000.0").ohm
        6000.0
    """
    name, plus, minus, *rest = line.split(maxsplit=3)
    tail = rest[0] if rest else ""
    ends = (name, plus, minus)
    letter = name[0]
    if letter == "r":
        return Resistor(*ends, read_number(tail))
    if letter in "cl":
        size, start = tail.split()
        kind_of_store = Capacitor if letter == "c" else Inductor
        value, begin = read_number(size), read_number(_after(start, "ic="))
        return kind_of_store(*ends, value, begin)
    if letter in "vi":
        kind = VoltageSource if letter == "v" else CurrentSource
        return kind(*ends, read_wave(tail))
    if letter in "ge":
        control_plus, control_minus, size = tail.split()
        made = Transconductor if letter == "g" else Amplifier
        return made(*ends, control_plus, control_minus, read_number(size))
    if letter == "s":
        return Switch(*ends, *tail.split())
    if letter == "b":
        return Behavioural(*ends, _after(tail, "i="))
    raise RequestError(f"an element of kind `{letter}` is not known.")


def read_wave(text: str) -> Wave:
    """Wave of a source.

    Raises:
        RequestError: another kind of wave.

    Example:
        >>> read_wave("dc 5.0")
        Dc(level=5.0)
    """
    if text.startswith("dc "):
        return Dc(read_number(text[3:]))
    found = _WAVE.fullmatch(text)
    if found is None:
        raise RequestError(f"{text!r} is not a wave.")
    values = [read_number(value) for value in found[2].split()]
    if found[1] == "pulse":
        return Pulse(*values)
    damping = values.pop(4)
    if damping:
        raise RequestError("a damped sine is not known.")
    return Sine(*values)


def _after(text: str, prefix: str) -> str:
    if not text.startswith(prefix):
        raise RequestError(f"{text!r} must begin with `{prefix}`.")
    return text[len(prefix) :]


def _option(text: str) -> tuple[str, float | str]:
    key, _, value = text.partition("=")
    try:
        return key, read_number(value)
    except RequestError:
        return key, value


def _vector(text: str) -> Vector:
    found = _VECTOR.fullmatch(text)
    if found is None:
        raise RequestError(f"{text!r} is not a vector.")
    return Vector(found[1], found[2])
