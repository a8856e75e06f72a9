"""Set-up: the simulators, through apt where we may."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import time
from pathlib import Path

from setup_run import SetupError, last_line, run, say

PROGRAMS = {"ngspice": "OSCC_NGSPICE", "gnucap": "OSCC_GNUCAP"}
# without its plug-ins, which apt only recommends, gnucap starts and runs nothing
PACKAGES = ("ngspice", "libngspice0", "gnucap", "gnucap-default-plugins0")
LISTS = Path("/var/lib/apt/lists")
DAY = 86_400.0


def missing(mode: str) -> list[str]:
    """Names of what is not there; the library is for the tests alone."""
    found = [
        name
        for name, variable in PROGRAMS.items()
        if not shutil.which(os.environ.get(variable) or name)
    ]
    if "gnucap" not in found and not _gnucap_has_plugins():
        found.append("gnucap's plug-ins")
    if mode == "required" and not _library_loads():
        found.append("libngspice")
    return found


def ready(mode: str) -> bool:
    """Whether nothing that the mode asks for is missing."""
    return mode == "none" or not missing(mode)


def install(mode: str) -> None:
    """Bring the missing simulators; when optional, going on without them is fine.

    Raises:
        SetupError: they are required and cannot be brought.
    """
    if ready(mode):
        return
    try:
        apt_install(list(PACKAGES), purpose=_named(missing(mode)))
        left = missing(mode)
        if left:
            raise SetupError(f"{_named(left)} is still missing after apt-get.")
    except SetupError as error:
        if mode == "required":
            raise
        say(f"{error}\nThe demo goes on without the SPICE level.")


def apt_install(packages: list[str], *, purpose: str) -> None:
    """Install Debian packages without a question.

    Raises:
        SetupError: not allowed, no apt here, or apt failed.
    """
    line = f"apt-get install -y --no-install-recommends {' '.join(packages)}"
    if os.environ.get("OSCC_NO_INSTALL"):
        raise SetupError(f"{purpose} is missing and OSCC_NO_INSTALL is set.")
    if shutil.which("apt-get") is None:
        raise SetupError(
            f"{purpose} is not installed, and there is no apt-get here.\n"
            f"Install by your system's means: {' '.join(packages)}"
        )
    if os.geteuid() != 0:
        raise SetupError(
            f"{purpose} is not installed and you are not root.\nTo have it: sudo {line}"
        )
    say(f"installing {' '.join(packages)} with apt-get")
    if not (_lists_fresh() and _apt(packages)[0] == 0):
        run(["apt-get", "-o", "DPkg::Lock::Timeout=120", "update"])
        status, output = _apt(packages)
        if status:
            raise SetupError(
                f"apt-get could not install {' '.join(packages)}: {last_line(output)}\n"
                f"The log is build/setup.log. By hand: {line}"
            )


def _apt(packages: list[str]) -> tuple[int, str]:
    options = ["-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120"]
    return run(
        ["apt-get", "install", *options, *packages],
        changes={"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"},
    )


def _lists_fresh() -> bool:
    has_lists = LISTS.is_dir() and any(LISTS.glob("*Packages*"))
    return has_lists and time.time() - LISTS.stat().st_mtime < DAY


def _library_loads() -> bool:
    name = os.environ.get("NGSPICE_LIBRARY_PATH") or "libngspice.so.0"
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def _gnucap_has_plugins() -> bool:
    program = os.environ.get(PROGRAMS["gnucap"]) or "gnucap"
    done = subprocess.run(
        [program, "--version"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=30,
    )
    return "plugin not found" not in done.stdout + done.stderr


def _named(names: list[str]) -> str:
    return ", ".join(names)
