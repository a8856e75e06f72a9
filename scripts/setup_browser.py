"""Set-up: the browser in which one test opens the report, where we may bring it."""

from __future__ import annotations

import os
import shutil

import setup_simulators
from setup_run import SetupError, say

BROWSER = "chromium-headless-shell"


def wanted(mode: str) -> bool:
    """Whether it is missing and ours to bring: for the tests, as root, with apt.

    Nobody else is asked for a browser; the test then names the package and is skipped.
    """
    return (
        mode == "required"
        and shutil.which(BROWSER) is None
        and shutil.which("apt-get") is not None
        and os.geteuid() == 0
        and not os.environ.get("OSCC_NO_INSTALL")
    )


def install(mode: str) -> None:
    """Bring it; the tests go on without it where the system has no such package."""
    if not wanted(mode):
        return
    try:
        setup_simulators.apt_install([BROWSER], purpose="the browser of the tests")
    except SetupError as error:
        say(f"{error}\nThe tests go on without opening the report in a browser.")
