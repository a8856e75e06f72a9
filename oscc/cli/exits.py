"""Exit statuses: one place that turns what happened into a number and one sentence."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import traceback
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

import click

from oscc.cli.streams import flush
from oscc.errors import OsccError

INTERRUPTED = 130
CRASHED = 70


def guarded(group: click.Group, arguments: Sequence[str]) -> int:
    """Run the group; never let an exception or a traceback out.

    Returns:
        Exit status of contracts: 0 to 4, 70 a fault of ours, 130 interrupted.
    """
    verb = next((word for word in arguments if not word.startswith("-")), "")
    name = f"oscc {verb}" if verb in group.list_commands(click.Context(group)) else ""
    try:
        with _signals_interrupt():
            status = group.main(
                list(arguments), prog_name="oscc", standalone_mode=False
            )
        flush()
        return status if isinstance(status, int) else 0
    except BaseException as error:
        return _told(error, name or "oscc", debug="--debug" in arguments)


def status_of(error: BaseException) -> int:
    """Exit status that an exception stands for.

    Example:
        >>> from oscc.errors import ToolError
        >>> status_of(ToolError("no disk"))
        3
    """
    if isinstance(error, SystemExit):
        return 0  # only click does this, when the reader of its output left
    if isinstance(error, click.exceptions.Exit):
        return int(error.exit_code)
    if isinstance(error, OsccError):
        return error.exit_status
    if isinstance(error, click.ClickException):
        return 2
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return INTERRUPTED
    if _forbidden(error):
        return 2
    return 3 if _machine(error) else CRASHED


def _forbidden(error: BaseException) -> str:
    """Which file the user may not use, empty if it is not that."""
    if isinstance(error, PermissionError) and error.filename:
        return f"`{error.filename}` is closed to you (uid {os.getuid()})."
    return ""


def _machine(error: BaseException) -> str:
    """What the machine lacks, empty if it is not that."""
    torchs = isinstance(error, RuntimeError) and "allocate" in str(error)
    if isinstance(error, MemoryError) or torchs:
        return "the machine has not enough memory for this request."
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{error.strerror}. Make room, then run it again."
    return ""


def _told(error: BaseException, name: str, *, debug: bool) -> int:
    status = status_of(error)
    if debug and status in (2, 3, 4, CRASHED):
        traceback.print_exception(error)
    if isinstance(error, click.UsageError):
        _say(f"{name}: {_sentence(error)} See `{name} --help`.")
    elif isinstance(error, click.ClickException):
        _say(f"{name}: {error.format_message()}")
    elif isinstance(error, OsccError):
        _say(f"{name}: {error}")
    elif status == INTERRUPTED:
        _say(f"{name}: interrupted; {_finished(error)}")
    elif _forbidden(error) or _machine(error):
        _say(f"{name}: {_forbidden(error) or _machine(error)}")
    elif status == CRASHED:
        _say(f"{name}: a fault of ours: {_crash(error, name)}")
    return status


def _finished(error: BaseException) -> str:
    """What an interruption left; click puts its own exception around ours."""
    source = error.__cause__ if isinstance(error, click.Abort) else error
    said = str(source) if isinstance(source, KeyboardInterrupt) else ""
    return said or "what was finished is kept."


def _sentence(error: click.UsageError) -> str:
    message = error.format_message()
    return message[:1].lower() + message[1:] if message[:2] != "`-" else message


def _crash(error: BaseException, name: str) -> str:
    from oscc.cli.logs import crash_file

    path = crash_file(name, "".join(traceback.format_exception(error)))
    kind = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    where = f" The traceback is in {path}" if path else " --debug shows the traceback"
    return f"{kind.rstrip(': ')}.{where}"


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        click.echo(text, err=True)


@contextlib.contextmanager
def _signals_interrupt() -> Iterator[None]:
    """Being asked to stop is an interruption, so that children are ended too.

    Asked again, the run goes on ending: a second interruption would break into the
    clean-up, and leave simulators behind.
    """
    kept: dict[int, Any] = {}
    asked = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        del number, frame
        if asked:  # it came before the ones after it were ignored
            return
        asked = True
        for one in kept:
            signal.signal(one, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with contextlib.suppress(ValueError):  # not the main thread
            kept[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        if not asked:
            for one, handler in kept.items():
                signal.signal(one, handler)
