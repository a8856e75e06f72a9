"""Reader: what we write reads back to the same text; nothing else is read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oscc.errors import RequestError
from oscc_netlists.circuit import Circuit, Section, Transient, Vector
from oscc_netlists.dialects import DIALECTS, write
from oscc_netlists.element import (
    Capacitor,
    CurrentSource,
    Dc,
    Element,
    Inductor,
    Pulse,
    Resistor,
    Sine,
    Transconductor,
    VoltageSource,
    Wave,
)
from oscc_netlists.reader import read

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)
POSITIVE = st.floats(min_value=1e-300, max_value=1e300)


def waves() -> st.SearchStrategy[Wave]:
    return st.one_of(
        st.builds(Dc, FINITE),
        st.builds(Sine, FINITE, FINITE, FINITE, FINITE, st.just(0.0)),
        st.builds(Pulse, *[FINITE] * 7),
    )


def _ends(node: str) -> tuple[st.SearchStrategy[str], st.SearchStrategy[str]]:
    return st.just(node), st.just("0")


@st.composite
def circuits(draw: st.DrawFn) -> Circuit:
    elements: list[Element] = [Resistor("r_n", "n", "0", draw(POSITIVE))]
    for k in range(draw(st.integers(0, 5))):
        node = f"n{k}"
        made: Element = draw(
            st.one_of(
                st.builds(Resistor, st.just(f"r{k}"), *_ends(node), POSITIVE),
                st.builds(Capacitor, st.just(f"c{k}"), *_ends(node), POSITIVE, FINITE),
                st.builds(Inductor, st.just(f"l{k}"), *_ends(node), POSITIVE, FINITE),
                st.builds(VoltageSource, st.just(f"v{k}"), *_ends(node), waves()),
                st.builds(CurrentSource, st.just(f"i{k}"), *_ends(node), waves()),
                st.builds(
                    Transconductor,
                    st.just(f"g{k}"),
                    *_ends(node),
                    st.just("n"),
                    st.just("0"),
                    FINITE,
                ),
            )
        )
        elements.append(made)
    header = tuple(
        draw(st.lists(st.tuples(st.from_regex(r"[a-z_]+", fullmatch=True), st.text())))
    )
    run = Transient(draw(POSITIVE), draw(POSITIVE), (("reltol", draw(POSITIVE)),))
    group = Section("target", draw(st.text(max_size=20)), tuple(elements))
    vectors = (Vector("v", "n"),)
    return Circuit(draw(st.text(max_size=20)), header, (group,), (), run, vectors)


@settings(max_examples=20)
@given(circuits(), st.sampled_from(DIALECTS))
def test_write_read_write_is_the_same_text(given_: Circuit, dialect: str) -> None:
    text = write(given_, dialect)
    found, told = read(text)
    assert told == dialect
    assert write(found, told) == text
    assert list(found.elements()) == list(given_.elements())


@pytest.mark.parametrize(
    "line",
    [
        ".include /etc/passwd",
        ".lib x",
        ".control",
        ".system touch x",
        ".!touch x",
        ".meas tran x find v(n) at=1",
        "q1 a b c",
        "r1 n 0 1k",
        "r2 n 0 nan",
        "b1 n 0 v=1",
        "x1 n sub",
        "+ continued",
        "",
    ],
)
def test_lines_that_our_decks_do_not_hold_are_refused(line: str) -> None:
    text = (
        "* t\n*\n* [target] x\nr_n n 0 1.0\n"
        f"{line}\n*\n* [run]\n.save v(n)\n.tran 1.0 1.0 0 1.0 uic\n.end\n"
    )
    assert read(text.replace(f"\n{line}\n", "\n"))
    with pytest.raises(RequestError, match="line 5"):
        read(text)


@pytest.mark.parametrize("text", ["", "r1 n 0 1.0\n", "* t\n.end\n", "* t\n"])
def test_what_is_no_deck_is_refused(text: str) -> None:
    with pytest.raises(RequestError):
        read(text)


def test_nothing_may_follow_the_end() -> None:
    text = "* t\n*\n* [target] x\nr_n n 0 1.0\n.save v(n)\n.tran 1.0 1.0 0 1.0 uic\n"
    assert read(f"{text}.end\n")
    with pytest.raises(RequestError, match="after"):
        read(f"{text}.end\n.system touch x\n")
