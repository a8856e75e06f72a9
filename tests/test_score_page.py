"""The page on scores shows the figures of its script, not figures of old."""

import json
from pathlib import Path
from types import ModuleType

from oscc.testing.scripts import load_script

ROOT = Path(__file__).parents[1]


def script() -> ModuleType:
    return load_script(ROOT / "benchmarks" / "score_cost.py")


def test_every_row_of_the_table_is_in_the_results() -> None:
    path = ROOT / "benchmarks" / "results" / "score_cost.json"
    results = json.loads(path.read_text("utf-8"))["results"]
    page = (ROOT / "docs" / "howto" / "score.md").read_text("utf-8")
    row = script().row
    shown = [line for line in page.splitlines() if line.startswith("| `")]
    assert shown == [row(entry) for entry in results]
    for entry in results:
        assert 0.1e-9 < entry["per_mac_J"] < 1e-9
        assert entry["error_nat"]["circuit"] < 0.01


def test_the_script_measures_what_the_page_says() -> None:
    found = script().figures("kuramoto-flow-k08", 12, 0)
    shares = [found[w]["share_on_oscillators"] for w in ("host", "hardware")]
    assert shares[0] < shares[1]
    assert 0 < found["error_nat"]["gnucap"] < 1e-3 < 0.01
    assert found["hardware"]["per_token_J"] > found["host"]["per_token_J"]
