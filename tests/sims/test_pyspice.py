"""PySpice in a worker process: the same deck gives the same phase as the child process.

The wrapper is GPL-3 and never imported here.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest

from oscc.device import load_card
from oscc.errors import ToolError
from oscc.testing.tiny import tiny_program, tiny_stage
from oscc_backends import circuit
from oscc_netlists.deck import Deck, reference_deck
from oscc_netlists.settings import default_settings
from oscc_sims import pyspice
from oscc_sims.circuit import CircuitEngine
from oscc_sims.process import Children
from oscc_sims.pyspice import PySpiceEngine, run_deck
from oscc_sims.pyspice_worker import keys_of
from oscc_sims.registry import engine
from oscc_sims.simulator import SimulatorFault

pytestmark = pytest.mark.pyspice


def test_the_worker_agrees_with_the_child_process() -> None:
    stage = tiny_stage(4, tokens=6, gain_rad=3.0, substeps=1, dwell_periods=4)
    made = tiny_program(stage)
    start = CircuitEngine().run(circuit.build(made))
    targets = {stage.name: np.array([[5, 0]])}
    both = [
        engine(name).run(made, targets, start, jobs=2)
        for name in ("ngspice", "pyspice")
    ]
    ends = [seen.arrays[f"{stage.name}.raw.end_rad"] for seen in both]
    assert ends[0].shape == (1, 2)
    assert np.abs(ends[0] - ends[1]).max() < 1e-6
    supply = [seen.arrays[f"{stage.name}.supply_J"] for seen in both]
    np.testing.assert_allclose(supply[0], supply[1], rtol=1e-6)


def reference() -> Deck:
    return reference_deck(load_card("vo2-two-state-6k"), default_settings("ngspice"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("b_cell n 0 i=v(n)*", "b_cell n 0 i=v(n)*(("),
        ("v_cell i_cell 0 dc 0.0", "v_cell i_cell 0 dc 0.0\nv_loop i_cell 0 dc 1.0"),
        (".save v(n)", ".save v(x_cell)"),
    ],
)
def test_a_faulty_deck_is_a_failure_of_the_worker(old: str, new: str) -> None:
    good = reference()
    broken = Deck(
        good.circuit,
        good.text.replace(old, new),
        good.dialect,
        good.timing,
        None,
        good.node,
        0.0,
        {},
    )
    with Children() as children, pytest.raises(SimulatorFault):
        run_deck(children, broken, 60.0)


def test_the_main_process_never_imports_the_wrapper() -> None:
    there, version = PySpiceEngine().available()
    assert there
    assert version
    assert "PySpice" not in sys.modules


def test_a_missing_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    there, reason = PySpiceEngine().available()
    assert not there
    assert "pip install" in reason
    assert "PySpice" in reason
    with pytest.raises(ToolError):
        pyspice.open_pyspice()


def test_names_of_the_library_are_known() -> None:
    assert keys_of("v(n)") == ("v(n)", "n")
    assert keys_of("time") == ("time",)
