"""Circuit: a deck as data, with unique names checked when it is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from oscc.checks import require_positive
from oscc.errors import RequestError
from oscc_netlists.element import Behavioural, Element, Switch, SwitchModel
from oscc_netlists.names import require_name, require_node

ROLES = (
    "source",
    "weight",
    "shaper",
    "gate",
    "target",
    "reference",
    "write",
    "buffer",
)
SIGNAL_ROLES = ("source", "weight", "shaper", "gate", "write", "buffer")
CONTROLLED = "beefghivx"


@dataclass(frozen=True, slots=True)
class Section:
    """Elements that belong together, under one comment line.

    Args:
        role: What they are for, one of `ROLES`; kept in `origin.json`.
        comment: One sentence for a reader of the deck.
    """

    role: str
    comment: str
    elements: tuple[Element, ...]

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise RequestError(f"Section role {self.role!r} is not one of {ROLES}.")


@dataclass(frozen=True, slots=True)
class Transient:
    """A transient run from given start voltages.

    Args:
        step_s: Largest time step, always explicit.
        stop_s: End of the run.
        options: Simulator options in order, numbers or words.
    """

    step_s: float
    stop_s: float
    options: tuple[tuple[str, float | str], ...] = ()

    def __post_init__(self) -> None:
        require_positive("step_s", self.step_s, unit="s")
        require_positive("stop_s", self.stop_s, unit="s")
        for key, value in self.options:
            require_name(key, what="option")
            if isinstance(value, str):
                require_name(value, what=f"option {key}")


@dataclass(frozen=True, slots=True)
class Vector:
    """A quantity that the simulator hands out: `v` of a node or `i` of a source."""

    kind: str
    name: str

    def __post_init__(self) -> None:
        if self.kind not in ("v", "i"):
            raise RequestError(f"A vector is `v` or `i`, not {self.kind!r}.")
        require_name(self.name, what="vector")

    def __str__(self) -> str:
        return f"{self.kind}({self.name})"


@dataclass(frozen=True, slots=True)
class Circuit:
    """One deck: header, sections, models, run and the vectors to keep.

    Args:
        title: First line, always written as a comment (simulators ignore line 1).
        header: Comment lines `key: value` in order.
        sections: Elements in groups.
        models: Switch models.
        transient: The run.
        vectors: Only what is needed.

    Raises:
        RequestError: a name is used twice, a model or an element that is named does
            not exist, or a vector's node does not exist.
    """

    title: str
    header: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    models: tuple[SwitchModel, ...]
    transient: Transient
    vectors: tuple[Vector, ...]

    def __post_init__(self) -> None:
        names = Counter(element.name for element in self.elements())
        twice = [name for name, count in names.items() if count > 1]
        if twice:
            raise RequestError(
                f"Element name `{twice[0]}` is used {names[twice[0]]} times in a deck; "
                "a simulator would keep one of them and stop."
            )
        models = {model.name for model in self.models}
        for element in self.elements():
            if isinstance(element, Switch) and element.model not in models:
                raise RequestError(
                    f"Switch `{element.name}` needs the model `{element.model}`, "
                    "which the deck lacks."
                )
        nodes = self.nodes
        for vector in self.vectors:
            known = nodes if vector.kind == "v" else names
            if vector.name not in known:
                raise RequestError(f"The deck has nothing to read as `{vector}`.")

    def elements(self) -> Iterator[Element]:
        """Every element in the order of the deck."""
        for section in self.sections:
            yield from section.elements

    @property
    def nodes(self) -> frozenset[str]:
        """Every node but ground."""
        found = {node for element in self.elements() for node in element.nodes}
        return frozenset(found - {"0"})

    @property
    def roles(self) -> dict[str, str]:
        """Role of each element by name."""
        return {e.name: s.role for s in self.sections for e in s.elements}


def ideal_elements(circuit: Circuit) -> dict[str, int]:
    """Count by SPICE letter of controlled and independent sources in the signal path.

    The cells (targets, reference) are left out: what models the device is the device.

    Example:
        >>> from oscc_netlists.element import Dc, Resistor, VoltageSource
        >>> source = VoltageSource("v1", "a", "0", Dc(1.0))
        >>> group = Section("source", "", (source, Resistor("r1", "a", "0", 1.0)))
        >>> run = Transient(1e-9, 1e-6)
        >>> ideal_elements(Circuit("x", (), (group,), (), run, ()))
        {'V': 1}
    """
    found = Counter(
        element.name[0].upper()
        for section in circuit.sections
        if section.role in SIGNAL_ROLES
        for element in section.elements
        if element.name[0] in CONTROLLED
    )
    return dict(sorted(found.items()))


def largest_count(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Ideal elements by letter of the deck that has most of each.

    Example:
        >>> largest_count([{"G": 2, "V": 1}, {"G": 1, "E": 3}])
        {'E': 3, 'G': 2, 'V': 1}
    """
    out: dict[str, int] = {}
    for count in counts:
        for letter, number in count.items():
            out[letter] = max(number, out.get(letter, 0))
    return dict(sorted(out.items()))


def currents_read(circuit: Circuit) -> frozenset[str]:
    """Elements whose current an expression of the circuit reads."""
    from re import findall

    return frozenset(
        require_node(name)
        for element in circuit.elements()
        if isinstance(element, Behavioural)
        for name in findall(r"(?<![a-z0-9_])i\(([a-z0-9_]+)\)", element.ampere)
    )
