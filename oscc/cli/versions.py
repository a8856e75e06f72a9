"""Versions of all parts, by metadata: nothing heavy is imported."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from oscc.cli.output import emit_json, say
from oscc.version import VERSION

_PACKAGES = ("numpy", "scipy", "numba", "torch", "safetensors")
_SIMULATORS = ("ngspice", "gnucap")


def versions() -> dict[str, str | None]:
    """Version by part; None where a part is missing."""
    found: dict[str, str | None] = {
        "oscc": VERSION,
        "git": _revision(),
        "python": platform.python_version(),
    }
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    for name in _SIMULATORS:
        found[name] = _simulator(name)
    return found


def show(*, as_json: bool) -> None:
    """Print the versions, as one line or as JSON."""
    found = versions()
    if as_json:
        emit_json({"format": "oscc.version/1", "versions": found})
        return
    git = f" (git {found['git']})" if found["git"] else ""
    parts = [f"oscc {found['oscc']}{git}", f"Python {found['python']}"]
    parts += [f"{name} {found[name] or 'missing'}" for name in _PACKAGES]
    parts += [f"{name} {found[name] or 'missing'}" for name in _SIMULATORS]
    say(" · ".join(parts))


def _revision() -> str | None:
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "--short", "HEAD"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def _simulator(name: str) -> str | None:
    from oscc.errors import ToolError
    from oscc.verbs.doctor import simulator_version

    try:
        return simulator_version(name)
    except ToolError:
        return None
