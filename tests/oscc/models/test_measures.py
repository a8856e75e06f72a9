"""Measures of a trained model against counts by hand and limits known without it."""

import numpy as np
import pytest
import torch

from oscc.models.base import build_model
from oscc.models.config import ModelConfig
from oscc.models.disturbance import Disturbance
from oscc.models.measures import (
    DEPTHS,
    bits_by_copy_depth,
    bits_under,
    copy_depths,
    lock_fractions,
    order_parameters,
)

SIZES = {"k": 8, "layers": 2, "heads": 2, "hidden": 6, "context": 24, "modes": 4}
TEXT = np.random.default_rng(0).integers(0, 6, 4000).astype(np.uint8)


def slow_depth(text, i):
    """Longest suffix of text[: i + 1] that is also a suffix of some text[: j + 1]."""
    best = 0
    for j in range(i):
        length = 0
        while length <= j and text[j - length] == text[i - length]:
            length += 1
        best = max(best, length)
    return best


def test_copy_depths_are_those_of_a_search():
    windows = np.random.default_rng(1).integers(0, 3, (5, 40))
    found = copy_depths(windows)
    assert found.tolist() == [[slow_depth(w, i) for i in range(40)] for w in windows]
    assert found.max() >= 4


def test_bins_hold_every_position_and_give_the_mean():
    config = ModelConfig("fsn", **SIZES)
    model = build_model(config)
    rows = bits_by_copy_depth(model, config, TEXT, 3)
    assert [row["from_depth"] for row in rows] == list(DEPTHS)
    assert sum(row["events"] for row in rows) == 3 * 16 * 24
    with torch.no_grad():
        model.beta.zero_()  # all symbols alike: log2 98 bits whatever the depth
    flat = bits_by_copy_depth(model, config, TEXT, 1)
    used = [row for row in flat if row["bits"] is not None]
    assert len(used) >= 2
    assert all(row["bits"] == pytest.approx(np.log2(98), abs=1e-5) for row in used)


@pytest.mark.parametrize("family", ["kuramoto", "fsn-mf"])
def test_order_parameters_of_aligned_and_of_scattered_tokens(family):
    config = ModelConfig(family, "euler", **SIZES)
    model = build_model(config)
    with torch.no_grad():
        model.embedding.fill_(0.3)
    rows = order_parameters(model, config, TEXT, 1)
    assert len(rows) == 2
    assert rows[0] == pytest.approx(
        {"global": 1, "local": 1, "local_other": 1}, abs=1e-5
    )
    with torch.no_grad():  # two symbols opposite each other
        model.embedding[::2] += np.pi
    spread = order_parameters(model, config, TEXT, 2)[0]
    # 24 tokens of two kinds: |mean| is |2 n/24 - 1|, about sqrt(2 / (24 pi)) = .16
    assert spread["global"] == pytest.approx(0.16, abs=0.06)
    assert spread["local_other"] < spread["local"] < 1


def test_lock_fractions_go_from_itself_alone_to_all():
    config = ModelConfig("ssa", **SIZES)
    model = build_model(config)
    with torch.no_grad():
        for block in model.blocks:
            block.attention.pull.fill_(1e4)
            block.attention.decay.fill_(-30.0)
    assert lock_fractions(model, config, TEXT, 1) == [[1.0, 1.0], [1.0, 1.0]]
    with torch.no_grad():
        for block in model.blocks:
            block.attention.pull.fill_(-30.0)
    pairs = 24 * 25 / 2
    for row in lock_fractions(model, config, TEXT, 1):
        assert row == pytest.approx([24 / pairs, 24 / pairs], abs=1e-12)


def test_more_noise_is_not_the_same_and_none_is_the_undisturbed_model():
    config = ModelConfig("fsn", **SIZES)
    model = build_model(config)
    sizes = [Disturbance(), Disturbance(0.01), Disturbance(1.0)]
    none, little, much = bits_under(sizes, model, config, TEXT, batches=2)
    assert abs(little - none) < abs(much - none)
    assert bits_under(sizes[:1], model, config, TEXT, batches=2) == [none]
