"""Child processes: closed input, time limit, whole group killed, nothing left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from oscc.errors import ToolError
from oscc_sims.process import Children, Finished


def run(script: str, *, timeout_s: float = 20.0) -> Finished:
    with Children() as children:
        return children.run([sys.executable, "-c", script], {}, timeout_s=timeout_s)


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def gone_within(pid: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not alive(pid):
            return True
        time.sleep(0.02)
    return False


def test_files_go_in_and_come_back() -> None:
    with Children() as children:
        done = children.run(
            ["sh", "-c", "cat deck.cir > out.raw; echo said; echo wrong >&2; exit 3"],
            {"deck.cir": "* Ü\n"},
            outputs=["out.raw", "absent"],
            timeout_s=20,
        )
    assert done.files == {"out.raw": "* Ü\n".encode()}
    assert (done.status, done.output, done.errors) == (3, "said\n", "wrong\n")
    assert not done.timed_out


def test_standard_input_is_closed() -> None:
    done = run("import sys; print(repr(sys.stdin.read()))")
    assert done.output == "''\n"


def test_the_locale_is_plain_and_the_home_is_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LC_NUMERIC", "de_DE.UTF-8")
    script = (
        "import os; e = os.environ;"
        "print(e['LC_ALL'], 'LC_NUMERIC' in e, e['HOME'] == os.getcwd())"
    )
    assert run(script).output == "C False True\n"


def test_the_folder_is_private_plain_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / "Run 1 Ü"
    odd.mkdir()
    monkeypatch.chdir(odd)
    where = run("import os; open('a', 'w'); print(os.getcwd())").output.strip()
    assert " " not in where
    assert not Path(where).exists()
    assert list(odd.iterdir()) == []


def test_a_time_limit_ends_the_whole_group() -> None:
    script = (
        "import subprocess, sys, time;"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        "print(p.pid, flush=True); time.sleep(60)"
    )
    began = time.monotonic()
    done = run(script, timeout_s=1.5)
    assert done.timed_out
    assert time.monotonic() - began < 10
    assert gone_within(int(done.output), 2.0)


def test_what_a_program_leaves_running_is_ended_too() -> None:
    script = (
        "import subprocess, sys;"
        "d = subprocess.DEVNULL;"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'],"
        " stdout=d, stderr=d);"
        "print(p.pid, flush=True)"
    )
    done = run(script)
    assert done.status == 0
    assert gone_within(int(done.output), 2.0)


def test_a_missing_program_is_a_tool_error() -> None:
    with Children() as children, pytest.raises(ToolError, match="cannot be started"):
        children.run(["/nowhere/ngspice"], {}, timeout_s=1)


def test_ending_the_run_ends_children_of_other_threads() -> None:
    seen: list[Finished] = []
    children = Children()

    def work() -> None:
        command = [sys.executable, "-c", "import time; time.sleep(60)"]
        seen.append(children.run(command, {}, timeout_s=60))

    thread = threading.Thread(target=work)
    began = time.monotonic()
    thread.start()
    while not children._live:
        time.sleep(0.01)
    children.kill_all()
    thread.join(10)
    assert not thread.is_alive()
    assert time.monotonic() - began < 10
    assert seen[0].status == -signal.SIGKILL
    with pytest.raises(ToolError, match="has ended"):
        children.run(["true"], {}, timeout_s=1)


def test_ctrl_c_leaves_no_child(tmp_path: Path) -> None:
    script = tmp_path / "interrupted.py"
    script.write_text(
        "import sys\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from oscc_sims.process import Children\n"
        "command = ['sh', '-c', 'echo $$ > \"$0\"; exec sleep 60', sys.argv[1]]\n"
        "with Children() as children, ThreadPoolExecutor(1) as pool:\n"
        "    future = pool.submit(children.run, command, {}, timeout_s=60)\n"
        "    try:\n"
        "        future.result()\n"
        "    finally:\n"
        "        children.kill_all()\n"
    )
    noted = tmp_path / "pid"
    path = os.pathsep.join(p for p in sys.path if p)
    parent = subprocess.Popen(
        [sys.executable, str(script), str(noted)],
        env={**os.environ, "PYTHONPATH": path},
        stderr=subprocess.PIPE,
    )
    end = time.monotonic() + 30
    while not (noted.exists() and noted.read_text().strip()):
        assert time.monotonic() < end
        time.sleep(0.02)
    child = int(noted.read_text())
    assert alive(child)
    parent.send_signal(signal.SIGINT)
    assert b"KeyboardInterrupt" in parent.communicate(timeout=30)[1]
    assert gone_within(child, 2.0)
