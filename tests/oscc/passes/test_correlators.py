"""Tanks that the compiler chooses hold what it predicts of them."""

from __future__ import annotations

import numpy as np
import pytest

from oscc.device import load_card
from oscc.errors import RequestError
from oscc.lower.correlate import correlation
from oscc.passes.correlators import QUALITIES, predicted_leakage, tuned
from oscc_sims import correlate_circuit

CARD = load_card("vo2-two-state-20k")  # the most harmonics of the shipped cards


def bank(seed: int = 0, gain: float = 1.0):  # type: ignore[no-untyped-def]
    random = np.random.default_rng(seed)
    query, key = (
        random.uniform(0.2, 2, (12, 8)) * np.exp(1j * random.uniform(-4, 4, (12, 8)))
        for _ in range(2)
    )
    return correlation("layer.0.score", gain * query, key, 2)


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


@pytest.mark.parametrize("accuracy", [0.1, 0.03, 0.01])
def test_the_circuit_stays_within_leakage_and_transient(accuracy: float) -> None:
    one, numbers = tuned(bank(), CARD, accuracy)
    error = (correlate_circuit.solve(CARD, one) - one.digital)[:, one.visible]
    leak, transient = numbers["leakage_rms_nat"], numbers["transient_bound_nat"]
    assert leak <= accuracy / 2
    assert transient <= accuracy / 4
    assert leak - transient < rms(error) < leak + transient
    assert rms(error) < accuracy


def test_it_takes_the_least_quality_that_does() -> None:
    one, _ = tuned(bank(), CARD, 0.03)
    below = QUALITIES[QUALITIES.index(one.quality) - 1]
    assert predicted_leakage(one, CARD, one.quality) <= 0.015
    assert predicted_leakage(one, CARD, below) > 0.015


def test_an_accuracy_out_of_reach_is_refused_with_what_to_do() -> None:
    with pytest.raises(RequestError, match="--accuracy-mrad"):
        tuned(bank(gain=100), CARD, 1e-3)


def test_a_correlation_of_no_size_needs_no_time() -> None:
    one, _ = tuned(bank(gain=0.0), CARD, 0.01)
    assert one.settle_periods == 0
