"""Interpreter, phase engine and circuit engine share no numerical code."""

from __future__ import annotations

import ast
from itertools import combinations
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOTS = {
    "oscc": ROOT,
    "oscc_netlists": ROOT / "netlists",
    "oscc_backends": ROOT / "backends",
    "oscc_sims": ROOT / "sims",
}
LEVELS = {
    "ir": ("oscc.ir.interpret",),
    "phase": ("oscc_backends.phase", "oscc_sims.phase"),
    "circuit": ("oscc_backends.circuit", "oscc_sims.circuit"),
}
# Types, checks, files and the plan of dwells: none of them computes a phase.
SHARED = {
    "oscc",
    "oscc.arrays",
    "oscc.checks",
    "oscc.errors",
    "oscc.files",
    "oscc.ir",
    "oscc.ir.correlation",
    "oscc.ir.coupling",
    "oscc.ir.lock",
    "oscc.ir.plan",
    "oscc.ir.program",
    "oscc.ir.stage",
    "oscc.observables",
    "oscc.tensors",
    "oscc_backends",
    "oscc_backends.artefact",
    "oscc_backends.lock",
    "oscc_sims",
}


def source(module: str) -> Path | None:
    top = module.partition(".")[0]
    if top not in ROOTS:
        return None
    stem = ROOTS[top].joinpath(*module.split("."))
    for path in (stem / "__init__.py", stem.with_suffix(".py")):
        if path.is_file():
            return path
    return None


def imported(module: str) -> set[str]:
    """Modules of ours that a module imports, whether at its top or in a function."""
    path = source(module)
    assert path is not None, module
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{module} imports relatively"
            names = [node.module, *(f"{node.module}.{a.name}" for a in node.names)]
        found |= {name for name in names if source(name)}
    return found


def reached(start: tuple[str, ...]) -> set[str]:
    """All modules that are needed to run those given.

    Packages that are only passed through are kept; what their `__init__` imports for
    its own users is not followed, since it is not used here.
    """
    todo, seen = list(start), set()
    while todo:
        module = todo.pop()
        if module in seen:
            continue
        seen.add(module)
        path = source(module)
        if path is not None and path.name == "__init__.py":
            continue
        if module not in SHARED:
            todo += imported(module)
    return seen


@pytest.mark.parametrize(("one", "other"), list(combinations(LEVELS, 2)))
def test_levels_share_no_numerical_module(one: str, other: str) -> None:
    both = reached(LEVELS[one]) & reached(LEVELS[other])
    assert both <= SHARED, sorted(both - SHARED)


def test_reference_engine_shares_nothing_with_the_fast_one() -> None:
    both = reached(("oscc_sims.reference",)) & reached(("oscc_sims.phase",))
    assert both <= SHARED, sorted(both - SHARED)


def test_the_search_does_follow_imports() -> None:
    assert "oscc_sims.mobius" in reached(LEVELS["phase"])
    assert "oscc_sims.circuit_lanes" in reached(LEVELS["circuit"])
    assert "oscc.device.ppv" in reached(LEVELS["circuit"])
    assert "oscc.device.lock_law" in reached(LEVELS["phase"])
    assert "oscc.device.lock_readout" in reached(LEVELS["circuit"])
    assert "oscc_sims.lock_kernel" in reached(LEVELS["circuit"])


def names_used(module: str) -> set[str]:
    path = source(module)
    assert path is not None
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def test_coefficients_of_a_coupling_are_worked_out_three_times() -> None:
    """`Coupling.coefficients` computes; only one level may lean on it."""
    users = [
        module
        for level in LEVELS.values()
        for module in level
        if "coefficients" in names_used(module)
    ]
    assert users == ["oscc_backends.phase"]


def test_shared_modules_do_no_trigonometry_but_the_coefficients() -> None:
    trigonometry = {"sin", "cos", "tan", "exp", "arctan2", "tanh", "expm1", "angle"}
    for module in sorted(SHARED):
        used = names_used(module) & trigonometry
        assert used <= ({"exp"} if module == "oscc.ir.coupling" else set()), module
