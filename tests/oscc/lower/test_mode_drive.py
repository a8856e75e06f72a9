"""Modes read by oscillators: the flow of a reader, the inversion, the whole loop."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from oscc.device import card_to_mapping, load_card
from oscc.errors import RequestError
from oscc.ir import Modes, Stage
from oscc.ir.codec import decode, encode
from oscc.ir.interpret import field, interpret
from oscc.ir.views import coupled_pairs, pair_macs
from oscc.lower import lower
from oscc.lower.mode_drive import after_flow, read_modes, reader_gain, reader_starts
from oscc.lower.modes import fields
from oscc.passes.dwell import accuracy_share
from oscc.testing.flat import modes_stage
from oscc.testing.tiny import tiny_checkpoint, tiny_model, tiny_program, tiny_stage
from oscc.trace import ModesTrace, trace
from oscc.verbs.closed_loop import ClosedLoop
from oscc.verbs.compile import compile
from oscc_backends import phase
from oscc_sims.phase import solve

CARD = card_to_mapping(load_card("vo2-two-state-6k"))
TOKENS = [3, 1, 4, 1, 5]


def one_mode(order: int, strength: float = 1.0) -> Modes:
    one, zero = np.ones((1, 1)), np.zeros((1, 1))
    return Modes(np.array([order]), strength * one, zero, one, zero, zero, zero)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("mode", [0.3 - 0.4j, -1.5 + 0.1j, 2.5j, 0.0])
def test_a_reader_obeys_its_flow(order: int, mode: complex) -> None:
    """The closed form against scipy on the differential equation itself."""
    modes = one_mode(order, 1.3)
    gain = reader_gain(modes)[0]
    assert gain == pytest.approx(1 / (1.3 * order))
    found = after_flow(modes, np.array([[mode]]))[0, 0]

    def rate(_: float, phi: np.ndarray) -> np.ndarray:
        return np.asarray(gain * (np.exp(-1j * order * phi) * mode).imag)

    start = reader_starts(modes)[0]
    wanted = solve_ivp(rate, (0, 1), start, rtol=1e-11, atol=1e-12).y[:, -1]
    assert np.abs(found - wanted).max() < 1e-9


@given(
    st.integers(1, 3),
    st.floats(0.0, 6.0),
    st.floats(-np.pi, np.pi),
    st.floats(0.2, 4.0),
)
@settings(max_examples=200)
def test_three_readers_tell_every_mode(
    order: int, size: float, angle: float, strength: float
) -> None:
    """Sizes up to six times what random phases give, at every angle."""
    modes = one_mode(order, strength)
    sums = np.array([[strength * size * np.exp(1j * angle)]])
    found = read_modes(modes, after_flow(modes, sums).reshape(1, 3))
    # tanh leaves 1e-16 / (1 - w^2) of the size
    assert abs(found - sums)[0, 0] < 1e-11 * strength * np.exp(size)


def test_an_error_of_a_reader_grows_two_to_three_times_at_most() -> None:
    """Read-outs off by a milliradian leave the modes of a token near, at all angles.

    With sizes up to 1.7 times rms, which holds 99 % of those of the shipped model.
    """
    modes, random = one_mode(1), np.random.default_rng(1)
    angle = np.linspace(-np.pi, np.pi, 721)
    sums = np.outer([0.1, 0.5, 1.0, 1.7], np.exp(1j * angle)).reshape(-1, 1)
    exact = after_flow(modes, sums).reshape(-1, 3)
    noisy = exact + 1e-3 * random.normal(size=exact.shape)
    error = np.abs(read_modes(modes, noisy) - sums)
    assert np.sqrt(np.mean(error**2)) < 5e-3
    assert error.max() < 5e-2


def test_readings_that_no_mode_could_give_stay_finite() -> None:
    modes, random = one_mode(2), np.random.default_rng(2)
    found = read_modes(modes, random.uniform(-9, 9, (2000, 3)))
    assert np.isfinite(found).all()
    assert np.abs(found).max() <= 12.0 + 1e-9  # artanh tanh 6, twice, over n g = 1


def lowered(**changes: Any) -> tuple[Any, tuple[Stage, ...]]:
    found = trace(tiny_model("fsn-mf", seed=4, layers=2, **changes), TOKENS)
    return found, lower(found, CARD, mean_field="oscillators").stages


def test_the_stage_of_the_readers_is_exact_and_holds_c() -> None:
    found, stages = lowered()
    names = [stage.name for stage in stages[:3]]
    assert names == ["layer.0.coupling", "layer.0.mode_drive", "layer.0.modes"]
    drive, step = stages[1], found.layers[1]
    assert drive.grid == (len(TOKENS), 3 * 6)
    assert np.abs(interpret(drive) - drive.digital_rad).max() < 1e-9
    moved = solve(phase.problem(drive))
    assert np.abs(moved - drive.digital_rad).max() < 1e-9
    # every reader receives the mode as the model defines it
    real, imaginary = (part.reshape(2, *drive.grid) for part in field(drive))
    for m in range(6):
        order = 1 if m < 3 else 2
        wanted = np.exp(1j * order * step.theta_rad) @ step.into[m]
        for column in range(3 * m, 3 * m + 3):
            seen = real[order - 1, :, column] + 1j * imaginary[order - 1, :, column]
            assert np.abs(seen - wanted).max() < 1e-12


def test_what_is_read_gives_the_stage_of_the_modes() -> None:
    found, stages = lowered(mode_response="square")
    for drive, modes, step in zip(
        stages[1::3], stages[2::3], found.layers[1::2], strict=True
    ):
        assert isinstance(step, ModesTrace)
        assert modes.modes is not None
        sums = read_modes(modes.modes, interpret(drive).reshape(drive.grid))
        again = replace(modes, **fields(step, sums))
        assert np.abs(interpret(again) - interpret(modes)).max() < 1e-8


def test_a_model_trained_with_euler_is_read_by_a_flow() -> None:
    found = trace(tiny_model("fsn-mf", "euler"), TOKENS)
    stages = lower(found, CARD, mean_field="oscillators", fidelity="oscillators").stages
    assert [s.update for s in stages] == ["probe", "flow", "probe"]
    assert [s.fidelity for s in stages] == ["oscillators", "pairwise", "pairwise"]


def test_counts_credit_every_mode_once() -> None:
    _, stages = lowered()
    drive, tokens = stages[1], len(TOKENS)
    assert drive.readers == 3
    assert coupled_pairs(drive) == tokens * 3 * 6 * 4
    assert pair_macs(drive) == tokens * 6 * 4 * 4
    assert accuracy_share(drive) < accuracy_share(stages[2]) == 1.0
    program = lower(trace(tiny_model("fsn-mf"), TOKENS), CARD, mean_field="oscillators")
    counts = {o.name: (o.count, o.unit) for o in program.host_operations}
    assert "modes" not in counts
    assert counts["mode_equations"] == (23 * tokens * 6, "mac")
    assert counts["mode_angles"] == (6 * tokens * 6, "sincos")
    assert counts["mode_logarithms"] == (tokens * 6, "exp")
    assert counts["mode_weights"] == (tokens * 4 * 6, "mac")


def test_the_stage_survives_the_file() -> None:
    _, stages = lowered()
    program = tiny_program(stages[1])
    back = decode(encode(program))
    assert back == program
    assert back.stages[0].readers == 3


def test_readers_must_divide_the_targets() -> None:
    with pytest.raises(RequestError, match="3 readers of each field"):
        modes_stage(readers=3)
    with pytest.raises(RequestError, match="listed pairs"):
        tiny_stage(readers=2)


def test_families_without_modes_have_none_to_read() -> None:
    with pytest.raises(RequestError, match="`fsn` has no collective modes"):
        lower(trace(tiny_model(), TOKENS), CARD, mean_field="oscillators")
    with pytest.raises(RequestError, match="host, oscillators"):
        lower(trace(tiny_model("fsn-mf"), TOKENS), CARD, mean_field="both")


def test_readers_are_asked_for_a_share_of_the_accuracy() -> None:
    model = tiny_checkpoint("fsn-mf", gain_rad=3.0)
    program = compile(model, "import os", mean_field="oscillators", accuracy_mrad=20)
    (record,) = [p for p in program.provenance["passes"] if p["name"] == "choose_dwell"]
    told = {row["stage"]: row for row in record["stages"]}
    assert told["layer.0.mode_drive"]["asked_rad"] == pytest.approx(4e-3)
    assert told["layer.0.mode_drive"]["predicted_rms_rad"] <= 0.6 * 4e-3
    assert "asked_rad" not in told["layer.0.modes"]


def test_one_new_token_is_read_by_its_own_readers() -> None:
    """Decode: the last token alone, through readers, modes and the loop."""
    model = tiny_checkpoint("fsn-mf", layers=2, gain_rad=3.0)
    settings: dict[str, Any] = {"mean_field": "oscillators", "periods": 6}
    program = compile(model, "import os", mode="decode", **settings)
    assert [s.grid[0] for s in program.stages] == [1] * 6
    assert {s.begins for s in program.stages} == {8}
    whole = compile(model, "import os", **settings)
    for one, all_of in zip(program.stages, whole.stages, strict=True):
        last = all_of.on_grid(interpret(all_of))[-1:]
        assert np.abs(one.on_grid(interpret(one)) - last).max() < 1e-9
    loop = ClosedLoop(program, model)
    seen = loop.run("phase")
    for stage in program.stages:
        digital = stage.on_grid(stage.digital_rad)
        assert np.abs(seen.phase(stage.name) - digital).max() < 1e-6
    counts = {(o.name, o.layer): o.count for o in program.host_operations}
    assert counts["mode_equations", 0] == 23 * 6


@pytest.mark.parametrize("layers", [None, [1]])
def test_the_closed_loop_runs_through_the_readers(layers: Any) -> None:
    model = tiny_checkpoint("fsn-mf", layers=2, gain_rad=3.0)
    program = compile(
        model,
        "import os",
        mean_field="oscillators",
        layers=layers,
        periods=6,
        substeps=2,
    )
    loop = ClosedLoop(program, model)
    seen = loop.run("phase")
    assert set(seen.stages) == {stage.name for stage in program.stages}
    for stage in program.stages:
        digital = stage.on_grid(stage.digital_rad)
        assert np.abs(seen.phase(stage.name) - digital).max() < 1e-6
    near = loop.run("circuit")
    error = near.phase("layer.1.modes") - seen.phase("layer.1.modes")
    assert 0 < np.sqrt(np.mean(error**2)) < 0.03
