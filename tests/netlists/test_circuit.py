"""Elements and circuits: what would pass a simulator in silence is refused."""

from __future__ import annotations

import math

import pytest

from oscc.errors import RequestError
from oscc_netlists.circuit import Circuit, Section, Transient, Vector, ideal_elements
from oscc_netlists.dialects import write
from oscc_netlists.element import (
    Amplifier,
    Behavioural,
    Capacitor,
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
)
from oscc_netlists.lint import lint

RUN = Transient(1e-9, 1e-6, (("reltol", 1e-6), ("method", "trap")))


def circuit(*elements: Element, role: str = "target", title: str = "t") -> Circuit:
    models = (SwitchModel("swm", 1.5, 0.5, 1e3, 1e5),)
    group = Section(role, "elements", elements)
    return Circuit(title, (), (group,), models, RUN, (Vector("v", "n"),))


def divider() -> tuple[Element, ...]:
    return (VoltageSource("v1", "n", "0", Dc(1.0)), Resistor("r1", "n", "0", 1e3))


@pytest.mark.parametrize("ohm", [math.nan, math.inf, 0.0, -1e3])
def test_resistors_must_be_above_zero(ohm: float) -> None:
    with pytest.raises(RequestError, match="r1"):
        Resistor("r1", "n", "0", ohm)


def test_the_message_says_how_a_negative_coupling_is_built() -> None:
    with pytest.raises(RequestError, match="negative transconductor"):
        Resistor("r1", "n", "0", -1e3)


def test_capacitors_must_be_above_zero() -> None:
    with pytest.raises(RequestError, match="farad"):
        Capacitor("c1", "n", "0", 0.0, 0.0)


def test_inductors_must_be_above_zero() -> None:
    with pytest.raises(RequestError, match="henry"):
        Inductor("l1", "n", "0", -1e-6, 0.0)


def test_an_inductor_is_a_path_for_direct_current() -> None:
    coil = Inductor("l1", "u", "0", 1e-6, 0.0)
    part = Capacitor("c1", "u", "n", 1e-12, 0.0)
    assert not lint(circuit(*divider(), coil, part))
    found = lint(circuit(*divider(), Capacitor("c2", "u", "0", 1e-12, 0.0), part))
    assert [f.kind for f in found] == ["no_dc_path"]


def test_an_element_to_itself_is_refused() -> None:
    with pytest.raises(RequestError, match="to itself"):
        Resistor("r1", "n", "n", 1.0)


def test_the_name_carries_the_spice_letter() -> None:
    with pytest.raises(RequestError, match="begins with"):
        Resistor("c1", "n", "0", 1.0)


@pytest.mark.parametrize("node", ["gnd", "GND!", "N", "n\n.system touch x", "a>b"])
def test_nodes_are_safe_names(node: str) -> None:
    with pytest.raises(RequestError):
        Resistor("r1", node, "0", 1.0)


@pytest.mark.parametrize(
    "text",
    [
        "system('x')",
        "v(n)\n.system x",
        "1e400x",
        "v(GND)",
        "`x`",
        "v(n)>2",
        "(v(n)",
        "",
    ],
)
def test_expressions_hold_only_what_is_listed(text: str) -> None:
    with pytest.raises(RequestError):
        Behavioural("b1", "n", "0", text)


def test_two_elements_of_one_name_are_refused_before_writing() -> None:
    twice = Resistor("r1", "n", "0", 1.0)
    with pytest.raises(RequestError, match="`r1` is used 2 times"):
        circuit(*divider(), twice)


def test_a_switch_needs_its_model() -> None:
    with pytest.raises(RequestError, match="lacks"):
        circuit(*divider(), Switch("s1", "n", "0", "n", "0", "other"))


def test_a_vector_must_exist() -> None:
    with pytest.raises(RequestError, match=r"v\(n\)"):
        circuit(Resistor("r1", "m", "0", 1.0))


def test_numbers_that_are_not_finite_are_refused_when_written() -> None:
    wave = Sine(0.0, math.nan, 1e6)
    bad = circuit(*divider(), VoltageSource("v2", "m", "0", wave))
    with pytest.raises(RequestError, match="v2"):
        write(bad, "ngspice")


def test_the_first_line_is_always_a_comment() -> None:
    text = write(circuit(*divider(), title="v9 n 0 5\n.end"), "ngspice")
    assert text.splitlines()[0] == "* v9 n 0 5_.end"
    assert text.count("\n.end") == 1


def test_gnucap_is_given_nothing_that_it_would_skip() -> None:
    behavioural = Behavioural("b1", "0", "n", "2.0*v(n)")
    with pytest.raises(RequestError, match="no behavioural"):
        write(circuit(*divider(), behavioural), "gnucap")
    turned = VoltageSource("v2", "m", "0", Sine(0.0, 1.0, 1e6, phase_deg=30.0))
    with pytest.raises(RequestError, match="no phase"):
        write(circuit(*divider(), turned), "gnucap")


def test_ngspice_is_given_no_switch() -> None:
    switch = Switch("s1", "n", "0", "n", "0", "swm")
    with pytest.raises(RequestError, match="step grid"):
        write(circuit(*divider(), switch), "ngspice")


def test_unknown_dialects_name_the_known_ones() -> None:
    with pytest.raises(RequestError, match="gnucap, ngspice"):
        write(circuit(*divider()), "xyce")


def test_ideal_elements_leave_out_the_cells() -> None:
    parts = (*divider(), Transconductor("g1", "0", "n", "n", "0", -1e-6))
    assert ideal_elements(circuit(*parts, role="source")) == {"G": 1, "V": 1}
    assert ideal_elements(circuit(*parts, role="target")) == {}


def test_lint_passes_a_sound_circuit() -> None:
    assert lint(circuit(*divider())) == ()


@pytest.mark.parametrize(
    ("extra", "kind", "name"),
    [
        (Resistor("r2", "n", "loose", 1.0), "floating_node", "loose"),
        (Transconductor("g1", "0", "n", "ghost", "0", 1.0), "floating_node", "ghost"),
        (Capacitor("c1", "n", "island", 1e-12, 0.0), "no_dc_path", "island"),
        (Behavioural("b1", "0", "n", "i(r1)"), "unknown_current", "r1"),
    ],
)
def test_lint_names_what_simulators_solve_in_silence(
    extra: Element, kind: str, name: str
) -> None:
    found = {(f.kind, f.name) for f in lint(circuit(*divider(), extra))}
    assert (kind, name) in found


def test_a_current_source_that_reads_its_own_node_is_a_path() -> None:
    state = Behavioural("b1", "0", "x", "1.0-v(x)")
    cap = Capacitor("c1", "x", "0", 1e-12, 0.0)
    assert lint(circuit(*divider(), state, cap)) == ()


def test_pulses_and_amplifiers_are_written_in_full() -> None:
    wave = Pulse(0.0, 1.0, 1e-7, 1e-12, 1e-12, 1e-6, 1.0)
    parts = (
        VoltageSource("v2", "m", "0", wave),
        Amplifier("e1", "k", "0", "m", "0", 1),
    )
    text = write(circuit(*divider(), *parts), "gnucap")
    assert "v2 m 0 pulse(0.0 1.0 1e-07 1e-12 1e-12 1e-06 1.0)\n" in text
    assert "e1 k 0 m 0 1.0\n" in text
