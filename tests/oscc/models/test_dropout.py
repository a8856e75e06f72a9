"""Dropout of SSA: which numbers fall, and when."""

import numpy as np
import pytest
import torch

from oscc.corpus import ASCII, Corpus
from oscc.models.base import build_model
from oscc.models.config import ModelConfig
from oscc.models.residual import Dropout, dropping
from oscc.models.training import Trainer, TrainingConfig

CONFIG = ModelConfig(
    "ssa", k=8, layers=1, heads=2, hidden=8, context=16, dropout=0.25, symbols=98
)
TOKENS = torch.arange(32).reshape(2, 16) + 5


def trainer(seed: int = 3) -> Trainer:
    text = ASCII.encode("for x in range(10):\n    print(x)\n" * 40)
    corpus = Corpus("test", "0" * 64, 1, ASCII, text[:1000], text[1000:])
    training = TrainingConfig(steps=8, batch=4, save_every=4, warm_up=3)
    return Trainer(CONFIG, training, corpus, seed, "cpu")


def test_a_share_falls_and_the_rest_keeps_the_mean():
    dropout = Dropout(0.25)
    dropout.rng = np.random.default_rng(0)
    out = dropout(torch.ones(200, 500))
    assert out.unique().tolist() == pytest.approx([0.0, 4 / 3])
    # four standard errors of a share of 1e5 draws
    assert float((out == 0).double().mean()) == pytest.approx(0.25, abs=0.0055)


def test_nothing_falls_outside_a_training_step():
    with torch.no_grad():
        model = build_model(CONFIG, 1)
        plain = build_model(CONFIG.with_changes(dropout=0.0), 1)
        assert torch.equal(model(TOKENS), plain(TOKENS))
        with dropping(model, np.random.default_rng(0)):
            one = model(TOKENS)
        with dropping(model, np.random.default_rng(0)):
            again = model(TOKENS)
        with dropping(model, np.random.default_rng(1)):
            other = model(TOKENS)
        assert torch.equal(one, again)
        assert not torch.equal(one, other)
        assert torch.equal(model(TOKENS), plain(TOKENS))


def test_a_resumed_run_drops_the_same(tmp_path):
    class Stop(Exception):
        pass

    def stop(progress):
        if progress.step == 4:
            raise Stop

    whole, cut, resumed = trainer(), trainer(), trainer()
    whole.run(tmp_path / "whole")
    with pytest.raises(Stop):
        cut.run(tmp_path / "cut", stop)
    resumed.load_state(tmp_path / "cut")
    resumed.run(tmp_path / "cut")
    assert resumed.progress.running_nats == whole.progress.running_nats
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, resumed.model.state_dict()[name]), name
