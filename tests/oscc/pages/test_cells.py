"""The page of pair cells: waveforms, pictures, tables, what has not been run."""

from __future__ import annotations

import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oscc
from oscc.device import card_to_mapping, load_card
from oscc.device.lock_cell import lock_cell
from oscc.device.piecewise import period_s
from oscc.observables import Observables
from oscc.pages import cells
from oscc.pages.cell_trace import cell_trace
from oscc.pages.html import LIMIT_BYTES, ReportParts, report_html
from oscc.testing.flat import cells_stage
from oscc.testing.independent_lock import lock_crossings
from oscc.testing.tiny import tiny_program

CARD = load_card("vo2-two-state-5k5")
PULL = 2 * np.pi * 0.02 * 100
X = np.array([0.0, 0.3, 0.62, 0.8, 0.9, 1.0, 1.04, 1.3])
PERIOD_S = period_s(CARD)
BROWSER = "chromium-headless-shell"


def program_of(x: Any = X, tokens: int = 9, **changes: Any) -> Any:
    """Cells of tokens 1, 2, ... with token 0, of one head."""
    ratio = np.asarray(x, dtype=np.float64)
    index = np.stack([0 * ratio, 1 + np.arange(ratio.size), 0 * ratio], 1)
    settings = {"gain_rad": PULL, "dwell_periods": 100, "fidelity": "oscillators"}
    stage = cells_stage(
        ratio,
        index=index.astype(np.int64),
        source_index=index.astype(np.int64),
        **(settings | changes),
    )
    return tiny_program(
        stage,
        family="ssa",
        device=card_to_mapping(CARD),
        tokens=np.arange(tokens),
    )


@pytest.fixture(scope="module")
def parts() -> ReportParts:
    # 1 of 40 cells is on the edge: a level may leave 5 % of them open
    program = program_of(np.concatenate([np.linspace(0, 0.9, 32), X]), 41)
    seen = {name: oscc.simulate(program, engine=name) for name in ("phase", "circuit")}
    return ReportParts(
        program,
        verdict=oscc.verify(program, list(seen.values())).to_json(),
        energy=oscc.energy(program, list(seen.values())).to_json(),
        evaluate={
            **{"engine": "circuit", "tokens": 256, "periods_per_stage": 200},
            **{"bpc_digital": 2.5, "bpc_phase": 2.5, "bpc_hardware": 2.51},
            **{"delta_bpc": 0.01, "delta_se": 0.002, "top1_agreement": 0.99},
            "kl_nats": 1e-4,
            "layers": [
                {
                    **{"stage": "layer.0.locks", "rms_rad": None, "slips": 3},
                    **{"rms_coherence": 0.00234, "cells": 4444, "undecided": 55},
                }
            ],
        },
        seen=seen,
    )


@pytest.fixture(scope="module")
def page(parts: ReportParts) -> str:
    return report_html(parts)


@pytest.mark.parametrize("ratio", [0.6, -0.9, 1.2])
def test_a_waveform_crosses_when_an_independent_integrator_does(ratio: float) -> None:
    cell = lock_cell(CARD)
    found, wanted = cell_trace(cell, ratio, 8), lock_crossings(cell, ratio, 8)
    period = PERIOD_S
    for mine, other in zip(
        found.crossing, (wanted.first_s, wanted.second_s), strict=True
    ):
        np.testing.assert_allclose(
            mine[: other.size] * period, other, rtol=0, atol=1e-9 * period
        )


def test_a_waveform_is_that_of_the_engine_over_a_whole_dwell() -> None:
    from oscc_sims.lock_circuit import follow

    cell = lock_cell(CARD)
    for ratio in (0.0, 0.95, 1.3):
        found = cell_trace(cell, ratio, 100)
        wanted = follow(cell, np.array([ratio]), 100).crossing[0] / (2 * np.pi)
        for mine, other in zip(found.crossing, wanted, strict=True):
            other = other[np.isfinite(other)]
            assert mine.size == other.size
            np.testing.assert_allclose(mine, other, rtol=0, atol=1e-9)
        assert found.v_V.min() >= CARD.v_mit_V - 1e-9
        assert found.v_V.max() <= CARD.v_imt_V + 1e-9
        assert found.psi_time.max() <= 100


def test_one_locked_and_one_slipping_cell_are_picked() -> None:
    locked, slipping = cells.make_scenes(program_of().stages[0], CARD)
    assert (locked.kind, slipping.kind) == ("locked", "slipping")
    assert (locked.ratio, slipping.ratio) == pytest.approx((0.8, 1.04))
    assert locked.place == (0, 4, 0)
    # sqrt(1 - .8^2), the closed form, within the law error of docs/reference/lock.md
    assert np.cos(locked.trace.psi_rad[-1]) == pytest.approx(0.6, abs=3e-3)
    assert np.abs(locked.trace.psi_rad).max() < np.pi / 2
    assert slipping.trace.psi_rad.max() > np.pi / 2
    (alone,) = cells.make_scenes(program_of([-0.5]).stages[0], CARD)
    assert alone.ratio == pytest.approx(-0.5)
    assert alone.trace.psi_rad[-1] == pytest.approx(-np.arcsin(0.5), abs=3e-3)
    assert cells.make_scenes(program_of([1.0]).stages[0], CARD) == []


