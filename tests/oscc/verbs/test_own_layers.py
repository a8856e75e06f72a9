"""Programs of anyone's layers: passes, levels, decks where weights are shared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oscc
from oscc.ir import HostOperation
from oscc.lower import PhaseCoupling, stage_from
from oscc.testing.tiny import tiny_stage
from oscc.verbs.compile import sample_targets
from oscc_backends.deck_files import write_sample

FAST: dict[str, Any] = {"scheme": "plain", "periods": 40}


def layer(seed: int = 0, **changes: Any) -> PhaseCoupling:
    """Shared weights; one harmonic without offsets has a closed form of its own."""
    stage = tiny_stage(seed, routes=("present",), harmonics=(1,), gain_rad=1.5)
    (coupling,) = stage.factored
    values: dict[str, Any] = {
        "theta_rad": stage.theta_rad,
        "gain_rad": stage.gain_rad,
        "weights": coupling.weights,
        "digital_rad": closed_form(stage.theta_rad, stage.gain_rad, coupling.weights),
        "causal": True,
    }
    return PhaseCoupling(**(values | changes))


def closed_form(theta: Any, gain: Any, weights: Any) -> Any:
    """tan((phi - arg C)/2) shrinks by exp(-g |C|); heads of two coordinates."""
    z = np.exp(1j * theta)
    c = np.stack([weights[j // 2] @ z[:, j] for j in range(4)], axis=1)
    away = np.angle(z / c)
    end = 2 * np.arctan(np.exp(-gain * np.abs(c)) * np.tan(away / 2))
    return theta + end - away


def test_two_layers_go_through_all_levels() -> None:
    program = oscc.program_from_layers([layer(0), layer(1)], accuracy_mrad=10)
    assert [stage.name for stage in program.stages] == [
        "layer.0.coupling",
        "layer.1.coupling",
    ]
    assert program.tokens.tolist() == [0, 1, 2, 3]
    assert (program.family, program.notes) == ("own", ())
    assert [entry["name"] for entry in program.provenance["passes"]] == [
        "choose_dwell",
        "legalise",
    ]
    verdict = oscc.verify(program, oscc.simulate(program, engine="circuit"))
    assert verdict.passed
    assert [level.targets for level in verdict.levels] == [32, 32, 32]
    assert oscc.energy(program).pairs == 2 * 4 * 10


def test_the_verdict_is_about_what_the_layer_computed() -> None:
    wrong = layer(digital_rad=np.asarray(layer().digital_rad) + 1e-4)
    verdict = oscc.verify(oscc.program_from_layers([wrong], **FAST))
    assert not verdict.passed
    assert verdict.exit_status == 1
    assert verdict.levels[0].rms_rad == pytest.approx(1e-4, rel=1e-3)


def test_shared_weights_give_decks(tmp_path: Path) -> None:
    program = oscc.program_from_layers([layer()], deck_targets=2, **FAST)
    index = write_sample(program, sample_targets(program), tmp_path)
    assert sum("token" in row for row in index["decks"]) == 2 * 2


def test_counts_tokens_and_words_are_those_given() -> None:
    program = oscc.program_from_layers(
        [layer()],
        tokens=[7, 7, 9, 1],
        host_operations=[HostOperation("score", 0, 11)],
        family="akorn",
        seed=5,
        fidelity="summed",
        device="vo2-two-state-20k",
        **FAST,
    )
    assert program.tokens.tolist() == [7, 7, 9, 1]
    assert program.host_operations[0].count == 11
    assert (program.family, program.seed) == ("akorn", 5)
    assert program.device["name"] == "vo2-two-state-20k"
    assert program.stages[0].fidelity == "summed"


def test_another_update_than_the_layers_own_is_named() -> None:
    program = oscc.program_from_layers([layer(update="euler")], update="flow", **FAST)
    assert program.stages[0].update == "flow"
    assert (
        "trained with update euler, but the program runs them as flow"
        in (program.notes[0])
    )


def test_coefficients_are_judged_with_their_detunings() -> None:
    """Across tokens and coordinates, against an integration of another hand."""
    random = np.random.default_rng(3)
    shape, count = (3, 2), 6
    theta, omega = random.uniform(-3, 3, shape), random.uniform(-0.5, 0.5, shape)
    pairs = random.normal(size=(count, count)) + 1j * random.normal(size=(count, count))
    pairs /= count**0.5
    gain = np.full(shape, 0.9)
    phi = theta.ravel().copy()
    field = pairs @ np.exp(1j * theta.ravel())
    for _ in range(20_000):  # the midpoint rule, at steps of 5e-5

        def rate(at: Any) -> Any:
            return omega.ravel() + 0.9 * np.imag(np.exp(-1j * at) * field)

        phi = phi + 5e-5 * rate(phi + 2.5e-5 * rate(phi))
    own = PhaseCoupling(
        theta_rad=theta,
        gain_rad=gain,
        digital_rad=phi.reshape(shape),
        detuning_rad=omega,
        coefficients=pairs[None],
    )
    program = oscc.program_from_layers([own], accuracy_mrad=10)
    verdict = oscc.verify(program, oscc.simulate(program, engine="circuit"))
    assert verdict.passed, str(verdict)
    assert program.stages[0].flat


def test_threads_change_nothing() -> None:
    programs = [oscc.program_from_layers([layer()], threads=n) for n in (1, 3)]
    assert programs[0] == programs[1]


@pytest.mark.parametrize("name", ["mode", "max_tokens", "unknown"])
def test_settings_about_texts_are_refused(name: str) -> None:
    with pytest.raises(oscc.RequestError, match=f"`{name}` is for a checkpoint"):
        oscc.program_from_layers([layer()], **{name: 1})


def test_no_layer_and_a_layer_too_strong_are_refused() -> None:
    with pytest.raises(oscc.RequestError, match="at least one layer"):
        oscc.program_from_layers([])
    strong = layer(gain_rad=np.full((4, 4), 90.0))
    with pytest.raises(oscc.RequestError, match="more than the card's largest inj"):
        oscc.program_from_layers([strong], scheme="plain", periods=3)
    with pytest.raises(oscc.RequestError, match=r"layer\.1\.coupling: give the pairs"):
        oscc.program_from_layers([layer(), layer(weights=None)], **FAST)


def test_the_stage_is_that_of_stage_from() -> None:
    program = oscc.program_from_layers([layer()], **FAST)
    stage = stage_from(layer(), scheme="plain", substeps=1, dwell_periods=40)
    assert program.replace(stages=(stage,)) == program
