"""Stopping a run: nothing of it goes on, and nothing half-made has a final name."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

Call = Callable[..., Any]


@pytest.fixture
def stub(tmp_path: Path) -> Path:
    """A simulator that never ends, and starts a child that never ends either."""
    path = tmp_path / "stuck-simulator"
    path.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo ngspice-39 && exit\n'
        "sleep 1000 &\nsleep 1000\n"
    )
    path.chmod(0o755)
    return path


def alive(stub: Path) -> list[int]:
    """Processes of the stub's sessions; the leader of each runs the stub."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        if str(stub) in " ".join(process.info["cmdline"] or ()):
            found.append(process.info["pid"])
    return found


def wait_for(condition: Callable[[], Any], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def running(build: Path, stub: Path, call: Call) -> Iterator[subprocess.Popen[str]]:
    """`oscc simulate` with the stub running under it."""
    assert call("simulate", build, "--engine", "circuit").status == 0
    command = [sys.executable, "-m", "oscc", "simulate", str(build)]
    with subprocess.Popen(
        [*command, "--engine", "ngspice"],
        env={**os.environ, "OSCC_NGSPICE": str(stub)},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert wait_for(lambda: alive(stub), 60), "the stub was never started"
        yield child
        child.kill()


ONCE = [(signal.SIGINT,), (signal.SIGTERM,), (signal.SIGHUP,)]
IMPATIENT = [(signal.SIGINT,) * 3, (signal.SIGTERM, signal.SIGINT)]


@pytest.mark.parametrize("numbers", [*ONCE, *IMPATIENT])
def test_interrupted_simulation_leaves_no_simulator(
    running: subprocess.Popen[str],
    build: Path,
    stub: Path,
    numbers: tuple[signal.Signals, ...],
) -> None:
    sessions = {os.getsid(pid) for pid in alive(stub)}
    for number in numbers:
        running.send_signal(number)
        time.sleep(0.01)
    _, errors = running.communicate(timeout=20)
    assert running.returncode == 130
    assert errors.strip() == ("oscc simulate: interrupted; what was finished is kept.")
    assert wait_for(lambda: not alive(stub), 2)
    # what nobody has waited for yet is dead all the same
    left = [
        p.info["pid"]
        for p in psutil.process_iter(["pid", "status"])
        if session(p.info["pid"]) in sessions
        and p.info["status"] != psutil.STATUS_ZOMBIE
    ]
    assert left == []
    assert (build / "sim" / "circuit" / "observables.safetensors").is_file()
    assert not (build / "sim" / "ngspice" / "observables.safetensors").exists()


def session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return -1


def test_a_stuck_simulator_is_stopped_at_the_time_limit(
    call: Call, build: Path, stub: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OSCC_NGSPICE", str(stub))
    found = call("simulate", build, "--engine", "ngspice", "--timeout", 0.5)
    assert found.status == 3
    assert "ngspice" in found.err
    assert alive(stub) == []
    assert not (build / "sim" / "ngspice" / "observables.safetensors").exists()


def test_an_interrupted_evaluation_says_that_nothing_was_written(
    call: Call, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import oscc.verbs.evaluate

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(oscc.verbs.evaluate, "evaluate", stopped)
    found = call("evaluate", tiny, "-o", tmp_path / "out")
    assert found.status == 130
    assert "interrupted; no figure was written" in found.err
    assert "kept" not in found.err
    assert not (tmp_path / "out" / "evaluate.json").exists()


def test_an_evaluation_interrupted_in_spice_keeps_the_figures_of_the_loop(
    call: Call, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import json

    import oscc.verbs.evaluate

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(oscc.verbs.evaluate, "judge_sample", stopped)
    text = tmp_path / "text.txt"
    text.write_text("import os\n")
    words = ["evaluate", tiny, "--text", text, "-o", tmp_path / "out"]
    words += ["--set", "compile.substeps=1", "--set", "compile.periods=20"]
    found = call(*words, "--spice", 1, "--simulator", "gnucap")
    assert found.status == 130
    assert "SPICE was not finished; the figures of the loop are in" in found.err
    content = json.loads((tmp_path / "out" / "evaluate.json").read_text())
    assert content["bpc_hardware"] > 0
    assert "spice" not in content
