"""Rewrite requirements/dev.txt and requirements/demo.txt from pyproject.toml.

Both hold every package at one version; demo.txt is the part of dev.txt that the plain
dependencies need. torch stands without its build (`+cpu`), since a machine without
that wheel would find nothing. `--upgrade` takes newer
versions of all but torch, whose line is changed by hand.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from setup_packages import CUDA, uv_arguments
from setup_run import ROOT, SetupError, run, say

HEAD = "# Written by `make lock` from pyproject.toml. Every package, at one version.\n"
BUILD_LABEL = re.compile(r"^(torch==[0-9.]+)\+\w+", flags=re.MULTILINE)


def resolve(kind: str, arguments: list[str]) -> None:
    """Rewrite one file; pins that still fit stay, but for `--upgrade`."""
    path = ROOT / "requirements" / f"{kind}.txt"
    fresh = ROOT / "build" / f"lock-{kind}.txt"
    old = path.read_text() if path.exists() else ""
    # as a preference uv would take the index's own build, as a constraint the wheel
    torch = re.findall(r"^torch==.*\n", old, flags=re.MULTILINE)
    (ROOT / "build" / "lock-torch.txt").write_text("".join(torch))
    fresh.write_text(re.sub(r"^torch==.*\n", "", old, flags=re.MULTILINE))
    plain = ["--no-header", "--no-annotate", "--quiet", "-o", str(fresh)]
    plain += ["--constraint", "build/lock-torch.txt"]
    uv = [str(Path(sys.executable).parent / "uv"), "pip", "compile", "pyproject.toml"]
    status, output = run(
        [*uv, *plain, *arguments, *sys.argv[1:], *uv_arguments(sys.executable)]
    )
    if status:
        raise SetupError(f"uv could not resolve {kind}: {output.strip()}")
    text = BUILD_LABEL.sub(r"\1", fresh.read_text())
    if CUDA.search(text):
        raise SetupError(
            "torch resolves to its CUDA build, whose packages do not belong in the "
            "lock. Nothing was changed. Set PIP_FIND_LINKS to a folder of CPU wheels."
        )
    path.write_text(HEAD + text)
    say(f"{path.relative_to(ROOT)}: {text.count('==')} packages")


def main() -> int:
    """Resolve all extras, then the plain dependencies under the same pins."""
    (ROOT / "build").mkdir(exist_ok=True)
    build = ROOT / "build" / "build-requires.in"
    build.write_text("setuptools\n")
    try:
        resolve("dev", ["--extra", "all", "--extra", "pyspice"])
        resolve("demo", [str(build), "--constraint", "requirements/dev.txt"])
    except SetupError as error:
        say(str(error))
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
