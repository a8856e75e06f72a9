"""Short texts meet the accuracy that was asked for, on schemes that `auto` chose."""

from __future__ import annotations

from pathlib import Path

import pytest

import oscc

ROOT = Path(__file__).parents[3]


# Texts whose one start next to a repeller trials from other targets have missed.
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("fsn-flow", "b"),
        ("fsn-flow", "Hello, world!"),
        ("kuramoto-flow", "Hello, world!"),
        ("kuramoto-flow", "def f(x):\n    return x + 1\n"),
        ("fsn-no-phase-flow", "{}"),
    ],
)
def test_a_short_text_passes_at_the_default_accuracy(name: str, text: str) -> None:
    model = oscc.load(ROOT / "checkpoints" / f"{name}.safetensors")
    program = oscc.compile(model, text)
    verdict = oscc.verify(program, oscc.simulate(program, engine="circuit"))
    assert verdict.passed, str(verdict)
