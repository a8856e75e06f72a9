"""Agreement of models from their logits, against torch and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from oscc.ladder.agreement import bits, divergence_nats, log_softmax, top1

RANDOM = np.random.default_rng(0)


def test_log_softmax_is_that_of_torch_and_survives_large_logits() -> None:
    logits = RANDOM.normal(0, 300, (5, 7))
    wanted = torch.log_softmax(torch.from_numpy(logits), -1).numpy()
    assert np.abs(log_softmax(logits) - wanted).max() < 1e-10


def test_bits_are_the_cross_entropy_of_torch() -> None:
    logits, following = RANDOM.normal(size=(2, 5, 7)), RANDOM.integers(0, 7, (2, 5))
    found = bits(log_softmax(logits), following)
    assert found.shape == (2, 5)
    nats = torch.nn.functional.cross_entropy(
        torch.from_numpy(logits).flatten(0, 1), torch.from_numpy(following).flatten()
    )
    assert found.mean() == pytest.approx(float(nats) / math.log(2), rel=1e-12)


def test_divergence_is_that_of_known_distributions() -> None:
    one = np.log([[0.5, 0.5], [0.25, 0.75]])
    other = np.log([[0.5, 0.5], [0.75, 0.25]])
    found = divergence_nats(one, other)
    assert found[0] == pytest.approx(0.0, abs=1e-15)
    # .25 ln(1/3) + .75 ln 3
    assert found[1] == pytest.approx(0.5 * math.log(3.0), rel=1e-12)


def test_top1_counts_equal_favourites() -> None:
    one = np.array([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0]])
    other = np.array([[0.0, 9.0, 1.0], [0.0, 0.0, 1.0]])
    assert top1(one, other).tolist() == [1.0, 0.0]
