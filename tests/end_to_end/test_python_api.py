"""The Python interface as the contract writes it, on a shipped trained model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import oscc

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "checkpoints" / "fsn-flow-k16.safetensors"
TEXT = "from pathlib import Path\nimport "


@pytest.fixture(scope="module")
def program() -> oscc.Program:
    model = oscc.load(SHIPPED)
    return oscc.compile(model, TEXT, device="vo2-two-state-6k", accuracy_mrad=10)


def test_load_compile_simulate_verify_energy(program: oscc.Program) -> None:
    seen = oscc.simulate(program, engine="circuit")
    verdict = oscc.verify(program, seen)
    account = oscc.energy(program, seen)

    assert verdict.passed
    assert [level.level for level in verdict.levels] == ["ir", "phase", "circuit"]
    assert str(verdict).splitlines()[-1] == "PASS"
    circuit = verdict.levels[-1]
    assert circuit.rms_rad is not None
    assert 0 < circuit.rms_rad <= 0.01
    assert circuit.targets == len(TEXT) * 16
    figures = account.to_json()
    assert figures["program"] == program.digest()
    assert sum(figures["causes_J"].values()) == figures["total_J"] > 0
    json.dumps([verdict.to_json(), figures], allow_nan=False)


def test_a_path_as_text_is_taken_too(program: oscc.Program) -> None:
    model = oscc.load(str(SHIPPED))
    assert oscc.compile(model, TEXT) == program


def test_a_failed_verdict_is_a_value(program: oscc.Program) -> None:
    options = oscc.VerifyOptions(tolerance_rad={"circuit": 1e-9})
    verdict = oscc.verify(program, oscc.simulate(program), options)
    assert not verdict.passed
    assert verdict.exit_status == 1
    assert "\nFAIL   circuit against phase" in str(verdict)


def test_errors_carry_their_exit_status() -> None:
    with pytest.raises(oscc.RequestError) as caught:
        oscc.compile(oscc.load(SHIPPED), "")
    assert isinstance(caught.value, oscc.OsccError)
    assert caught.value.exit_status == 2
    assert (oscc.ToolError.exit_status, oscc.UndecidedError.exit_status) == (3, 4)


def test_a_program_is_plain_data_to_look_into(program: oscc.Program) -> None:
    stage = program.stages[0]
    assert isinstance(stage, oscc.Stage)
    assert isinstance(stage.couplings[0], oscc.Coupling)
    assert stage.phi0_rad.shape == (len(TEXT), 16)
    assert np.isfinite(stage.gain_rad).all()
    assert (stage.gain_rad < 0).any()
    assert (stage.gain_rad > 0).any()


def test_two_processes_make_the_same_program(program: oscc.Program) -> None:
    """Hash randomisation, threads and import order leave no trace."""
    script = (
        "import oscc, sys\n"
        f"model = oscc.load({str(SHIPPED)!r})\n"
        f"program = oscc.compile(model, {TEXT!r}, threads=3)\n"
        "sys.stdout.write(program.digest())\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        capture_output=True,
        text=True,
    )
    assert ended.stdout == program.digest()
