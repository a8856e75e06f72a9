"""Being asked to stop while something must be finished first."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def stop_noted() -> Iterator[Callable[[], bool]]:
    """Note the first Ctrl-C, SIGTERM or SIGHUP instead of breaking off at once.

    The block is given a function that tells whether one came, and is to end soon when
    it did. Asked a second time, what would have happened without this happens. Signals
    that are ignored stay so; outside the main thread, nothing is noted.

    Example:
        >>> with stop_noted() as stopped:
        ...     stopped()
        False
    """
    kept: dict[int, Any] = {}
    asked = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if not asked:
            asked = True
        elif callable(kept[number]):
            kept[number](number, frame)
        else:
            raise KeyboardInterrupt

    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            with contextlib.suppress(ValueError):  # not the main thread
                kept[number] = signal.signal(number, note)
    try:
        yield lambda: asked
    finally:
        for one, handler in kept.items():
            signal.signal(one, handler)
