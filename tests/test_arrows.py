"""Imports point one way: oscc <- oscc_netlists <- oscc_backends <- oscc_sims."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {
    "oscc": ROOT / "oscc",
    "oscc_netlists": ROOT / "netlists" / "oscc_netlists",
    "oscc_backends": ROOT / "backends" / "oscc_backends",
    "oscc_sims": ROOT / "sims" / "oscc_sims",
}
ORDER = list(FOLDERS)
# a second copy of a module, with classes of its own, hides behind these names
SOURCE_ROOTS = {"netlists", "backends", "sims"}
SEES_ALL = ("oscc/verbs/",)
SEES_VERBS = ("oscc/verbs/", "oscc/cli/", "oscc/__init__.py", "oscc/__main__.py")
_MODULE_IN_TEXT = re.compile(
    r"^(oscc(?:_netlists|_backends|_sims)?(?:\.\w+)+)(?::\w+)?$"
)


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and module of every import, also of names in text for import_module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            yield node.lineno, node.module or ""
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found = _MODULE_IN_TEXT.match(node.value)
            if found:
                yield node.lineno, found[1]


def faults(package: str, name: str, source: str) -> list[str]:
    """What a file imports that it must not."""
    allowed = set(ORDER[: ORDER.index(package) + 1])
    if name.startswith(SEES_ALL):
        allowed = set(ORDER)
    out = []
    for line, module in imported(ast.parse(source)):
        top = module.partition(".")[0]
        if top in SOURCE_ROOTS or (top in ORDER and top not in allowed):
            out.append(f"{name}:{line} imports {module}")
        if f"{module}.".startswith("oscc.verbs.") and not name.startswith(SEES_VERBS):
            out.append(f"{name}:{line} imports {module}")
    return out


def files() -> list[tuple[str, Path]]:
    return [
        (package, path)
        for package, folder in FOLDERS.items()
        for path in sorted(folder.rglob("*.py"))
    ]


def test_every_package_has_files() -> None:
    assert {package for package, _ in files()} == set(ORDER)


@pytest.mark.parametrize("package", ORDER)
def test_imports_point_one_way(package: str) -> None:
    found = [
        fault
        for owner, path in files()
        if owner == package
        for fault in faults(
            package, path.relative_to(ROOT).as_posix(), path.read_text("utf-8")
        )
    ]
    assert found == []


@pytest.mark.parametrize(
    ("package", "name", "source"),
    [
        ("oscc", "oscc/ir/stage.py", "import oscc_sims.circuit"),
        ("oscc", "oscc/ir/stage.py", "def f():\n    from oscc_netlists import deck"),
        ("oscc", "oscc/ir/stage.py", "import_module('oscc_sims.ode')"),
        ("oscc", "oscc/ir/stage.py", "TABLE = {'x': 'oscc_sims.ode:Engine'}"),
        ("oscc", "oscc/ir/stage.py", "from oscc import verbs"),
        ("oscc", "oscc/ir/stage.py", "from oscc.verbs.compile import compile"),
        ("oscc_netlists", "netlists/oscc_netlists/x.py", "import oscc_backends"),
        ("oscc_backends", "backends/oscc_backends/x.py", "from oscc_sims import y"),
        ("oscc_sims", "sims/oscc_sims/x.py", "from sims.oscc_sims import ode"),
        ("oscc_sims", "sims/oscc_sims/x.py", "import oscc.verbs.verify"),
    ],
)
def test_a_wrong_arrow_is_seen(package: str, name: str, source: str) -> None:
    assert faults(package, name, source)


@pytest.mark.parametrize(
    ("package", "name", "source"),
    [
        ("oscc", "oscc/verbs/x.py", "def f():\n    import oscc_sims.circuit"),
        ("oscc_sims", "sims/oscc_sims/x.py", "import oscc.ir, oscc_netlists.deck"),
        ("oscc", "oscc/cli/x.py", "from oscc.verbs.compile import compile"),
    ],
)
def test_a_right_arrow_is_let_through(package: str, name: str, source: str) -> None:
    assert faults(package, name, source) == []


def test_tests_do_not_import_each_other() -> None:
    found = [
        f"{path.name}:{line} {module}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for line, module in imported(ast.parse(path.read_text("utf-8")))
        if module.partition(".")[0] in ("tests", "conftest")
    ]
    assert found == []
