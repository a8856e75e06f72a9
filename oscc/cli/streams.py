"""Standard output that may be closed by its reader, such as `| head -1`."""

from __future__ import annotations

import contextlib
import os
import sys


def write(text: str) -> None:
    """Write to standard output; a reader that left is no error."""
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        _close_quietly()


def flush() -> None:
    """Hand on what is buffered; a reader that left is no error."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _close_quietly()


def _close_quietly() -> None:
    """Point standard output at nothing, so that closing it cannot fail again."""
    with contextlib.suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
