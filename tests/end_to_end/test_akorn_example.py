"""The example of somebody else's layer: it runs, and computes what it says."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import oscc
from oscc.lower import stage_from, vector_phases
from oscc_backends.phase import drive

ROOT = Path(__file__).parents[2]


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import akorn_layer

    return akorn_layer


def test_it_runs_as_a_script_and_exits_by_its_verdict() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "akorn_layer.py")],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "PASS" in lines
    assert [line.split()[0] for line in lines[1:4]] == ["ir", "phase", "circuit"]
    assert "train with the flow" in lines[-1]


def test_a_layer_that_computed_something_else_fails(
    example: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = example.coupling

    def off(*arguments: Any) -> oscc.PhaseCoupling:
        stated: oscc.PhaseCoupling = plain(*arguments)
        return replace(stated, digital_rad=np.asarray(stated.digital_rad) + 1e-3)

    monkeypatch.setattr(example, "coupling", off)
    assert example.main([]) == 1


def vectors(
    example: ModuleType, seed: int = 4
) -> tuple[Any, torch.Tensor, torch.Tensor]:
    count = example.TOKENS * example.CHANNELS
    draws = torch.Generator().manual_seed(seed)
    x, c = torch.randn(2, count, 2, generator=draws, dtype=torch.float64)
    return example.KuramotoLayer(count, seed), example.unit(x), c


def test_the_drive_of_the_stage_is_the_projected_velocity(example: ModuleType) -> None:
    """omega + Im[e^{-i phi} D] of the program is the length of Omega x + Proj(y)."""
    layer, x, c = vectors(example)
    stage = stage_from(example.coupling(layer, x, c, layer.flow_step(x, c)))
    velocity = layer.velocity(x, x, c).detach().numpy()
    tangent = np.stack([-x[:, 1], x[:, 0]], 1)
    along = (velocity * tangent).sum(1)
    assert np.abs(velocity - along[:, None] * tangent).max() < 1e-14
    turned = np.exp(-1j * stage.phi0_rad) * drive(stage)[:, 0]
    rate = stage.detuning_rad + turned.imag
    assert np.abs(rate - example.GAMMA * along).max() < 1e-12


def test_the_published_step_is_the_arctangent_of_the_euler_step(
    example: ModuleType,
) -> None:
    """Normalising x + gamma f t turns x by arctan(gamma f), less than gamma f."""
    layer, x, c = vectors(example)
    velocity = layer.velocity(x, x, c).detach().numpy()
    along = (velocity * np.stack([-x[:, 1], x[:, 0]], 1)).sum(1)
    after = vector_phases(layer.published_step(x, c).detach())
    moved = np.angle(np.exp(1j * (after - vector_phases(x))))
    assert np.abs(moved - np.arctan(example.GAMMA * along)).max() < 1e-14


def test_the_published_step_tends_to_the_flow_to_second_order(
    example: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer, x, c = vectors(example)
    gaps = []
    for gamma in (0.04, 0.02, 0.01):
        monkeypatch.setattr(example, "GAMMA", gamma)
        pair = [layer.flow_step(x, c), layer.published_step(x, c)]
        one, other = (vector_phases(step.detach()) for step in pair)
        gaps.append(float(np.abs(np.angle(np.exp(1j * (one - other)))).max()))
    assert gaps[0] / gaps[1] == pytest.approx(4.0, rel=0.1)
    assert gaps[1] / gaps[2] == pytest.approx(4.0, rel=0.1)


def test_the_flow_keeps_unit_vectors_and_needs_no_more_steps(
    example: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer, x, c = vectors(example)
    one = layer.flow_step(x, c)
    assert (one.norm(dim=-1) - 1).abs().max() < 1e-14
    monkeypatch.setattr(example, "RUNGE_KUTTA_STEPS", 800)
    assert (one - layer.flow_step(x, c)).abs().max() < 1e-9


def test_a_layer_with_a_reflection_is_refused(
    example: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer, x, c = vectors(example)
    blocks = layer.blocks().detach().clone()
    blocks[2, 1, 0, 0] += 0.5
    monkeypatch.setattr(layer, "blocks", lambda: blocks)
    with pytest.raises(oscc.RequestError, match=r"Block \(2, 1\) .* sum of two phases"):
        example.coupling(layer, x, c, x)


@pytest.mark.ngspice
@pytest.mark.gnucap
def test_both_simulators_run_its_decks(example: ModuleType) -> None:
    """Pairs across tokens and channels, stimuli and detunings, as circuits."""
    stated, _ = example.steps(1)
    program = oscc.program_from_layers(stated[:1], deck_targets=3)
    options = oscc.VerifyOptions(levels=("spice",))
    verdict = oscc.verify(program, options=options)
    assert verdict.passed, str(verdict)
    assert {level.engine for level in verdict.levels} == {"ngspice", "gnucap"}
    assert oscc.energy(program).pairs == 18 * 18 + 18
