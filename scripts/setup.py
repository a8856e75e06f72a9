"""Set-up of a working copy: environment, locked packages, simulators, browser.

Standard library only. A step that is done leaves a stamp, and a stamp is written last,
so that an interrupted set-up is never taken for a finished one. Everything that the
steps print goes to build/setup.log; the terminal gets one line a step.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import setup_browser
import setup_packages
import setup_simulators
from setup_run import LOG, ROOT, SetupError, say

VENV = ROOT / ".venv"
STAMPS = VENV / ".stamps"
BUSY = STAMPS / "installing"
LOCK = ".setup-lock"  # .lock is the one of uv, which waits for it 5 minutes


def stamp_name(kind: str) -> str:
    """Name of the stamp: kind, and a hash of all that the environment depends on."""
    parts = [
        ".".join(map(str, sys.version_info[:3])).encode(),
        str(VENV).encode(),
        (ROOT / "requirements" / f"{kind}.txt").read_bytes(),
        (ROOT / "pyproject.toml").read_bytes(),
    ]
    return f"{kind}-{hashlib.sha256(b'|'.join(parts)).hexdigest()[:16]}"


def environment_ready(kind: str) -> bool:
    """Whether a finished set-up fits the files; `dev` holds all that `demo` needs."""
    kinds = ("dev",) if kind == "dev" else ("demo", "dev")
    return not BUSY.exists() and any(
        (STAMPS / stamp_name(name)).exists() for name in kinds
    )


@contextlib.contextmanager
def only_one() -> Iterator[None]:
    """Two set-ups of one working copy wait for each other."""
    VENV.mkdir(exist_ok=True)
    with (VENV / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another set-up of this folder is running; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def prepare_environment(kind: str) -> None:
    """Virtual environment with the locked packages, stamped when whole."""
    if environment_ready(kind):
        return
    if os.environ.get("OSCC_NO_INSTALL"):
        setup_packages.check_only(VENV, kind)
        return
    started = time.monotonic()
    if not usable(VENV):
        create_venv()
    STAMPS.mkdir(exist_ok=True)
    BUSY.touch()
    setup_packages.install(VENV, kind)
    for old in STAMPS.glob(f"{kind}-*"):
        old.unlink()
    stamp = STAMPS / stamp_name(kind)
    temporary = STAMPS / f".{stamp.name}"
    temporary.write_text(f"{time.time():.0f}\n")
    temporary.replace(stamp)
    BUSY.unlink()
    say(f"environment ready in .venv ({time.monotonic() - started:.0f} s)")


def usable(venv: Path) -> bool:
    """Whether an environment is whole: same Python, same place, not interrupted."""
    python, pip = venv / "bin" / "python", venv / "bin" / "pip"
    if BUSY.exists() or not python.exists() or not pip.exists():
        return False
    code = "import sys; print('.'.join(map(str, sys.version_info[:3])), sys.prefix)"
    found = subprocess.run(  # a broken link to a removed Python ends up here too
        [str(python), "-c", code], capture_output=True, text=True, check=False
    )
    version = ".".join(map(str, sys.version_info[:3]))
    shebang = pip.read_bytes()[:500].splitlines()[0].decode(errors="replace")
    return (
        found.returncode == 0
        and found.stdout.split() == [version, str(venv)]
        and shebang.startswith(f"#!{venv}/bin/")
    )


def create_venv() -> None:
    """A fresh environment in place of what is there; the lock file stays."""
    import venv

    if importlib.util.find_spec("ensurepip") is None:
        setup_simulators.apt_install(["python3-venv"], purpose="the module ensurepip")
        importlib.invalidate_caches()
        if importlib.util.find_spec("ensurepip") is None:
            raise SetupError(
                f"{sys.executable} has no ensurepip, so no virtual environment.\n"
                "Install the venv package of this Python, or name another: PYTHON=..."
            )
    for entry in VENV.iterdir():
        if entry.name == LOCK:
            continue
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    say(f"making .venv with Python {sys.version.split()[0]}")
    venv.EnvBuilder(with_pip=True, symlinks=True).create(VENV)


def main() -> int:
    """Do what is asked; 0 done, 3 something is missing, 130 interrupted."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("demo", "dev"))
    parser.add_argument("simulators", choices=("optional", "required", "none"))
    parser.add_argument("--ready", action="store_true", help="only compare, no word")
    given = parser.parse_args()
    complete = (
        environment_ready(given.kind)
        and setup_simulators.ready(given.simulators)
        and not setup_browser.wanted(given.simulators)
    )
    if given.ready or complete:
        return 0 if complete else 3
    LOG.parent.mkdir(parents=True, exist_ok=True)
    LOG.write_text("")
    try:
        with only_one():
            prepare_environment(given.kind)
            setup_simulators.install(given.simulators)
            setup_browser.install(given.simulators)
    except SetupError as error:
        say(str(error))
        return 3
    except KeyboardInterrupt:
        say("interrupted; the next run starts the unfinished step again")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