def test_the_map_of_pairs_says_what_each_is() -> None:
    program = program_of(tokens=12)
    stage = program.stages[0]
    by_form = cells.pair_map(program, stage, 0, None)
    kinds = [cells.LOCKS] * 5 + [cells.OPEN] + [cells.SLIPS] * 2
    assert by_form[1:9, 0].tolist() == kinds
    assert (np.diag(by_form) == cells.SELF).all()
    assert (by_form[np.triu_indices(12, 1)] == cells.HIDDEN).all()
    assert by_form[9, 0] == cells.FAR
    assert by_form[3, 2] == cells.FAR
    locked = np.array([1, 1, 1, -1, 1, 1, 1, 0.0])
    arrays = {"layer.0.locks.coherence": locked * 0, "layer.0.locks.locked": locked}
    seen = Observables("circuit", program.digest(), arrays, {})
    read = cells.pair_map(program, stage, 0, seen)[1:9, 0].tolist()
    assert read[3] == cells.OPEN
    assert read[6] == cells.LOCKS  # as the circuit read it
    dense = program_of(causal=False)
    both = cells.pair_map(dense, dense.stages[0], 0, None)
    np.testing.assert_array_equal(both, both.T)


def test_a_decode_shows_the_newest_token_alone() -> None:
    index = np.array([[0, 4, 1], [0, 4, 3]])
    stage = cells_stage((0.4, 1.5), index=index, source_index=index, first_token=4)
    shown = cells.pair_map(tiny_program(stage, tokens=np.arange(5)), stage, 0, None)
    assert (shown[:4] == cells.HIDDEN).all()
    assert shown[4].tolist() == [cells.FAR, cells.LOCKS, cells.FAR, cells.SLIPS, 5]


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag != "script"
        found = dict(attrs)
        self.ids += [found["id"] or ""] if "id" in found else []
        self.links += [
            found[k] or "" for k in ("href", "src", "xlink:href") if k in found
        ]


def test_the_page_has_every_section_and_asks_for_nothing(page: str) -> None:
    found = _Links()
    found.feed(page)
    wanted = {"law", "cells", "pairs", "ladder", "gap", "energy", "assumptions"}
    assert wanted <= set(found.ids)
    assert not {"target", "graph", "drive"} & set(found.ids)
    assert all(link.startswith(("#", "data:image/png")) for link in found.links)
    inner = {link[1:] for link in found.links if link.startswith("#")}
    assert inner <= set(found.ids)
    assert page.count("<svg") == 6
    assert not re.search(r"https?://", page)
    assert len(page.encode()) < LIMIT_BYTES


def test_the_page_says_what_the_files_say(page: str, parts: ReportParts) -> None:
    assert parts.verdict is not None
    assert parts.verdict["passed"]
    assert "PASS" in page
    circuit = parts.verdict["levels"][-1]
    assert f"{circuit['rms_coherence']:.3g} in cos" in page
    assert circuit["undecided"] == 1
    assert "of 40 cells" in page
    assert "0.00234" in page
    assert "4 444" in page
    for cause in ("averaging", "settling"):
        size = parts.verdict["causes"][cause]["rms_coherence"]
        assert f"{size:.3g} rms" in page
    assert "the lock forgets noise" in page.lower()
    assert "undriven" not in page


def test_equal_parts_give_equal_bytes(page: str, parts: ReportParts) -> None:
    assert report_html(parts) == page


def test_what_was_not_run_is_named(parts: ReportParts) -> None:
    shown = report_html(ReportParts(parts.program))
    for verb in ("verify BUILD", "energy BUILD", "simulate BUILD --engine circuit"):
        assert f"oscc {verb}" in shown
    assert "not verified" in shown
    assert "by the closed form: the circuit has not run" in shown
    circuit = {"circuit": parts.seen["circuit"]}
    shown = report_html(ReportParts(parts.program, seen=circuit))
    assert "simulate BUILD --engine phase" in shown
    assert "as the circuit read them" in shown
    assert "no cell of it is drawn" not in shown


def test_undecided_and_failed_levels_have_a_page() -> None:
    program = program_of()  # 1 of 8 cells is on the edge: above 5 %
    verdict = oscc.verify(program, [oscc.simulate(program, engine="phase")])
    shown = report_html(ReportParts(program, verdict=verdict.to_json()))
    assert "INCONCLUSIVE" in shown
    assert "too near the edge" in shown
    only = program_of([1.0])
    verdict = oscc.verify(only, [oscc.simulate(only, engine="phase")])
    shown = report_html(ReportParts(only, verdict=verdict.to_json()))
    assert "there is none to show" in shown


def test_cells_stand_beside_phases(parts: ReportParts) -> None:
    other = ReportParts(tiny_program(), name="the other build")
    assert "pair cells" in report_html(other, beside=parts)
    assert "Two builds side by side" in report_html(parts, beside=other)


@pytest.mark.browser
def test_a_browser_shows_it_without_a_fault(page: str, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    done = subprocess.run(
        [
            *(BROWSER, "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"),
            *("--v=0", "--dump-dom", path.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "CONSOLE" not in done.stderr
    assert "Refused to" not in done.stderr
    assert done.stdout.count("<svg") == 6
