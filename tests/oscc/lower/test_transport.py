"""Transport of FSN: coupled to the successor's own oscillator, in deck and graph.

C_n has w1 sum_{u<t} A_tu z_{u+1}^n. The frustration n (theta_{u+1} - theta_u) is wired,
not computed: the weight A_tu stands between oscillator u + 1 and the target.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from oscc.device import card_to_mapping, load_card
from oscc.device.ppv import ppv_series
from oscc.ir.plan import Dwell
from oscc.ir.views import to_networkx
from oscc.lower import lower
from oscc.testing.strategies import phase_models
from oscc.testing.tiny import tiny_model
from oscc.trace import LayerTrace, trace
from oscc_backends.spice import build_deck
from oscc_netlists.dialects import DIALECTS
from oscc_netlists.network import PairTerms, read_pairs
from oscc_netlists.reader import read
from oscc_netlists.settings import default_settings
from oscc_netlists.timing import closed_form

CARD = load_card("vo2-two-state-6k")
TOKENS, PERIODS = 6, 200
MODES = ("prefill", "decode")


def layer_and_program(mode: str = "prefill", **settings: Any) -> tuple[LayerTrace, Any]:
    found = trace(tiny_model("fsn", seed=3, **settings), range(TOKENS), mode=mode)
    program = lower(found, card_to_mapping(CARD))
    return found.layers[0], program


def read_back(program: Any, token: int, coordinate: int, dialect: str) -> PairTerms:
    deck = build_deck(
        program,
        "layer.0.coupling",
        token,
        coordinate,
        Dwell(0, 0, PERIODS, 1.0),
        phi0_rad=0.3,
        dialect=dialect,
    )
    circuit, _ = read(deck.text)
    return read_pairs(circuit)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("mode", "tokens"), [("prefill", range(6)), ("decode", [5])])
def test_the_deck_holds_the_weight_of_u_at_the_oscillator_of_its_successor(
    mode: str, tokens: Any, dialect: str
) -> None:
    layer, program = layer_and_program(mode)
    assert layer.successor_gamma is not None
    assert layer.successor_alpha_rad is not None
    period = closed_form(CARD, default_settings(dialect)).period_s
    for t in tokens:
        for j in (0, 3):
            pairs = read_back(program, t, j, dialect)
            mine = np.array(pairs.route) == "successor"
            told = {
                (int(v), int(n)): (weight, current)
                for v, n, weight, current in zip(
                    pairs.source[mine],
                    pairs.harmonic[mine],
                    pairs.weight[mine],
                    pairs.current_A[mine],
                    strict=True,
                )
            }
            # u < t sends from u + 1; u = t has no successor, and nothing wraps to 0
            assert set(told) == {(u + 1, n) for u in range(t) for n in (1, 2)}
            for (v, n), (weight, current) in told.items():
                assert weight == pytest.approx(
                    layer.weights[j // 2, t, v - 1], rel=1e-9
                )
                c = layer.successor_gamma[n - 1, j] * np.exp(
                    1j
                    * (layer.successor_alpha_rad[n - 1, j] + n * layer.theta_rad[v, j])
                )
                # conj(Gamma_n) I_n = -i kappa g c, kappa = 1 / (P T)
                wanted = -1j * layer.gain_rad[t, j] * weight * c
                wanted /= PERIODS * period * np.conj(ppv_series(CARD, n))
                assert abs(current - wanted) <= 1e-9 * abs(wanted)


@pytest.mark.parametrize("mode", MODES)
def test_the_graph_holds_it_too(mode: str) -> None:
    layer, program = layer_and_program(mode)
    assert layer.successor_gamma is not None
    graph = to_networkx(program.stages[0])
    found = {
        (a, b, facts["harmonic"]): facts["strength"]
        for a, b, facts in graph.edges(data=True)
        if facts["route"] == "successor"
    }
    first = 0 if mode == "prefill" else TOKENS - 1
    wanted = {
        (("source", u + 1, j), ("target", t, j), n): layer.weights[j // 2, t, u]
        * layer.successor_gamma[n - 1, j]
        for t in range(first, TOKENS)
        for u in range(t)
        for j in range(4)
        for n in (1, 2)
    }
    assert set(found) == set(wanted)
    for key, strength in wanted.items():
        assert found[key] == pytest.approx(strength, rel=1e-12)


def test_a_renormalised_row_carries_the_dropped_weight_on_the_others() -> None:
    layer, program = layer_and_program(successor="renormalised")
    t, j = 4, 2
    pairs = read_back(program, t, j, "ngspice")
    mine = (np.array(pairs.route) == "successor") & (pairs.harmonic == 1)
    row = layer.weights[j // 2, t]
    assert pairs.source[mine].tolist() == [1, 2, 3, 4]
    np.testing.assert_allclose(pairs.weight[mine], row[:t] / row[:t].sum(), rtol=1e-9)


@settings(max_examples=15)
@given(phase_models(family="fsn"))
def test_no_weight_of_a_successor_route_wraps(case: Any) -> None:
    """Column v carries A_t,v-1, column 0 nothing, and row t sums to 1 - A_tt."""
    found = trace(*case)
    program = lower(found, card_to_mapping(CARD))
    renormalised = case[0].config.successor == "renormalised"
    for layer, stage in zip(found.layers, program.stages, strict=True):
        (route,) = (c for c in stage.factored if c.route == "successor")
        assert not route.weights[:, :, 0].any()
        assert not route.weights[:, 0].any()
        for t in range(1, len(case[1])):
            row = layer.weights[:, t, :t]
            if renormalised:
                row = row / row.sum(axis=1, keepdims=True)
            np.testing.assert_allclose(route.weights[:, t, 1 : t + 1], row, rtol=1e-9)
            assert not route.weights[:, t, t + 1 :].any()
