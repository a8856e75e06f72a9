"""Build the wheel, install it into an environment of its own, run the tests against it.

The tests run outside this tree, so that nothing is imported from it. The packages of
.venv are lent by path; the editable install of this project is not, since only a site
folder's own .pth files are read.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("oscc", "netlists", "backends", "sims")
FILES = ("pyproject.toml", "README.md", "LICENSE")
# what tests read beside the packages; the tests about this tree stay in it
BESIDE = ("tests", "checkpoints", "docs", "benchmarks", "examples")
OF_THE_TREE = ("arrows", "budget", "packaging", "public", "setup")
SETTINGS = ("--import-mode=importlib", "--strict-markers", "-p", "no:cacheprovider")


def call(*command: object, cwd: Path = ROOT) -> None:
    """Run a command; its failure ends this script with its status."""
    status = subprocess.run([str(c) for c in command], cwd=cwd, check=False).returncode
    if status:
        sys.exit(status)


def build(place: Path) -> Path:
    """The wheel, from a copy: a build in the tree packs what an earlier one left."""
    source = place / "source"
    source.mkdir()
    skip = shutil.ignore_patterns("__pycache__")
    for name in SOURCES:
        shutil.copytree(ROOT / name, source / name, ignore=skip)
    for name in FILES:
        shutil.copy(ROOT / name, source / name)
    out = ROOT / "build" / "dist"
    shutil.rmtree(out, ignore_errors=True)
    call(
        *(sys.executable, "-m", "build", "--wheel", "--no-isolation"),
        *("--outdir", out, source),
    )
    (wheel,) = out.glob("*.whl")
    return wheel


def environment(place: Path, wheel: Path) -> Path:
    """Python of a fresh environment that holds the wheel."""
    folder = place / "env"
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
    python = folder / "bin" / "python"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = folder / "lib" / version / "site-packages"
    call(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"),
        *("--target", site, wheel),
    )
    (site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def main() -> None:
    """Build, install, copy the tests, run the fast ones."""
    with tempfile.TemporaryDirectory(prefix="oscc-wheel-") as name:
        place = Path(name)
        python = environment(place, build(place))
        tests = place / "tree"
        tests.mkdir()
        for part in BESIDE:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, tests / part)
        shutil.copy(ROOT / "pyproject.toml", tests / "project.toml")
        markers = _markers()
        (tests / "pytest.ini").write_text(
            f"[pytest]\nfilterwarnings = error\nmarkers =\n{markers}"
        )
        ignored = [f"--ignore=tests/test_{word}.py" for word in OF_THE_TREE]
        call(
            *(python, "-P", "-m", "pytest", "-q", *SETTINGS, *ignored),
            *("-m", "not slow and not gpu and not cluster", "-n", 2),
            *("--dist", "loadfile", "--simulators", "required", "tests"),
            cwd=tests,
        )


def _markers() -> str:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lines = project["tool"]["pytest"]["ini_options"]["markers"]
    return "".join(f"    {line}\n" for line in lines)


if __name__ == "__main__":
    main()
