"""The page on energy shows the figures of its script for pair cells."""

import json
from pathlib import Path
from types import ModuleType

import pytest

from oscc.testing.scripts import load_script

ROOT = Path(__file__).parents[1]


def script() -> ModuleType:
    return load_script(ROOT / "benchmarks" / "cell_cost.py")


def test_the_table_and_the_words_are_those_of_the_results() -> None:
    found = script()
    results = json.loads(found.OUT.read_text("utf-8"))
    page = (ROOT / "docs" / "reference" / "energy.md").read_text("utf-8")
    for entry in results["cells"]:
        assert found.row(entry) in page
    even, text = results["break_even"], results["text"]
    assert f"below .{even['fp32']['c_F'] * 1e14:.0f} pF" in page
    assert f"jitters by {1e3 * even['fp32']['thermal_jitter_rad']:.0f} mrad" in page
    assert even["int8"]["c_F"] is None
    assert f"alone, {even['int8']['fixed_J'] * 1e12:.1f} pJ" in page
    assert f"{text['cells'] // 1000} {text['cells'] % 1000} cells" in page
    assert f"{1e3 * text['total_J']:.2f} mJ" in page
    assert set(text["periods"]) == {200}
    assert f"{text['over_int8'] / 1e4:.0f}0 000 times" in page


def test_the_results_are_what_the_account_says_now() -> None:
    found = script()
    results = json.loads(found.OUT.read_text("utf-8"))
    for entry, size in zip(results["cells"], found.SIZES, strict=True):
        again = found.of_a_cell(*size)
        assert again["total_J"] == pytest.approx(entry["total_J"], rel=1e-9)
        assert again["over_root"] == pytest.approx(entry["over_root"], rel=1e-9)
        assert again["thermal_jitter_rad"] == pytest.approx(
            entry["thermal_jitter_rad"], rel=1e-9
        )
