"""The page on decoding shows the figures of its script, not figures of old."""

import json
from pathlib import Path
from types import ModuleType

from oscc.testing.scripts import load_script

ROOT = Path(__file__).parents[1]


def script() -> ModuleType:
    return load_script(ROOT / "benchmarks" / "decode_cost.py")


def test_every_row_of_the_table_is_in_the_results() -> None:
    path = ROOT / "benchmarks" / "results" / "decode_cost.json"
    results = json.loads(path.read_text("utf-8"))["results"]
    page = (ROOT / "docs" / "howto" / "decode.md").read_text("utf-8")
    row = script().row
    shown = [line for line in page.splitlines() if line.startswith("| `")]
    assert shown == [row(entry) for entry in results]


def test_a_new_token_pays_for_the_whole_bank() -> None:
    """What the page says in words: decoding is dearer, and more so in longer texts."""
    found = script().figures("kuramoto-flow-k08", 24)
    assert found["decode"]["per_token_J"] > found["prefill"]["per_token_J"]
    assert found["decode"]["source_share"] > 0.5
