"""Every engine of whole artefacts keeps the contract; broken ones are caught."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from oscc.observables import Observables
from oscc.testing.contracts import (
    Engine,
    check_engine,
    check_interface,
    check_observables,
    two_stage_program,
)
from oscc_backends import circuit, phase
from oscc_sims.null import NullEngine
from oscc_sims.reference import ReferenceEngine
from oscc_sims.registry import BUILT_IN, SIMULATORS, engine

# What each claims against the interpreter, on drives of up to 1 rad and the default
# scheme (4 substeps of 12 periods, extrapolated).
CLAIMS = {"phase": (phase.build, 1e-9), "circuit": (circuit.build, 1e-3)}


DECKS = [name for name in BUILT_IN if name not in CLAIMS]


def test_every_engine_of_whole_artefacts_is_under_contract() -> None:
    """The others run decks: they are handed targets and start phases besides."""
    assert set(SIMULATORS) <= set(DECKS)
    for name in DECKS:
        taken = list(inspect.signature(engine(name).run).parameters)
        assert taken[:3] == ["program", "targets", "start"], name


@pytest.mark.parametrize("name", CLAIMS)
def test_engine_keeps_the_contract(name: str) -> None:
    build, tolerance = CLAIMS[name]
    check_engine(engine(name), build, tolerance_rad=tolerance)


def test_reference_keeps_the_contract() -> None:
    check_engine(ReferenceEngine(), phase.build, tolerance_rad=1e-9)


@pytest.mark.parametrize("name", DECKS)
def test_simulators_say_whether_they_can_run(name: str) -> None:
    check_interface(engine(name))


def test_null_has_the_shapes_but_not_the_content() -> None:
    check_interface(NullEngine())
    check_observables(NullEngine(), phase.build, two_stage_program())
    with pytest.raises(AssertionError, match="interpreter: off by"):
        check_engine(NullEngine(), phase.build, tolerance_rad=1e-3)


class Wrapped:
    """The phase engine with its observables changed on the way out."""

    name = "phase"

    def __init__(self, change: Any) -> None:
        self.change = change
        self.calls = 0

    def available(self) -> tuple[bool, str]:
        return True, "built in"

    def run(self, artefact: Any) -> Observables:
        self.calls += 1
        seen = engine("phase").run(artefact)
        arrays = {name: np.array(a) for name, a in seen.arrays.items()}
        return self.change(self, seen, arrays)


def _of(seen: Observables, arrays: Any, **changes: str) -> Observables:
    words = {"engine": seen.engine, "program": seen.program} | changes
    return Observables(words["engine"], words["program"], arrays, {})


def _wrapping(_: Any, seen: Observables, arrays: Any) -> Observables:
    return _of(seen, {n: np.angle(np.exp(1j * a)) for n, a in arrays.items()})


def _flat(_: Any, seen: Observables, arrays: Any) -> Observables:
    return _of(seen, {n: a.ravel() for n, a in arrays.items()})


def _half(_: Any, seen: Observables, arrays: Any) -> Observables:
    return _of(seen, {n: a.astype(np.float32) for n, a in arrays.items()})


def _restless(self: Wrapped, seen: Observables, arrays: Any) -> Observables:
    return _of(seen, {n: a + 1e-14 * self.calls for n, a in arrays.items()})


def _nameless(_: Any, seen: Observables, arrays: Any) -> Observables:
    return _of(seen, arrays, program="another")


def _partial(_: Any, seen: Observables, arrays: Any) -> Observables:
    name = sorted(arrays)[0]
    return _of(seen, {name: arrays[name]})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (_wrapping, "interpreter: off by"),
        (_flat, "must be float64 of shape"),
        (_half, "must be float64 of shape"),
        (_restless, "Running twice must give the same bits"),
        (_nameless, "must name their program"),
        (_partial, "Stages must be"),
    ],
)
def test_a_broken_engine_is_caught(change: Any, sentence: str) -> None:
    broken: Engine = Wrapped(change)
    with pytest.raises(AssertionError, match=sentence):
        check_engine(broken, phase.build, tolerance_rad=1e-9)


def _rebuilt(program: Any, *, stages: Any = None) -> Any:
    """A backend with the sign of frustration the wrong way round."""
    from dataclasses import replace

    turned = [
        replace(
            stage,
            couplings=tuple(
                replace(c, alpha_rad=-c.alpha_rad) for c in stage.couplings
            ),
        )
        for stage in program.stages
    ]
    found = phase.build(program.replace(stages=tuple(turned)), stages=stages)
    return replace(found, program=program.digest())


def test_a_sign_of_frustration_the_wrong_way_round_is_caught() -> None:
    with pytest.raises(AssertionError, match="interpreter: off by"):
        check_engine(engine("phase"), _rebuilt, tolerance_rad=1e-3)
