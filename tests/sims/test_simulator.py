"""Success of a run is judged by its data: an exit status of zero is not enough."""

from __future__ import annotations

import stat
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from oscc.device import load_card
from oscc.device.piecewise import period_s
from oscc.errors import ToolError
from oscc_netlists.deck import Deck, reference_deck
from oscc_netlists.settings import default_settings
from oscc_netlists.timing import REFERENCE_PERIODS, level_V
from oscc_sims.ngspice import NgspiceEngine
from oscc_sims.process import Children, Finished
from oscc_sims.rawfile import Plot
from oscc_sims.readout import free_timing
from oscc_sims.simulator import (
    RAW_FILE,
    SimulatorFault,
    program_path,
    read_run,
    run_deck,
    version,
)

CARD = load_card("vo2-two-state-6k")
NGSPICE = reference_deck(CARD, default_settings("ngspice"))
GNUCAP = reference_deck(CARD, default_settings("gnucap"))


def raw(
    deck: Deck, *, stop: float = 1.0, size: float = 1.0, name: str = "v(n)"
) -> bytes:
    """A raw file of a saw-tooth over a share of the run."""
    time = np.linspace(0.0, stop * deck.circuit.transient.stop_s, 400)
    table = np.column_stack([time, size * (1 + np.mod(time / period_s(CARD), 1))])
    return (
        b"Title: t\nPlotname: Transient Analysis\nFlags: real\nNo. Variables: 2\n"
        b"No. Points: 400\nVariables:\n\t0\ttime\ttime\n\t1\t"
        + name.encode()
        + b"\tvoltage\nBinary:\n"
        + table.astype("<f8").tobytes()
    )


def finished(data: bytes | None, *, status: int = 0, log: str = "") -> Finished:
    files = {} if data is None else {RAW_FILE: data}
    return Finished(status, log, "", files, 0.1, False)


def test_a_whole_run_passes() -> None:
    plot = read_run(NGSPICE, finished(raw(NGSPICE)))
    assert plot.column("v(n)").size == 400


def fault(done: Finished, deck: Deck = NGSPICE) -> SimulatorFault:
    with pytest.raises(SimulatorFault) as caught:
        read_run(deck, done)
    return caught.value


def test_status_zero_without_a_raw_file_is_a_failure() -> None:
    assert "without a raw file" in str(fault(finished(None)))


def test_status_one_with_good_data_is_a_failure() -> None:
    assert "status 1" in str(fault(finished(raw(NGSPICE), status=1)))


def test_the_time_reached_is_told() -> None:
    found = fault(finished(raw(NGSPICE, stop=0.5)))
    assert "stopped at" in str(found)
    assert found.reached_s == pytest.approx(0.5 * NGSPICE.circuit.transient.stop_s)


def test_an_aborted_run_tells_the_simulators_message() -> None:
    log = "doAnalyses: TRAN:  Timestep too small; time = 1e-7\nrun aborted\n"
    data = raw(NGSPICE, stop=0.3).replace(b"Points: 400", b"Points: 0")
    assert "Timestep too small" in str(fault(finished(data, log=log)))
    assert "Timestep" in fault(finished(raw(NGSPICE), log=log)).log


def test_a_vector_lost_to_the_title_line_is_a_failure() -> None:
    assert "v(n)" in str(fault(finished(raw(NGSPICE, name="v(other)"))))


def test_a_division_by_zero_is_a_failure() -> None:
    # ngspice turns 1/0 into 1e32 and ends with status 0
    assert "e+31 V" in str(fault(finished(raw(NGSPICE, size=0.5e32))))


def test_a_time_limit_is_told() -> None:
    done = Finished(-9, "", "", {}, 12.0, True)
    assert "time limit after 12 s" in str(fault(done))


