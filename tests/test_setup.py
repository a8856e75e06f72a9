"""Set-up: what it asks of whom, what it says when something is missing."""

import importlib
import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / "scripts"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A working copy with nothing but what set-up reads."""
    shutil.copytree(SCRIPTS, tmp_path / "scripts", ignore=_no_bytecode)
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


_no_bytecode = shutil.ignore_patterns("__pycache__")


@pytest.fixture
def module(tree: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """scripts/setup_simulators.py of the copy; `tool` makes programs it can find."""
    monkeypatch.syspath_prepend(str(tree / "scripts"))
    for name in list(sys.modules):
        if name.startswith("setup_"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setenv("PATH", str(tree / "bin") + ":/usr/bin:/bin")
    (tree / "bin").mkdir()
    for variable in ("OSCC_NGSPICE", "OSCC_GNUCAP"):
        monkeypatch.setenv(variable, variable.lower())
    return importlib.import_module("setup_simulators")


def tool(tree: Path, name: str, text: str = "exit 0") -> Path:
    path = tree / "bin" / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def setup(tree: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    done = subprocess.run(
        ["sh", str(tree / "scripts" / "setup.sh"), *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stderr


def test_an_old_python_is_named_with_what_to_do(tree: Path) -> None:
    (tree / "bin").mkdir()
    old = tool(tree, "python3.9", 'case "$2" in *_base*) exit 1;; esac; echo 3.9.2')
    status, said = setup(tree, "demo", "none", PYTHON=str(old), OSCC_GOAL="demo")
    assert status == 3
    assert said == (
        "oscc needs Python 3.11 or newer, but found 3.9.2. Install one, "
        "or run `make demo PYTHON=/path/to/python3.11`.\n"
    )
    assert not (tree / ".venv").exists()


def test_no_install_says_what_is_missing(tree: Path) -> None:
    status, said = setup(
        tree, "demo", "none", PYTHON=sys.executable, OSCC_NO_INSTALL="1"
    )
    assert status == 3
    assert "OSCC_NO_INSTALL is set, and .venv does not hold" in said


def test_a_stamp_that_fits_is_all_that_is_looked_at(tree: Path) -> None:
    (tree / ".venv" / ".stamps").mkdir(parents=True)
    code = "import setup; print(setup.stamp_name('dev'))"
    name = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tree / "scripts",
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    (tree / ".venv" / ".stamps" / name).touch()
    for kind in ("dev", "demo"):
        assert setup(tree, kind, "none", PYTHON=sys.executable) == (0, "")
    assert not (tree / "build").exists()
    busy = tree / ".venv" / ".stamps" / "installing"
    busy.touch()
    nothing = {"PYTHON": sys.executable, "OSCC_NO_INSTALL": "1"}
    assert setup(tree, "dev", "none", **nothing)[0] == 3
    busy.unlink()
    with (tree / "requirements" / "dev.txt").open("a") as file:
        file.write("# changed\n")
    assert setup(tree, "dev", "none", **nothing)[0] == 3


def test_simulators_come_through_apt_for_root(
    module: ModuleType, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tree / "asked"
    make = "; ".join(
        f"printf '#!/bin/sh\\n' > {tree}/bin/{n}; chmod +x {tree}/bin/{n}"
        for n in ("oscc_ngspice", "oscc_gnucap")
    )
    tool(tree, "apt-get", f'echo "$@ $DEBIAN_FRONTEND" >> {log}; {make}')
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(module, "_library_loads", lambda: True)
    module.install("required")
    assert module.ready("required")
    asked = log.read_text().splitlines()[-1]
    assert asked.startswith("install -y --no-install-recommends")
    for package in ("ngspice", "libngspice0", "gnucap", "gnucap-default-plugins0"):
        assert package in asked.split()
    assert asked.endswith("noninteractive")
    log.unlink()
    module.install("required")
    assert not log.exists(), "nothing is asked of apt the second time"


@pytest.mark.parametrize("mode", ["optional", "required"])
def test_without_root_it_says_the_line_to_type(
    module: ModuleType,
    tree: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mode: str,
) -> None:
    tool(tree, "apt-get", "exit 1")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    if mode == "required":
        with pytest.raises(module.SetupError) as caught:
            module.install(mode)
        said = str(caught.value)
    else:
        module.install(mode)
        said = capsys.readouterr().err
        assert "The demo goes on without the SPICE level." in said
    assert "not installed and you are not root" in said
    assert "sudo apt-get install -y --no-install-recommends ngspice" in said


def test_apt_that_fails_is_told_with_its_last_line(
    module: ModuleType, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool(tree, "apt-get", "echo 'E: Unable to locate package ngspice'; exit 100")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(module.SetupError, match="E: Unable to locate package ngspice"):
        module.install("required")
    assert "Unable to locate" in (tree / "build" / "setup.log").read_text()


def test_the_browser_of_the_tests_is_brought_to_root_alone(
    module: ModuleType,
    tree: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    browser = importlib.import_module("setup_browser")
    monkeypatch.setattr(browser, "BROWSER", "no-such-browser")
    log = tree / "asked"
    tool(tree, "apt-get", f'echo "$@" >> {log}; exit 100')
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert not browser.wanted("required")
    browser.install("required")
    assert not log.exists(), "somebody else's system is left alone"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert not browser.wanted("optional"), "the demo needs none"
    browser.install("required")
    assert "no-such-browser" in log.read_text()
    assert "The tests go on without opening" in capsys.readouterr().err
    tool(tree, "no-such-browser")
    assert not browser.wanted("required")


def test_what_pip_was_told_is_handed_to_uv(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = importlib.import_module("setup_packages")
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    plain = packages.uv_arguments(sys.executable)
    assert plain == ["--index-strategy", "unsafe-best-match"]
    monkeypatch.setenv("PIP_INDEX_URL", "https://one/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://two/simple https://three/simple")
    monkeypatch.setenv("PIP_FIND_LINKS", "/wheels")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_TRUSTED_HOST", "one")
    told = packages.uv_arguments(sys.executable)
    pairs = list(itertools.pairwise(told))
    assert ("--default-index", "https://one/simple") in pairs
    assert ("--index", "https://two/simple") in pairs
    assert ("--index", "https://three/simple") in pairs
    assert ("--find-links", "/wheels") in pairs
    assert ("--allow-insecure-host", "one") in pairs
    assert "--no-index" in told


@pytest.mark.parametrize(
    ("offers", "allowed", "extra", "refused"),
    [
        ((" + torch==2.13.0+cpu",), "", [], False),
        (
            (" + torch==2.13.0\n + nvidia-cublas==13.1", " + torch==2.13.0+cpu"),
            "",
            ["--index", "https://download.pytorch.org/whl/cpu"],
            False,
        ),
        ((" + torch==2.13.0\n + triton==3.7",) * 2, "", [], True),
        ((" + torch==2.13.0\n + triton==3.7",) * 2, "1", [], False),
    ],
    ids=["cpu wheel", "cpu index", "cuda refused", "cuda allowed"],
)
def test_torch_comes_as_the_cpu_build_or_by_leave(
    module: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    offers: tuple[str, ...],
    allowed: str,
    extra: list[str],
    refused: bool,
) -> None:
    packages = importlib.import_module("setup_packages")
    answers = iter(offers)
    monkeypatch.setattr(packages, "run", lambda *_, **__: (0, next(answers)))
    monkeypatch.setenv("CI", "1")
    monkeypatch.setenv("OSCC_ALLOW_CUDA", allowed)
    installer = ["/x/uv", "pip", "install"]
    if refused:
        with pytest.raises(packages.SetupError, match="OSCC_ALLOW_CUDA=1 takes it"):
            packages._torch_arguments(installer, "requirements/demo.txt")
    else:
        found = packages._torch_arguments(installer, "requirements/demo.txt")
        assert found == extra


@pytest.mark.slow
def test_no_index_at_all_is_told_and_leaves_no_stamp(tree: Path) -> None:
    closed = "http://127.0.0.1:9/simple"
    quick = {"PIP_RETRIES": "0", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": os.devnull}
    status, said = setup(
        tree, "demo", "none", PYTHON=sys.executable, PIP_INDEX_URL=closed, **quick
    )
    assert status == 3
    assert "the packages could not be installed (uv: " in said
    assert "make demo PIP_FIND_LINKS=/folder/with/wheels" in said
    stamps = [path.name for path in (tree / ".venv" / ".stamps").iterdir()]
    assert stamps == ["installing"]
