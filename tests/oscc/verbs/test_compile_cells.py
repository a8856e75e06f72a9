"""compile of families that lock: settings, refusals, small and odd models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oscc
from oscc.errors import RequestError
from oscc.ir.codec import decode, encode
from oscc.ladder.locks import lock_ratio
from oscc.lower.program import LOCK_FAMILIES
from oscc.testing.locks import lock_checkpoint, write_lock_checkpoint
from oscc.verbs.compile import default_device

TEXT = "import os\nx = 1"


def ratios(program: Any) -> np.ndarray[Any, Any]:
    return np.concatenate([lock_ratio(stage)[0] for stage in program.stages])


def test_the_card_is_that_of_the_family() -> None:
    assert LOCK_FAMILIES == ("ssa",)
    assert default_device("ssa") == "vo2-two-state-5k5"
    program = oscc.compile(lock_checkpoint(), TEXT, periods=60)
    assert program.device["name"] == "vo2-two-state-5k5"
    settings: dict[str, Any] = {"periods": 60, "lock_coupling": 0.02}
    other = oscc.compile(lock_checkpoint(), TEXT, device="vo2-two-state-6k", **settings)
    assert other.device["name"] == "vo2-two-state-6k"


def test_coupling_and_margin_are_settings() -> None:
    model = lock_checkpoint()
    plain = oscc.compile(model, TEXT, periods=60)
    strong = oscc.compile(model, TEXT, periods=60, lock_coupling=0.03)
    for program, rate in ((plain, 0.02), (strong, 0.03)):
        for stage in program.stages:
            _, pull = lock_ratio(stage)
            assert pull == pytest.approx(2 * np.pi * 60 * rate)
            assert stage.fidelity == "oscillators"
    np.testing.assert_allclose(ratios(plain), ratios(strong), rtol=1e-12)
    wide = oscc.compile(model, TEXT, periods=60, lock_margin=0.5)
    none = oscc.compile(model, TEXT, periods=60, lock_margin=0.0)
    assert ratios(none).max() <= 1.0
    assert ratios(plain).max() <= 1.05 < ratios(wide).max() <= 1.5
    locked = [int((ratios(p) < 1).sum()) for p in (none, plain, wide)]
    assert len(set(locked)) == 1  # more cells, none of which locks
    assert "more than 1.5 of their lock range" in wide.notes[0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"update": "probe"}, "`update` is for phases that are read"),
        ({"substeps": 2}, "`substeps` is for phases that are read"),
        ({"scheme": "extrapolated"}, "cells run `plain`"),
        ({"scheme": "corrected"}, "cells run `plain`"),
        ({"fidelity": "summed"}, "a cell is one pair of oscillators"),
        ({"fidelity": "passive"}, "not available yet"),
        ({"coupler": "native-r"}, "use `shaped`"),
        ({"layers": [2]}, "layers 0 to 1"),
        ({"device": "vo2-two-state-7k"}, "vo2-two-state"),
        ({"mean_field": "oscillators"}, "no collective modes"),
        ({"lock_coupling": 0.0}, "coupling"),
        ({"lock_margin": -2.0}, "limit"),
    ],
    ids=str,
)
def test_what_cells_cannot_do_is_refused(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(RequestError, match=message):
        oscc.compile(lock_checkpoint(), TEXT, **settings)


def test_what_the_card_cannot_carry_is_refused_before_anything_runs() -> None:
    model = lock_checkpoint()
    with pytest.raises(RequestError, match=r"at most 0\.14"):
        oscc.compile(model, TEXT, lock_coupling=0.5, periods=60)
    # 3 % of the capacitor are .97 lock ranges at K/w0 = .06
    with pytest.raises(RequestError, match=r"layer\.0\.locks: .* reaches 0\.97"):
        oscc.compile(model, TEXT, lock_coupling=0.06, periods=60)
    program = oscc.compile(model, TEXT, periods=60)
    (entry,) = (r for r in program.provenance["passes"] if r["name"] == "legalise")
    seen = oscc.simulate(program, engine="circuit")
    for row in entry["stages"]:
        wanted = seen.facts[row["stage"]]["injection_ratio"]
        assert row["injection_ratio"] == pytest.approx(wanted)
        assert row["share_of_limit"] == pytest.approx(wanted / 0.8)


@pytest.mark.parametrize("settings", [{}, {"mode": "decode"}], ids=str)
def test_one_token_has_no_pair(settings: dict[str, Any]) -> None:
    with pytest.raises(RequestError, match="there is nothing for oscillators to do"):
        oscc.compile(lock_checkpoint(), "i", **settings)
    two = oscc.compile(lock_checkpoint(arm="published"), "im", **settings)
    assert [stage.targets for stage in two.stages] == [2, 2]  # one pair a head


MODELS = [
    {},
    {"arm": "published"},
    {"heads": 8},
    {"heads": 8, "arm": "published"},
    {"mask": "none"},
    {"mask": "none", "arm": "published"},
    {"lock_top_k": 3},
]


@pytest.mark.parametrize("changes", MODELS, ids=str)
def test_every_model_passes_phase_and_keeps_its_bytes(changes: dict[str, Any]) -> None:
    program = oscc.compile(lock_checkpoint(**changes), TEXT)
    causal = changes.get("mask") != "none"
    assert all(stage.causal is causal for stage in program.stages)
    verdict = oscc.verify(
        program,
        [oscc.simulate(program, engine="phase")],
    )
    assert verdict.levels[0].passed
    assert verdict.levels[1].passed, str(verdict)
    assert decode(encode(program)) == program
    heads = changes.get("heads", 2)
    assert 1 + max(int(s.index[:, 0].max()) for s in program.stages) == heads
    account = oscc.energy(program)
    assert account.pairs == sum(stage.targets for stage in program.stages)


def test_a_decode_has_the_cells_of_the_newest_token() -> None:
    model = lock_checkpoint()
    whole, last = (
        oscc.compile(model, TEXT, periods=60, mode=mode)
        for mode in ("prefill", "decode")
    )
    for all_of_it, one in zip(whole.stages, last.stages, strict=True):
        mine = all_of_it.index[:, 1] == 14
        np.testing.assert_array_equal(one.index, all_of_it.index[mine])
        np.testing.assert_allclose(one.detuning_rad, all_of_it.detuning_rad[mine])
        assert one.begins == 14
    assert oscc.energy(last).tokens == 1
    assert any(note.startswith("Decode:") for note in last.notes)
    with pytest.raises(RequestError, match="needs a causal mask"):
        oscc.compile(lock_checkpoint(mask="none"), TEXT, mode="decode")


def test_some_layers_alone(tmp_path: Any) -> None:
    model = oscc.load(write_lock_checkpoint(tmp_path / "a.safetensors"))
    program = oscc.compile(model, TEXT, layers=[1], periods=60)
    assert [stage.name for stage in program.stages] == ["layer.1.locks"]
    assert program.provenance["checkpoint_sha256"] == model.digest
