"""One child process: private folder, C locale, closed input, time limit, clean end.

Simulators drop into a prompt, read start-up files of the user, write beside the deck
and leave children behind. So each run has an empty folder of its own with plain file
names, an environment of its own, no input, and a process group that is killed whole.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from oscc.errors import ToolError

Result = TypeVar("Result")

_KEPT = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT")


@dataclass(frozen=True, slots=True, eq=False)
class Finished:
    """What is left of a child process.

    Args:
        status: Exit status; negative where a signal ended it.
        output: Standard output.
        errors: Standard error.
        files: Content of the output files that exist, by name.
        wall_s: Time that it took.
        timed_out: Whether the time limit ended it.
    """

    status: int
    output: str
    errors: str
    files: Mapping[str, bytes]
    wall_s: float
    timed_out: bool


class Children:
    """Runs child processes from any thread; leaving the block kills those that live.

    Example:
        >>> with Children() as children:
        ...     children.run(["cat", "a.txt"], {"a.txt": "hello"}, timeout_s=10).output
        'hello'
    """

    def __init__(self) -> None:
        self._live: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> Children:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill_all()

    def kill_all(self) -> None:
        """End every process group that still runs, and start no more."""
        with self._lock:
            self._closed = True
            live = list(self._live)
        for child in live:
            _kill(child)

    def run(
        self,
        arguments: Sequence[str],
        files: Mapping[str, str],
        *,
        outputs: Sequence[str] = (),
        timeout_s: float,
        environment: Mapping[str, str] | None = None,
    ) -> Finished:
        """Run a program in a folder of its own and wait for it.

        Args:
            arguments: Program and its arguments.
            files: Text of each input file by plain local name.
            outputs: Names of the files to bring back where they exist.
            timeout_s: Time limit, [s].
            environment: Variables beside the few that every child gets.

        Raises:
            ToolError: the program cannot be started.
        """
        with tempfile.TemporaryDirectory(prefix="oscc-") as folder:
            place = Path(folder)
            for name, text in files.items():
                (place / name).write_text(text, encoding="utf-8")
            began = time.monotonic()
            child = self._start(arguments, folder, environment or {})
            try:
                output, errors, late = _wait(child, timeout_s)
            finally:
                _kill(child)
                with self._lock:
                    self._live.discard(child)
            wall = time.monotonic() - began
            found = {
                name: (place / name).read_bytes()
                for name in outputs
                if (place / name).is_file()
            }
        return Finished(
            child.returncode,
            output.decode("utf-8", "replace"),
            errors.decode("utf-8", "replace"),
            found,
            wall,
            late,
        )

    def _start(
        self, arguments: Sequence[str], folder: str, extra: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        kept = {key: os.environ[key] for key in _KEPT if key in os.environ}
        own = {"LC_ALL": "C", "LANG": "C", "HOME": folder, "OMP_NUM_THREADS": "1"}
        with self._lock:
            if self._closed:
                raise ToolError(f"`{arguments[0]}` was not started: the run has ended.")
            try:
                child = subprocess.Popen(
                    list(arguments),
                    cwd=folder,
                    env={**kept, **own, **extra},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
            except OSError as error:
                raise ToolError(
                    f"`{arguments[0]}` cannot be started: {error.strerror or error}. "
                    "Run `oscc doctor` to see what is installed."
                ) from error
            self._live.add(child)
        return child


def _wait(
    child: subprocess.Popen[bytes], timeout_s: float
) -> tuple[bytes, bytes, bool]:
    """Output, errors, and whether the time limit ended the process."""
    try:
        return (*child.communicate(timeout=timeout_s), False)
    except subprocess.TimeoutExpired:
        _kill(child)
        return (*child.communicate(), True)


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End the whole group; the leader may be gone while its children live."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def side_by_side(
    work: Sequence[Callable[[Children], Result]], jobs: int
) -> list[Result]:
    """Every piece of work, some at once; the first failure stops the rest.

    Args:
        work: Called with what keeps the child processes.
        jobs: Pieces that run at once.

    Raises:
        OsccError: what a piece raised; nothing is reported of work that is not whole.
    """
    with Children() as children, ThreadPoolExecutor(max(1, jobs)) as pool:
        pending = [pool.submit(piece, children) for piece in work]
        try:
            done, _ = wait(pending, return_when=FIRST_EXCEPTION)
            failed = [f for f in pending if f in done and f.exception() is not None]
            if failed:
                failed[0].result()
            return [future.result() for future in pending]
        finally:
            for future in pending:
                future.cancel()
            children.kill_all()
