"""Set-up: child processes with their output in the log, and lines for the terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOG = ROOT / "build" / "setup.log"


class SetupError(Exception):
    """What set-up cannot bring; the message says how to mend it."""


def say(text: str) -> None:
    """One line for the terminal; further lines are set in below it."""
    first, *more = text.splitlines()
    lines = [f"set-up: {first}", *(f"        {line}" for line in more)]
    sys.stderr.write("\n".join(lines) + "\n")
    sys.stderr.flush()


def run(
    command: Sequence[str], *, changes: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Exit status and output of a child; the output is added to the log.

    Standard input is closed, so that nothing can wait for an answer.
    """
    try:
        done = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            cwd=ROOT,
            env={**os.environ, **(changes or {})},
        )
        status, output = done.returncode, done.stdout
    except OSError as error:
        status, output = 127, f"{command[0]}: {error}\n"
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with LOG.open("a", encoding="utf-8") as log:
        log.write(f"$ {' '.join(command)}\n{output}[exit {status}]\n")
    return status, output


def last_line(output: str) -> str:
    """The last line that says something, for a message."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"
