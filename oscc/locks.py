"""Locks between processes: a file that one of them holds."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from oscc.errors import RequestError


@contextlib.contextmanager
def held(path: Path, busy: str, *, remove: bool = False) -> Iterator[None]:
    """Hold a lock file, so that two runs never mix their files.

    Args:
        path: The lock file; it is made where it is missing.
        busy: What to say where another process holds it.
        remove: Remove the file afterwards.

    Raises:
        RequestError: another process holds it, or the folder cannot be written.
    """
    with _opened(path, busy):
        try:
            yield
        finally:
            if remove:
                path.unlink(missing_ok=True)


def _opened(path: Path, busy: str) -> IO[str]:
    """The file, locked, and still the one that has the name."""
    while True:
        try:
            lock = path.open("w")
        except OSError as error:
            raise RequestError(
                f"`{path.parent}` is not writable by you (uid {os.getuid()}): "
                f"{error.strerror or error}."
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.close()
            raise RequestError(busy) from error
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock.fileno()), path.stat()):
                return lock
        lock.close()  # its last holder removed it meanwhile: take the new one
