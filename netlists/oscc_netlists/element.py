"""Elements of a circuit: frozen values, checked when made.

The first letter of an element's name is its SPICE letter. Currents flow from `plus` to
`minus` through the element; a controlled source `G` carries siemens times the control
voltage that way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from oscc.errors import RequestError
from oscc_netlists.names import require_name, require_node
from oscc_netlists.numbers import NUMBER, number


@dataclass(frozen=True, slots=True)
class Dc:
    """A constant."""

    level: float


@dataclass(frozen=True, slots=True)
class Sine:
    """offset + amplitude sin(2 pi freq (t - delay) + phase), zero before the delay.

    gnucap has no phase argument: there a phase is a delay within one period.
    """

    offset: float
    amplitude: float
    freq_Hz: float
    delay_s: float = 0.0
    phase_deg: float = 0.0


@dataclass(frozen=True, slots=True)
class Pulse:
    """Low, then high from the delay on for the width, again after each period."""

    low: float
    high: float
    delay_s: float
    rise_s: float
    fall_s: float
    width_s: float
    period_s: float


Wave: TypeAlias = Dc | Sine | Pulse


@dataclass(frozen=True, slots=True)
class _Two:
    """Two ends and a name whose first letter is the kind."""

    letter: ClassVar[str] = ""
    name: str
    plus: str
    minus: str

    def __post_init__(self) -> None:
        require_name(self.name, what="element name")
        if self.name[0] != self.letter:
            raise RequestError(
                f"Element `{self.name}` must have a name that begins with "
                f"`{self.letter}`."
            )
        for node in self.nodes:
            require_node(node)
        if self.plus == self.minus:
            raise RequestError(
                f"Element `{self.name}` runs from node `{self.plus}` to itself."
            )

    @property
    def nodes(self) -> tuple[str, ...]:
        """Every node that the element touches, control nodes included."""
        return (self.plus, self.minus)


@dataclass(frozen=True, slots=True)
class Resistor(_Two):
    """A resistor; zero and negative values are refused, simulators take them."""

    letter: ClassVar[str] = "r"
    ohm: float

    def __post_init__(self) -> None:
        _Two.__post_init__(self)
        _require_above_zero(self.name, "ohm", self.ohm)


@dataclass(frozen=True, slots=True)
class Capacitor(_Two):
    """A capacitor, with its voltage at the start of the run."""

    letter: ClassVar[str] = "c"
    farad: float
    start_V: float

    def __post_init__(self) -> None:
        _Two.__post_init__(self)
        _require_above_zero(self.name, "farad", self.farad)


@dataclass(frozen=True, slots=True)
class Inductor(_Two):
    """An inductor, with its current at the start of the run."""

    letter: ClassVar[str] = "l"
    henry: float
    start_A: float

    def __post_init__(self) -> None:
        _Two.__post_init__(self)
        _require_above_zero(self.name, "henry", self.henry)


@dataclass(frozen=True, slots=True)
class VoltageSource(_Two):
    """An independent voltage source."""

    letter: ClassVar[str] = "v"
    wave: Wave


@dataclass(frozen=True, slots=True)
class CurrentSource(_Two):
    """An independent current source."""

    letter: ClassVar[str] = "i"
    wave: Wave


@dataclass(frozen=True, slots=True)
class _Controlled(_Two):
    """Two more nodes whose voltage controls the element."""

    control_plus: str
    control_minus: str

    @property
    def nodes(self) -> tuple[str, ...]:
        """Every node that the element touches, control nodes included."""
        return (self.plus, self.minus, self.control_plus, self.control_minus)


@dataclass(frozen=True, slots=True)
class Transconductor(_Controlled):
    """A voltage-controlled current source; a negative one inverts."""

    letter: ClassVar[str] = "g"
    siemens: float


@dataclass(frozen=True, slots=True)
class Amplifier(_Controlled):
    """A voltage-controlled voltage source."""

    letter: ClassVar[str] = "e"
    gain: float


@dataclass(frozen=True, slots=True)
class Switch(_Controlled):
    """A switch with hysteresis, closed above threshold + hysteresis."""

    letter: ClassVar[str] = "s"
    model: str


@dataclass(frozen=True, slots=True)
class SwitchModel:
    """Parameters of switches; it switches at threshold +- hysteresis."""

    name: str
    threshold_V: float
    hysteresis_V: float
    on_ohm: float
    off_ohm: float

    def __post_init__(self) -> None:
        require_name(self.name, what="model name")
        _require_above_zero(self.name, "on_ohm", self.on_ohm)
        _require_above_zero(self.name, "off_ohm", self.off_ohm)


_TOKEN = re.compile(
    rf"\s*(?:(?P<call>[vi]\((?P<arguments>[a-z0-9_,]+)\))|(?P<word>min|max)(?=\()"
    rf"|(?P<number>{NUMBER.pattern})|(?P<sign>[-+*/(),]))"
)


@dataclass(frozen=True, slots=True)
class Behavioural(_Two):
    """A current given by an expression of voltages and currents (ngspice only).

    The expression may hold numbers, `+ - * / ( ) ,`, `min`, `max`, `v(node)`,
    `v(node,node)` and `i(element)`; nothing else, so that no text can be slipped in.
    """

    letter: ClassVar[str] = "b"
    ampere: str

    def __post_init__(self) -> None:
        _Two.__post_init__(self)
        parse_expression(self.ampere, self.name)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Every node that the element touches, those of the expression included."""
        return (self.plus, self.minus, *parse_expression(self.ampere, self.name))


def parse_expression(text: str, name: str) -> tuple[str, ...]:
    """Nodes that an expression reads; refuses what is not on the white list.

    Raises:
        RequestError: another word or character, or brackets that do not match.

    Example:
        >>> parse_expression("2.0*v(a,b)-min(v(c),1.0)", "b1")
        ('a', 'b', 'c')
    """
    nodes: list[str] = []
    place = depth = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise RequestError(
                f"Element `{name}`: the expression holds {text[place : place + 12]!r}, "
                "which is not allowed."
            )
        place = found.end()
        if found["call"] and found["call"].startswith("v"):
            nodes += [require_node(node) for node in found["arguments"].split(",")]
        depth += {"(": 1, ")": -1}.get(found["sign"] or "", 0)
        if depth < 0:
            break
    if depth or not text.strip():
        raise RequestError(f"Element `{name}`: brackets do not match.")
    return tuple(node for node in nodes if node != "0")


def _require_above_zero(name: str, what: str, value: float) -> None:
    number(value, what=f"{name}: {what}")
    if not value > 0:
        raise RequestError(
            f"Element `{name}`: {what} must be above zero, but is {value!r}. "
            "A negative coupling is a negative transconductor."
        )


Element: TypeAlias = (
    Resistor
    | Capacitor
    | Inductor
    | VoltageSource
    | CurrentSource
    | Transconductor
    | Amplifier
    | Switch
    | Behavioural
)