def test_gnucap_is_judged_by_its_table() -> None:
    said = "b1 0 n v=1\n^ ? what's this?\n#Time v(n)\n 1u 1.\n"
    assert "what's this" in str(fault(finished(None, log=said), GNUCAP))
    early = "#Time v(n)\n 0. 0.\n 1u 1.\n"
    assert "stopped at 1 of" in str(fault(finished(None, log=early), GNUCAP))
    assert "no table" in str(fault(finished(None), GNUCAP))


def stub(folder: Path, body: str) -> Path:
    path = folder / "stub"
    path.write_text(f"#!{sys.executable}\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.mark.parametrize("body", ["", "print('ngspice-1')", "raise SystemExit(1)"])
def test_a_program_that_does_nothing_is_a_failure(tmp_path: Path, body: str) -> None:
    program = str(stub(tmp_path, body))
    with Children() as children, pytest.raises(SimulatorFault):
        run_deck(children, NGSPICE, program, timeout_s=20)


def test_a_prompt_gets_no_input_and_a_silent_program_is_stopped(tmp_path: Path) -> None:
    prompt = str(stub(tmp_path, "input('ngspice 1 -> ')"))
    with Children() as children, pytest.raises(SimulatorFault, match="EOF"):
        run_deck(children, NGSPICE, prompt, timeout_s=20)
    silent = str(stub(tmp_path, "import time; time.sleep(60)"))
    with Children() as children, pytest.raises(SimulatorFault, match="time limit"):
        run_deck(children, NGSPICE, silent, timeout_s=0.5)


def test_a_missing_simulator_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OSCC_NGSPICE", "/nowhere/ngspice")
    assert program_path("ngspice") is None
    there, reason = NgspiceEngine().available()
    assert not there
    assert "apt-get install ngspice" in reason


def test_a_stub_that_states_no_version_is_not_available(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OSCC_NGSPICE", str(stub(tmp_path, "")))
    with pytest.raises(ToolError, match="no version"):
        version("ngspice")


def test_gnucap_without_plugins_is_not_available(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "print('main version: master 2017.10.03\\n ^ ? plugin not found in /x')"
    monkeypatch.setenv("OSCC_GNUCAP", str(stub(tmp_path, body)))
    with pytest.raises(ToolError, match="gnucap-default-plugins0"):
        version("gnucap")


def saw_tooth(periods: float, jitter: float = 0.0) -> Plot:
    time = np.linspace(0.0, periods * period_s(CARD), int(200 * periods))
    phase = time / period_s(CARD) + jitter * np.sin(time / period_s(CARD))
    rise = np.minimum(np.mod(phase, 1.0) * 1.25, 1.0)
    fall = np.maximum(np.mod(phase, 1.0) * 5 - 4, 0.0)
    wave = level_V(CARD) - 0.5 + rise - fall
    return Plot("Transient Analysis", ("time", "v(n)"), np.column_stack([time, wave]))


def test_a_free_run_gives_its_period() -> None:
    timing = free_timing(CARD, NGSPICE, saw_tooth(REFERENCE_PERIODS + 1.5))
    assert timing.period_s == pytest.approx(period_s(CARD), rel=1e-6)
    assert timing.calibrated


def test_a_free_run_with_missing_or_uneven_crossings_is_a_failure() -> None:
    with pytest.raises(SimulatorFault, match="crossed 5 times"):
        free_timing(CARD, NGSPICE, saw_tooth(5.2))
    with pytest.raises(SimulatorFault, match="scatter"):
        free_timing(CARD, NGSPICE, saw_tooth(REFERENCE_PERIODS + 1.5, jitter=0.05))


def test_the_engine_fails_with_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from oscc_sims.calibration import calibrate

    monkeypatch.setenv("OSCC_NGSPICE", str(stub(tmp_path, "print('ngspice-39')")))
    with pytest.raises(ToolError, match="free reference"):
        calibrate(CARD, default_settings("ngspice"))
    assert replace(NGSPICE.timing, calibrated=True).calibrated
