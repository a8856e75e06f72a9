"""The demo: the whole way for the shipped model and a real text, in one folder.

Compile, simulate, verify at every level that can run here, account, report. The text
is a source file of the interpreter's own standard library.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

from oscc.units import si_text

ROOT = Path(__file__).resolve().parent.parent
CHECKPOINT = "checkpoints/fsn-flow.safetensors"
OUT = "build/demo"
SOURCE = "bisect.py"
TOKENS = 64
TARGETS = 4

LEVELS = ("ir", "phase", "circuit", "spice:ngspice", "spice:gnucap")


def oscc(*words: object) -> int:
    """Run one verb, its output passing through; exit status."""
    line = [str(word) for word in words]
    sys.stdout.write(f"\n$ oscc {' '.join(line)}\n")
    sys.stdout.flush()
    command = [sys.executable, "-m", "oscc", *line]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def runnable() -> list[str]:
    """Levels that can run here; which are left out is said."""
    command = [sys.executable, "-m", "oscc", "doctor", "--json"]
    done = subprocess.run(
        command, cwd=ROOT, check=False, capture_output=True, text=True
    )
    if not done.stdout:
        sys.stderr.write(done.stderr)
        sys.exit(done.returncode)
    found: dict[str, Any] = json.loads(done.stdout)
    for check in found["checks"]:
        if not check["ok"]:
            sys.stdout.write(f"{check['detail']}   {check['mend']}\n")
    levels = [level for level in LEVELS if found["levels"].get(level)]
    left = sorted(set(LEVELS) - set(levels))
    if left:
        sys.stdout.write(f"levels left out here: {', '.join(left)}\n")
    return levels


def main() -> int:
    """Run every step; the exit status is that of the verdict."""
    began = time.perf_counter()
    levels = runnable()
    text = Path(sysconfig.get_path("stdlib")) / SOURCE
    steps: list[list[object]] = [
        [
            *("compile", CHECKPOINT, "--text-file", text, "--max-tokens", TOKENS),
            *("--deck-targets", TARGETS, "--force", "-o", OUT),
        ],
        ["simulate", OUT, "--engine", "phase"],
        ["simulate", OUT, "--engine", "circuit"],
    ]
    for step in steps:
        status = oscc(*step)
        if status:
            return status
    tile = ["--tile"] if "spice:gnucap" in levels else []
    verdict = oscc("verify", OUT, "--levels", ",".join(levels), *tile)
    if verdict in (2, 70, 130):
        return verdict
    for verb in ("energy", "report"):
        status = oscc(verb, OUT)
        if status:
            return status
    _close(verdict, time.perf_counter() - began)
    return verdict


def _close(verdict: int, seconds: float) -> None:
    word = {0: "PASS", 1: "FAIL", 4: "INCONCLUSIVE"}.get(verdict, "NOT RUN IN FULL")
    energy = json.loads((ROOT / OUT / "energy.json").read_text(encoding="utf-8"))
    pair = energy["per_pair_J"]
    sys.stdout.write(
        f"\n{word}\n"
        f"energy per coupled pair: {si_text(pair['all_in'], 'J')} all-in, "
        f"{si_text(pair['marginal'], 'J')} marginal\n"
        f"page: {OUT}/report.html   [{seconds:.0f} s]\n"
    )


if __name__ == "__main__":
    sys.exit(main())
