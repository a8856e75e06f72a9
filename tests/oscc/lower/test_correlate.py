"""Lowered scores and logits are those of the model."""

from __future__ import annotations

import numpy as np
import pytest

from oscc.device import card_to_mapping, load_card
from oscc.errors import RequestError
from oscc.ir.interpret import interpret_correlation
from oscc.lower import lower
from oscc.testing.tiny import tiny_model
from oscc.trace import LayerTrace, forward_with, trace

CARD = card_to_mapping(load_card("vo2-two-state-6k"))
TOKENS = [5, 1, 5, 9, 30, 2]
FAMILIES = ("kuramoto", "fsn", "fsn-no-phase", "fsn-mf")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("gates", ["none", "softplus"])
def test_softmax_of_the_lowered_score_is_the_attention(family: str, gates: str) -> None:
    model = tiny_model(family, layers=2, gates=gates, query_offset=True)
    found = trace(model, TOKENS)
    program = lower(found, CARD, score="hardware")
    layers = [step for step in found.layers if isinstance(step, LayerTrace)]
    names = [one.name for one in program.correlations]
    assert names == ["layer.0.score", "layer.1.score", "read_out.logits"]
    for step, one in zip(layers, program.correlations, strict=False):
        scores = np.where(one.visible, interpret_correlation(one), -np.inf)
        grown = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights = grown / grown.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(weights, step.weights, atol=1e-12)
    logits = interpret_correlation(program.correlations[-1])[0]
    np.testing.assert_allclose(logits, found.logits, atol=1e-12)


def test_the_drift_is_a_phase_ahead_in_both_banks() -> None:
    model = tiny_model("fsn", gates="none")
    found = trace(model, [7, 7, 7])
    one = lower(found, CARD, score="hardware").correlations[0]
    drift = model.coupling_layers()[0].score.drift.detach().double().numpy()
    ahead = np.angle(np.exp(1j * (one.key_rad[2] - one.key_rad[0])))
    np.testing.assert_allclose(ahead, np.angle(np.exp(2j * drift)), atol=1e-12)


def test_decoding_keeps_the_rows_of_the_last_token() -> None:
    model = tiny_model()
    whole = lower(trace(model, TOKENS), CARD, score="hardware")
    last = lower(trace(model, TOKENS, mode="decode"), CARD, score="hardware")
    for one, other in zip(last.correlations, whole.correlations, strict=True):
        np.testing.assert_array_equal(one.digital, other.digital[:, -1:])
        np.testing.assert_array_equal(one.visible, other.visible[-1:])
        assert one.key_rad.shape == other.key_rad.shape


def test_the_host_loses_exactly_the_products_that_are_formed() -> None:
    found = trace(tiny_model(layers=2), TOKENS)
    on_host = lower(found, CARD, layers=[1]).host_operations
    part = lower(found, CARD, score="hardware", layers=[1])
    left = [(o.name, o.layer) for o in on_host if o not in part.host_operations]
    assert left == [("score", 1), ("read_out", -1)]
    score = next(o for o in on_host if (o.name, o.layer) == ("score", 1))
    assert score.count == part.correlations[0].macs


def test_unknown_words_and_families_without_a_score_are_refused() -> None:
    from oscc.lower.program import require_scored_by

    with pytest.raises(RequestError, match="score"):
        lower(trace(tiny_model(), TOKENS), CARD, score="both")
    with pytest.raises(RequestError, match="no score of phases"):
        require_scored_by("ssa", "hardware")


def test_scores_that_a_caller_forms_reach_the_softmax_and_the_logits() -> None:
    model = tiny_model(layers=2)
    exact = forward_with(model, [TOKENS])
    asked = []

    def doubled(number, query, key):  # type: ignore[no-untyped-def]
        asked.append(number)
        heads = 1 if number < 0 else 2
        parts = [bank.reshape(len(bank), heads, -1) for bank in (query, key)]
        return np.einsum("thj,uhj->htu", parts[0], parts[1].conj()).real

    same = forward_with(model, [TOKENS], None, doubled)
    np.testing.assert_allclose(same, exact, atol=1e-12)
    assert asked == [0, 1, -1]
    other = forward_with(model, [TOKENS], None, lambda *a: 2 * doubled(*a))
    assert np.abs(other - exact).max() > 1e-3
