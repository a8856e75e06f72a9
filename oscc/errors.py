"""Exception classes of the package, each with the exit status it stands for.

A failed verdict is a value, never an exception. Every message says what is wrong,
where it is, and how to mend it, in at most three lines.
"""

from __future__ import annotations


class OsccError(Exception):
    """Base of every error that the package raises on purpose."""

    exit_status = 70


class RequestError(OsccError):
    """The request or its input is wrong: bad option, file, value or shape."""

    exit_status = 2


class ToolError(OsccError):
    """An external tool or the machine lacks something, or failed."""

    exit_status = 3


class UndecidedError(OsccError):
    """No number can be offered: not settled, not converged, no whole period."""

    exit_status = 4
