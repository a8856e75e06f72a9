"""The page on evaluation shows the figures of its scripts, not figures of old."""

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

from oscc.testing.scripts import load_script

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "howto" / "evaluate.md"


def script(name: str) -> ModuleType:
    return load_script(ROOT / "benchmarks" / f"{name}.py")


def results(name: str, key: str) -> dict[str, Any]:
    path = ROOT / "benchmarks" / "results" / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))[key]
    return found


def shown(head: str) -> list[str]:
    """Rows of the table under a heading."""
    section = PAGE.read_text("utf-8").split(f"## {head}")[1].split("\n## ")[0]
    return re.findall(r"^\| `.*$", section, re.M)


def test_bits_errors_and_spice_are_those_of_the_run() -> None:
    found = results("evaluate", "results")
    row = script("evaluate").row
    assert shown("What it gives") == [row(name, found[name]) for name in found]
    assert set(found) == set(script("evaluate").CHECKPOINTS)
    for seen in found.values():
        assert seen["tokens"] >= 20_000
        assert seen["spice"]["passed"] is True


def test_costs_are_those_of_the_run() -> None:
    found = results("loop_cost", "models")
    row = script("loop_cost").row
    assert shown("What it costs") == [row(name, found[name]) for name in found]
    for seen in found.values():
        assert seen["tokens"] >= 10_000
        assert seen["over_digital"]["phase"] <= 20
        assert seen["over_digital"]["circuit"] <= 60
