"""Options of the test run: how much of the outside world it must have.

`--simulators required` fails a test whose simulator is missing, `if_available` skips
it with the reason, `disabled` skips all of them. `--ngspice`, `--gnucap`, `--pyspice`
and `--browser` override it for one tool.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import signal
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings

# The gate tries the same examples every time; `--hypothesis-profile=explore` does not.
# No deadline: the machine is shared, and time is not what the properties are about.
settings.register_profile(
    "gate",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("gate")

# One thread a worker: before numpy, torch or numba are imported. numba keeps its own
# count, since tests of thread counts need more than one.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
# The pool must be able to hold the three threads that the determinism tests ask for.
os.environ.setdefault("NUMBA_NUM_THREADS", "3")

# A shell starts what it puts into the background with Ctrl-C ignored, and children
# inherit that; the tests of interruption must not depend on how they were started.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

MODES = ("required", "if_available", "disabled")


def _program_missing(variable: str, name: str) -> Callable[[], str]:
    def missing() -> str:
        wanted = os.environ.get(variable) or name
        return "" if shutil.which(wanted) else f"the program `{wanted}` is not found"

    return missing


def _pyspice_missing() -> str:
    if importlib.util.find_spec("PySpice") is None:
        return "the package PySpice is not installed"
    library = os.environ.get("NGSPICE_LIBRARY_PATH") or "libngspice.so.0"
    try:
        ctypes.CDLL(library)
    except OSError:
        return f"the library `{library}` does not load"
    return ""


def _browser_missing() -> str:
    name = "chromium-headless-shell"
    return "" if shutil.which(name) else f"{name} is not installed"


TOOLS: dict[str, Callable[[], str]] = {
    "ngspice": _program_missing("OSCC_NGSPICE", "ngspice"),
    "gnucap": _program_missing("OSCC_GNUCAP", "gnucap"),
    "pyspice": _pyspice_missing,
    "browser": _browser_missing,
}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("oscc")
    group.addoption("--simulators", choices=MODES, default="if_available")
    for tool in TOOLS:
        group.addoption(f"--{tool}", choices=MODES, default=None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for tool, missing in TOOLS.items():
        if item.get_closest_marker(tool) is None:
            continue
        mode = item.config.getoption(tool) or item.config.getoption("simulators")
        if mode == "disabled":
            pytest.skip(f"{tool}: disabled on the command line")
        reason = missing()
        if reason and mode == "required":
            pytest.fail(f"{tool} is required, but {reason}", pytrace=False)
        if reason:
            pytest.skip(f"{tool}: {reason}")
