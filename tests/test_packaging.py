"""Packaging: the wheel holds every module and every data file, and nothing else."""

import fnmatch
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOTS = (ROOT, ROOT / "netlists", ROOT / "backends", ROOT / "sims")
PARTS = (ROOT / "oscc", *ROOTS[1:])
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def packaged() -> dict[str, Path]:
    """Every file that belongs into the wheel, by its name there."""
    found = {}
    for root in ROOTS:
        for package in sorted(root.glob("oscc*/")):
            for path in sorted(package.rglob("*")):
                inside = path.relative_to(root)
                if path.is_file() and "__pycache__" not in inside.parts:
                    found[inside.as_posix()] = path
    return {k: v for k, v in found.items() if ".egg-info" not in k}


def covered(name: str, patterns: list[str]) -> bool:
    """Whether a data file matches, below its nearest package, as setuptools has it."""
    path = Path(name)
    package = next(
        p for p in path.parents if f"{p.as_posix()}/__init__.py" in packaged()
    )
    inside = path.relative_to(package).as_posix()
    return any(
        fnmatch.fnmatch(inside, pattern) and inside.count("/") == pattern.count("/")
        for pattern in patterns
    )


def test_every_data_file_matches_a_pattern() -> None:
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["*"]
    data = [name for name in packaged() if not name.endswith(".py")]
    assert len(data) > 5
    assert [name for name in data if not covered(name, patterns)] == []
    assert not covered("oscc/device/cards/vo2-two-state-6k.yaml", ["*.yaml"])


def test_every_folder_with_code_is_a_package() -> None:
    folders = {path.parent for path in packaged().values()}
    assert [f for f in sorted(folders) if not (f / "__init__.py").is_file()] == [
        ROOT / "oscc" / "device" / "cards"
    ]
    for name in ("oscc", "oscc_netlists", "oscc_backends", "oscc_sims"):
        assert f"{name}/py.typed" in packaged()


def test_locked_versions_satisfy_the_project() -> None:
    from packaging.requirements import Requirement

    lock = {
        line.partition("==")[0].lower().replace("_", "-"): line.partition("==")[2]
        for line in (ROOT / "requirements" / "dev.txt").read_text().splitlines()
        if "==" in line
    }
    demo = (ROOT / "requirements" / "demo.txt").read_text().splitlines()
    wanted = list(PROJECT["project"]["dependencies"])
    for name, extra in PROJECT["project"]["optional-dependencies"].items():
        wanted += extra if name != "all" else []
    for text in wanted:
        need = Requirement(text)
        assert need.specifier.contains(lock[need.name.lower()]), text
    plain = {Requirement(t).name.lower() for t in PROJECT["project"]["dependencies"]}
    pinned = {line.partition("==")[0] for line in demo if "==" in line}
    assert plain <= pinned
    assert set(filter(None, demo[1:])) <= set(
        (ROOT / "requirements" / "dev.txt").read_text().splitlines()
    )
    assert lock["torch"].count("+") == 0


def test_the_gpl_wrapper_is_an_extra_of_its_own() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    assert "pyspice" not in " ".join(extras["all"]).lower()
    assert not any("pyspice" in d.lower() for d in PROJECT["project"]["dependencies"])


@pytest.mark.slow
def test_the_wheel_works_on_its_own(tmp_path: Path) -> None:
    # from a copy: setuptools would pack what an earlier build left in build/lib
    source = tmp_path / "source"
    for name in ("pyproject.toml", "README.md", "LICENSE", *(r.name for r in PARTS)):
        place = ROOT / name
        copy = shutil.copytree if place.is_dir() else shutil.copy
        source.mkdir(exist_ok=True)
        copy(place, source / name)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir"]
    subprocess.run(
        [*build, str(tmp_path), str(source)],
        check=True,
        capture_output=True,
        timeout=300,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {n for n in archive.namelist() if ".dist-info/" not in n}
        metadata = next(n for n in archive.namelist() if n.endswith("/METADATA"))
        text = archive.read(metadata).decode()
        archive.extractall(tmp_path / "site")
    assert names == set(packaged())
    assert "License-Expression: MIT" in text
    assert "Requires-Python: >=3.11" in text
    code = "import oscc.device; oscc.device.load_card('vo2-two-state-6k')"
    for arguments in (["-c", code], ["-m", "oscc", "inspect", "--cards"]):
        done = subprocess.run(
            [sys.executable, "-P", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert "vo2-two-state-6k" in done.stdout
