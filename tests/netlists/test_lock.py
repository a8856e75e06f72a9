"""Deck of a lock cell: its elements, its header, its text."""

from __future__ import annotations

import re

import numpy as np
import pytest

from oscc.device import load_card
from oscc.device.lock_cell import lock_cell
from oscc.device.piecewise import omega
from oscc.errors import RequestError
from oscc_netlists.circuit import ideal_elements
from oscc_netlists.dialects import DIALECTS, write
from oscc_netlists.element import (
    Amplifier,
    Capacitor,
    Inductor,
    Resistor,
    Switch,
    Transconductor,
)
from oscc_netlists.lint import lint
from oscc_netlists.lock import LockDeck, lock_deck
from oscc_netlists.reader import read
from oscc_netlists.settings import default_settings

CELL = lock_cell(load_card("vo2-two-state-5k5"), 0.02)


def deck(dialect: str, ratio: float = 0.6) -> LockDeck:
    facts = {"stage": "layer.0.locks", "head": 1, "token": 7, "partner": 3}
    return lock_deck(CELL, ratio, 100, default_settings(dialect), facts=facts)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_deck_reads_back_and_is_sound(dialect: str) -> None:
    made = deck(dialect)
    assert not lint(made.circuit)
    back, found = read(made.text)
    assert found == dialect
    assert write(back, dialect) == made.text
    assert list(back.elements()) == list(made.circuit.elements())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_buffers_and_transconductors_alone_are_ideal(dialect: str) -> None:
    made = deck(dialect)
    assert ideal_elements(made.circuit) == {"E": 2, "G": 2}
    header = dict(re.findall(r"^\* ([a-z_]+): (.*)$", made.text, re.MULTILINE))
    assert header["fidelity"] == "oscillators"
    assert header["ideal_elements"] == "E 2 G 2"
    assert header["card"] == "vo2-two-state-5k5"
    assert (header["head"], header["token"], header["partner"]) == ("1", "7", "3")
    assert float(header["ratio"]) == 0.6
    assert not re.search(r"^\.(control|include|lib)", made.text, re.MULTILINE)


def test_the_tank_of_the_deck_has_the_coupler_of_the_cell() -> None:
    """From the elements as read: gain and angle at the frequency of the card."""
    circuit, _ = read(deck("gnucap").text)
    named = {element.name: element for element in circuit.elements()}
    ohm, henry, farad = named["r_t_1"], named["l_t_1"], named["c_t_1"]
    assert isinstance(ohm, Resistor)
    assert isinstance(henry, Inductor)
    assert isinstance(farad, Capacitor)
    w0 = omega(CELL.card)
    tank = 1 / (1 / (1j * w0 * henry.henry) + 1j * w0 * farad.farad)
    gain = tank / (tank + ohm.ohm)
    assert np.angle(gain) == pytest.approx(-0.584, abs=6e-4)  # published design
    out = named["g_1_2"]
    assert isinstance(out, Transconductor)
    assert out.siemens == pytest.approx(1.313e-3 * 0.02, rel=5e-4)  # the same
    # oscillator 1 hears the tank of oscillator 2: current flows from ground into n_1
    assert (out.plus, out.minus, out.control_plus) == ("0", "n_1", "u_2")
    buffer = named["e_b_2"]
    assert isinstance(buffer, Amplifier)
    assert (buffer.plus, buffer.control_plus) == ("b_2", "n_2")


@pytest.mark.parametrize("ratio", [0.6, -1.2])
def test_the_pair_is_detuned_by_its_capacitors(ratio: float) -> None:
    circuit, _ = read(deck("gnucap", ratio).text)
    farads = {e.name: e.farad for e in circuit.elements() if isinstance(e, Capacitor)}
    nominal = CELL.card.c_F
    detuning = nominal / farads["c_1"] - nominal / farads["c_2"]
    assert detuning == pytest.approx(0.02 * ratio, rel=1e-12)
    starts = {e.start_V for e in circuit.elements() if e.name in ("c_1", "c_2")}  # type: ignore[union-attr]
    assert starts == {CELL.card.v_mit_V}


def test_dialects_differ_in_the_device_alone() -> None:
    abrupt, smooth = (
        {e.name for e in deck(d).circuit.elements()} for d in ("gnucap", "ngspice")
    )
    assert {"s_1", "s_2"} == abrupt - smooth
    assert {n.rpartition("_")[2] for n in smooth - abrupt} == {"1", "2"}
    switches = [e for e in deck("gnucap").circuit.elements() if isinstance(e, Switch)]
    assert len(switches) == 2


def test_a_pair_beyond_the_trim_is_refused() -> None:
    with pytest.raises(RequestError, match="detuned by 3 lock ranges"):
        deck("gnucap", 3.0)
