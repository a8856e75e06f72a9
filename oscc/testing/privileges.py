"""Giving up root for the length of a test, so that no permission test is skipped."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

_NOBODY = 65534


@contextlib.contextmanager
def unprivileged() -> Iterator[None]:
    """Run as `nobody` where the process is root; as it is elsewhere.

    Modules that the block needs must have been imported before.

    Example:
        >>> with unprivileged():
        ...     os.getuid() != 0
        True
    """
    if os.getuid() != 0:
        yield
        return
    os.setresuid(_NOBODY, _NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
