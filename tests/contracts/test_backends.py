"""Every built-in backend keeps the contract; broken ones are caught."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from oscc.testing.contracts import Build, check_backend
from oscc_backends import circuit, phase

BACKENDS: dict[str, Build] = {"phase": phase.build, "circuit": circuit.build}


@pytest.mark.parametrize("name", BACKENDS)
def test_backend_keeps_the_contract(name: str) -> None:
    check_backend(BACKENDS[name])


def _wrong_program(program: Any, *, stages: Any = None) -> Any:
    return replace(phase.build(program, stages=stages), program="another")


def _ignores_stages(program: Any, *, stages: Any = None) -> Any:
    return phase.build(program)


def _reversed(program: Any, *, stages: Any = None) -> Any:
    found = phase.build(program, stages=stages)
    return replace(found, problems=found.problems[::-1])


def _transposed(program: Any, *, stages: Any = None) -> Any:
    found = phase.build(program, stages=stages)
    turned = [replace(p, phi0_rad=p.phi0_rad[::-1]) for p in found.problems]
    return replace(found, problems=tuple(turned))


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (_wrong_program, "must name its program"),
        (_ignores_stages, "must select stages by name"),
        (_reversed, "Problems must be the stages"),
        (_transposed, "start phases must be those of the stage"),
    ],
)
def test_a_broken_backend_is_caught(build: Build, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_backend(build)
