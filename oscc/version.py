"""Version of the package, stated once in its metadata."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def _version() -> str:
    try:
        return version("oscc")
    except PackageNotFoundError:
        return "0+unknown"


VERSION = _version()
