"""The n-gram baseline against counting with dictionaries."""

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from oscc.testing.scripts import load_script

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "ngram_baseline.py"


@pytest.fixture(scope="module")
def baseline():
    return load_script(SCRIPT)


def naive(train, size, order):
    """p(symbol | history) by dictionaries of followers."""
    followers = defaultdict(Counter)
    for n in range(1, order + 1):
        for i in range(len(train) - n + 1):
            gram = tuple(train[i : i + n].tolist())
            followers[gram[:-1]][gram[-1]] += 1

    def probability(history, symbol):
        lower = probability(history[1:], symbol) if history else 1 / size
        seen = followers.get(history)
        if not seen:
            return lower
        total, kinds = sum(seen.values()), len(seen)
        return (seen[symbol] + kinds * lower) / (total + kinds)

    return probability


@pytest.mark.parametrize("order", [2, 3, 4])
def test_bits_equal_a_dictionary_count(baseline, order):
    rng = np.random.default_rng(0)
    train = (rng.integers(0, 5, 2000) * rng.integers(0, 2, 2000)).astype(np.uint8)
    text = rng.integers(0, 5, 150).astype(np.uint8)
    probability = naive(train, 5, order)
    wanted = [
        -np.log2(probability(tuple(text[max(0, i - order + 1) : i].tolist()), text[i]))
        for i in range(1, len(text))
    ]
    found = baseline.WittenBell(train, 5, order).bits(text, order)
    # the benchmark puts the first symbols, whose history is short, first: so means
    assert found.mean() == pytest.approx(np.mean(wanted), abs=1e-12)
    assert sum(probability((1, 2, 0)[: order - 1], s) for s in range(5)) == (
        pytest.approx(1.0)
    )
