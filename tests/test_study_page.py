"""The page of the study of families says what the runs say, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import study_tables

    return study_tables


@pytest.fixture
def page(tables: ModuleType) -> ModuleType:
    import study_page

    return study_page


def run(name: str, seed: int, bits: float, **more: Any) -> dict[str, Any]:
    depth = [{"events": 9000, "bits": bits} for _ in range(6)]
    shared = {"parameters": 65000, "symbols_seen": 3_100_672, "copy_depth": depth}
    return {
        "name": name,
        "seed": seed,
        "bits": {"validation": bits},
        **shared,
        **more,
    }


# 95 % of Student's t with two degrees of freedom: 4.303 sd / sqrt(3)
@pytest.mark.parametrize(
    ("values", "sign", "verdict"),
    [
        ([0.10, 0.12, 0.14], 1, "reproduced"),  # ± .0497
        ([0.10, 0.12, 0.14], -1, "not reproduced"),
        ([0.03, 0.05, 0.07], 1, "reproduced"),  # mean .05 > .0497
        ([0.029, 0.049, 0.069], 1, "undecided"),  # mean .049 < .0497
        ([0.10, 0.12], 1, "undecided"),
        ([], 1, "undecided"),
    ],
)
def test_a_sign_is_judged_by_the_interval_of_students_t(
    tables: ModuleType, values: list[float], sign: int, verdict: str
) -> None:
    assert tables.judge(values, sign).verdict == verdict


def test_the_quantiles_of_students_t_are_those_of_scipy(tables: ModuleType) -> None:
    from scipy.stats import t

    for freedom, value in tables.T95.items():
        assert value == pytest.approx(t.ppf(0.975, freedom), abs=6e-4)


def test_differences_are_taken_seed_by_seed(tables: ModuleType) -> None:
    runs = [run("a", 0, 2.0), run("a", 1, 3.0), run("b", 1, 3.5), run("b", 2, 9.0)]
    study = tables.Study(runs)
    assert study.differences("b", "a", tables.validation) == [0.5]
    assert study.values("a", tables.validation) == [2.0, 3.0]
    assert study.values("c", tables.validation) == []


def test_a_claim_of_parts_is_reproduced_only_with_every_part(
    tables: ModuleType,
) -> None:
    good, bad = tables.Judged("reproduced", ""), tables.Judged("not reproduced", "")
    assert tables.together([good, good]) == "reproduced"
    assert tables.together([bad, bad]) == "not reproduced"
    assert tables.together([good, bad]) == "in part: 1 of 2 reproduced"


def test_every_table_is_filled_and_says_its_seeds(
    page: ModuleType, tables: ModuleType
) -> None:
    study = tables.Study([run("transformer", s, 2.0 + s) for s in range(3)])
    text = page.page(study)
    assert "{{" not in text
    assert "| `transformer` | 65 000 | 3 | 3.000 ± 1.000 |" in text
    assert "3.1 million" in text
    assert text.count("No run yet.") == 5
    assert "undecided" in text
    headlines = text.split("## Headlines")[1]
    assert "too few" in headlines


def test_the_committed_page_is_made_of_the_committed_runs(
    page: ModuleType, tables: ModuleType
) -> None:
    made = page.page(tables.Study.read(page.RUNS))
    assert page.PAGE.read_text("utf-8") == made
