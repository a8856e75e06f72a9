"""LVS: a deck read back is the coupling graph that it was written from."""

from __future__ import annotations

import numpy as np
import pytest

from oscc.arrays import ComplexArray, FloatArray
from oscc.device import load_card
from oscc.errors import RequestError
from oscc.seeds import stream
from oscc_netlists.couplers import Pull, RouteTerms
from oscc_netlists.deck import Deck, reference_deck, target_deck
from oscc_netlists.lint import lint
from oscc_netlists.network import injected_A, read_pairs
from oscc_netlists.reader import read
from oscc_netlists.settings import DIALECTS, default_settings
from oscc_netlists.timing import closed_form

CARD = load_card("vo2-two-state-6k")
# a sum of S terms of either sign: rounding of each is relative to the largest
ROUNDING = 1e-12


def pull(seed: int, sources: int = 5, offset: float = 0.0) -> Pull:
    random = stream(seed, "pull")
    routes = tuple(
        RouteTerms(
            route,
            np.arange(sources),
            random.normal(size=sources),
            np.array([1, 2, 3]),
            np.asarray(
                1e-5 * random.normal(size=3) * np.exp(1j * random.normal(size=3))
            ),
        )
        for route in ("present", "successor")
    )
    return Pull(random.uniform(-9, 9, sources), routes, offset)


def deck(dialect: str, what: Pull, fidelity: str = "pairwise") -> Deck:
    timing = closed_form(CARD, default_settings(dialect))
    return target_deck(CARD, what, timing, 4, 1.2, fidelity=fidelity)


def wanted_terms(what: Pull) -> tuple[list[str], FloatArray, ComplexArray]:
    """Names, weights and currents of all pair terms, straight from the definition."""
    names, weights, currents = [], [], []
    for terms in what.routes:
        for order, unit in zip(terms.harmonic, terms.unit_A, strict=True):
            for token, size in zip(terms.source, terms.weight, strict=True):
                names.append(f"{terms.route} {order} {token}")
                weights.append(size)
                turn = np.exp(1j * order * what.theta_rad[token])
                currents.append(unit * size * turn)
    return names, np.array(weights), np.array(currents)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_pair_term_reads_back(dialect: str) -> None:
    what = pull(1)
    names, weights, currents = wanted_terms(what)
    circuit, _ = read(deck(dialect, what).text)
    found = read_pairs(circuit)
    told = [
        f"{route} {order} {token}"
        for route, order, token in zip(
            found.route, found.harmonic, found.source, strict=True
        )
    ]
    assert told == names
    np.testing.assert_allclose(found.weight, weights, rtol=ROUNDING)
    # phases pass through degrees or a delay: a few ulp of a turn
    np.testing.assert_allclose(found.current_A, currents, rtol=1e-11)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_summed_injects_what_pairwise_injects(dialect: str) -> None:
    what = pull(2, offset=-3e-6)
    _, _, currents = wanted_terms(what)
    pairs = injected_A(deck(dialect, what).circuit)
    host = injected_A(deck(dialect, what, "summed").circuit)
    assert sorted(pairs) == sorted(host) == [0, 1, 2, 3]
    assert pairs[0] == pytest.approx(-3e-6, rel=1e-12)
    for order in (1, 2, 3):
        assert abs(pairs[order] - host[order]) <= 1e-9 * abs(host[order])
    total = sum(pairs[order] for order in (1, 2, 3))
    assert abs(total - currents.sum()) <= 1e-9 * abs(currents.sum())


@pytest.mark.parametrize("fidelity", ["pairwise", "summed"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_decks_are_sound_and_read_back_to_themselves(
    dialect: str, fidelity: str
) -> None:
    found = deck(dialect, pull(3, offset=1e-6), fidelity)
    assert lint(found.circuit) == ()
    circuit, told = read(found.text)
    assert told == dialect
    assert list(circuit.elements()) == list(found.circuit.elements())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_reference_deck_is_sound(dialect: str) -> None:
    found = reference_deck(CARD, default_settings(dialect))
    assert lint(found.circuit) == ()


def test_a_zero_pull_still_makes_a_deck() -> None:
    nothing = Pull(np.zeros(1), ())
    assert lint(deck("ngspice", nothing).circuit) == ()
    assert injected_A(deck("ngspice", nothing).circuit) == {}


def test_a_source_at_a_wrong_frequency_is_found() -> None:
    text = deck("ngspice", pull(4)).text
    line = next(x for x in text.splitlines() if x.startswith("v_2_2_p "))
    words = line.split()
    words[5] = repr(float(words[5]) * 1.01)
    circuit, _ = read(text.replace(line, " ".join(words)))
    with pytest.raises(RequestError, match="carrier"):
        read_pairs(circuit)


def test_a_swapped_wire_is_found() -> None:
    what = pull(5)
    text = deck("gnucap", what).text.replace("x_1_p u_0_1_p", "x_1_p u_1_1_p")
    circuit, _ = read(text)
    _, _, currents = wanted_terms(what)
    found = read_pairs(circuit).current_A
    assert np.abs(found - currents).max() > 1e-3 * np.abs(currents).max()
