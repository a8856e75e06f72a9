"""Modes as a stage: sources, pairs and coefficients against loops and closed forms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from oscc.device import card_to_mapping, load_card
from oscc.ir import Modes, Stage
from oscc.ir.interpret import field, interpret
from oscc.ir.modes import held
from oscc.ir.views import coupled_pairs, pair_macs, pair_terms
from oscc.lower import lower
from oscc.lower.modes import modes_of
from oscc.models.base import build_model
from oscc.models.config import ModelConfig
from oscc.testing.flat import grid_index
from oscc.testing.tiny import tiny_model
from oscc.trace import ModesTrace, trace
from oscc_backends import phase
from oscc_sims.phase import solve

CARD = card_to_mapping(load_card("vo2-two-state-6k"))
TOKENS = [3, 1, 4, 1, 5]


def steps(update: str = "flow", **sizes: Any) -> tuple[Any, tuple[Stage, ...]]:
    model = tiny_model("fsn-mf", update, **{"seed": 4, "layers": 2, **sizes})
    return model, lower(trace(model, TOKENS), CARD).stages


@st.composite
def models(draw: st.DrawFn) -> tuple[Any, list[int]]:
    """A random FSN-MF, and an input for it."""
    heads = draw(st.integers(1, 3))
    model = tiny_model(
        "fsn-mf",
        draw(st.sampled_from(("flow", "euler"))),
        seed=draw(st.integers(0, 2**32)),
        gain_rad=draw(st.floats(0.0, 8.0)),
        heads=heads,
        k=heads * draw(st.integers(1, 4)),
        modes=2 * draw(st.integers(1, 6)),
        layers=draw(st.integers(1, 2)),
        bound=draw(st.sampled_from(("B0", "B1", "B4"))),
        mode_response=draw(st.sampled_from(("linear", "square"))),
    )
    return model, draw(st.lists(st.integers(0, 97), min_size=1, max_size=8))


@settings(max_examples=25)
@given(models())
def test_ir_and_phase_are_the_digital_layer(case: tuple[Any, list[int]]) -> None:
    model, tokens = case
    for stage in lower(trace(model, tokens), CARD).stages:
        found = interpret(stage)
        assert np.abs(found - stage.digital_rad).max() < 1e-6
        if stage.update == "flow":
            moved = solve(phase.problem(stage)).reshape(found.shape)
            assert np.abs(moved - found).max() < 1e-6


@pytest.mark.parametrize("response", ["linear", "square"])
def test_the_field_is_the_equation_written_as_loops(response: str) -> None:
    """c, d and pin as torch holds them, summed one by one; nothing from the IR."""
    model, stages = steps(mode_response=response)
    stage, layer = stages[1], model.coupling_layers()[0]
    c, d, pin = (
        complex_of(part) for part in (layer.mode_in, layer.mode_out, layer.pin)
    )
    theta = stage.phi0_rad.reshape(stage.grid)
    real, imaginary = (part.reshape(2, *stage.grid) for part in field(stage))
    for t in range(len(TOKENS)):
        wanted = pin.copy()
        for m in range(6):
            order = 1 if m < 3 else 2
            z = sum(c[m, j] * np.exp(1j * order * theta[t, j]) for j in range(4))
            z /= np.sqrt(4)
            size = 1.0 if response == "linear" else abs(z) ** 2
            wanted[order - 1] += d[:, m] * size * z
        found = real[:, t] + 1j * imaginary[:, t]
        assert np.abs(found - wanted).max() < 1e-12


def complex_of(part: torch.Tensor) -> np.ndarray:
    values = part.detach().double().numpy()
    return np.asarray(values[0] + 1j * values[1])


@pytest.mark.parametrize("number", [0, 1])
def test_the_step_of_torch_is_that_of_the_stage(number: int) -> None:
    model, stages = steps("euler", seed=2)
    stage = stages[2 * number + 1]
    assert stage.name == f"layer.{number}.modes"
    layer = model.double().coupling_layers()[number]
    theta = torch.tensor(stage.phi0_rad.reshape(1, *stage.grid))
    with torch.no_grad():
        wanted = layer.couple(layer.mode_state(theta))[0].numpy()
    assert np.abs(interpret(stage).reshape(stage.grid) - wanted).max() < 1e-12


def test_one_mode_of_one_coordinate_has_a_closed_form() -> None:
    """Z = z, so a target is pulled towards its own start turned by arg d.

    x = phi - theta - arg d obeys dx/dtau = -g |d| sin x.
    """
    strength, offset, gain, start = 0.8, 1.1, 1.7, 2.3
    one, zero = np.ones((1, 1)), np.zeros((1, 1))
    modes = Modes(np.array([1]), one, zero, strength * one, offset * one, zero, zero)
    sources = held(modes, np.array([[start]]))
    stage = Stage(
        name="layer.0.modes",
        theta_rad=sources.theta_rad,
        phi0_rad=np.array([start]),
        gain_rad=np.array([gain]),
        detuning_rad=np.zeros(1),
        couplings=(sources.edges,),
        digital_rad=np.array([start]),
        index=grid_index(1, 1),
        source_index=sources.source_index,
        modes=modes,
    )
    x = 2 * np.arctan(np.tan(-offset / 2) * np.exp(-gain * strength))
    assert abs(interpret(stage)[0] - (start + offset + x)) < 1e-9


def test_sources_show_the_angle_of_their_mode_at_their_harmonic() -> None:
    _, stages = steps()
    stage = stages[3]
    assert stage.modes is not None
    sums = stage.modes.sums(stage.phi0_rad.reshape(stage.grid))
    theta = stage.theta_rad.reshape(len(TOKENS), 7)
    shown = np.exp(1j * stage.modes.order * theta[:, :6])
    assert np.abs(shown - sums / np.abs(sums)).max() < 1e-12
    assert not theta[:, 6].any()  # the pin
    assert stage.source_index is not None
    assert stage.source_index[-1].tolist() == [4, 6]


def test_both_coefficients_stand_in_the_stage() -> None:
    """d of every pair is its strength over the size of its mode."""
    model, stages = steps()
    stage, layer = stages[1], model.coupling_layers()[0]
    assert stage.modes is not None
    modes, edges = stage.modes, stage.edges
    c = modes.into_gamma * np.exp(1j * modes.into_alpha_rad)
    assert np.abs(c - complex_of(layer.mode_in) / np.sqrt(4)).max() < 1e-12
    sums = np.abs(modes.sums(stage.phi0_rad.reshape(stage.grid)))
    token, number = np.divmod(edges.source, 7)
    mine = number < 6
    d = edges.coefficients[mine] / sums[token[mine], number[mine]]
    wanted = complex_of(layer.mode_out)
    assert np.abs(d - wanted[edges.target[mine] % 4, number[mine]]).max() < 1e-12


def test_a_source_of_the_second_harmonic_may_be_half_a_turn_off() -> None:
    """arg(Z) / 2 is known but for half a turn, which harmonic 2 does not show."""
    _, stages = steps()
    stage = stages[1]
    assert stage.modes is not None
    theta = np.array(stage.theta_rad).reshape(len(TOKENS), 7)
    theta[:, 3:6] += np.pi
    turned = replace(stage, theta_rad=theta.ravel())
    assert np.abs(interpret(turned) - interpret(stage)).max() < 1e-9


def test_counts_of_pairs_and_of_digital_work() -> None:
    _, stages = steps()
    stage, tokens = stages[1], len(TOKENS)
    # 6 modes and one pin that shows both harmonics
    assert coupled_pairs(stage) == tokens * 4 * 7
    assert pair_terms(stage) == tokens * 4 * 8
    # a complex product is four, a complex constant two
    assert pair_macs(stage) == tokens * 4 * (6 * 4 + 2 * 2)
    assert pair_macs(stages[0]) == 2 * pair_terms(stages[0])


def test_without_fixed_fields_there_is_no_pin() -> None:
    sizes = {"k": 4, "layers": 1, "heads": 2, "context": 16, "modes": 4}
    model = build_model(ModelConfig("fsn-mf", **sizes), 0)
    stage = lower(trace(model, TOKENS), CARD).stages[1]  # type: ignore[arg-type]
    assert stage.theta_rad.size == len(TOKENS) * 4
    assert stage.edges.target.size == len(TOKENS) * 4 * 4


def test_a_layer_brings_both_of_its_stages() -> None:
    found = trace(tiny_model("fsn-mf", layers=3), TOKENS)
    program = lower(found, CARD, layers=[2, 0])
    assert [stage.name for stage in program.stages] == [
        *("layer.0.coupling", "layer.0.modes"),
        *("layer.2.coupling", "layer.2.modes"),
    ]
    counts = {
        (o.name, o.layer): (o.count, o.unit)
        for o in program.host_operations
        if o.name.startswith("mode")
    }
    tokens = len(TOKENS)
    assert counts["modes", 1] == (4 * tokens * (4 * 6 + 4), "mac")
    assert counts["mode_sizes", 1] == (2 * tokens * 6, "mac")
    assert counts["mode_weights", 2] == (tokens * 4 * 6, "mac")
    assert counts["mode_phases", 0] == (tokens * 6, "sincos")
    fed = [o for o in program.host_operations if o.name == "feed_forward"]
    assert [o.count for o in fed] == [0, 0, 0]


def test_real_cells_are_for_attention_and_the_program_says_so() -> None:
    found = trace(tiny_model("fsn-mf"), TOKENS)
    program = lower(found, CARD, fidelity="oscillators")
    assert [s.fidelity for s in program.stages] == ["oscillators", "pairwise"]
    (note,) = program.notes
    assert note.startswith("Fidelity pairwise for layer.0.modes: a tile of real cells")
    assert lower(found, CARD, fidelity="summed").notes == ()


def test_the_traced_step_holds_the_models_own_coefficients() -> None:
    model = tiny_model("fsn-mf", modes=2)
    step = trace(model, TOKENS).layers[1]
    assert isinstance(step, ModesTrace)
    assert (step.name, step.layer, step.orders.tolist()) == ("layer.0.modes", 0, [1, 2])
    assert modes_of(step).pinned
    assert step.theta_rad.tolist() == trace(model, TOKENS).layers[0].next_rad.tolist()
