"""The page: whole, self-contained, repeatable, honest about what is missing."""

from __future__ import annotations

import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oscc.account import account
from oscc.ir.interpret import run as run_ir
from oscc.ladder.gap import causes
from oscc.ladder.levels import compare, judge
from oscc.ladder.verdict import Verdict
from oscc.observables import Observables
from oscc.pages.html import LIMIT_BYTES, ReportParts, report_html
from oscc.testing.energy import two_token_program, two_token_stage
from oscc.testing.tiny import tiny_program, tiny_stage

BROWSER = "chromium-headless-shell"
VOID = {"meta", "br", "img", "hr", "link", "input"}
SECTIONS = (
    *("program", "target", "graph", "ladder", "gap", "drive", "text", "energy"),
    "assumptions",
)


def _circuit(program: Any, shift: float = 1e-3) -> Observables:
    """Interpreter's phases, moved a little: a stand-in for a circuit run."""
    exact = run_ir(program)
    arrays = {name: array + shift for name, array in exact.arrays.items()}
    return Observables("circuit", program.digest(), arrays, {})


def _parts(program: Any, **changes: Any) -> ReportParts:
    exact = Observables("phase", program.digest(), dict(run_ir(program).arrays), {})
    seen = {"ir": run_ir(program), "phase": exact, "circuit": _circuit(program)}
    errors = compare(program, seen["circuit"], lambda s: exact.phase(s.name))
    level = judge(
        errors,
        level="circuit",
        engine="circuit",
        reference="phase",
        tolerance_rad=program.accuracy_rad,
    )
    verdict = Verdict(program.digest(), (level,), causes(program, seen))
    values: dict[str, Any] = {
        "program": program,
        "verdict": verdict.to_json(),
        "energy": account(program, {}).to_json(),
        "evaluate": {
            "tokens": 20000,
            "engine": "circuit",
            "bpc_digital": 2.1412,
            "bpc_phase": 2.1412,
            "bpc_hardware": 2.1437,
            "delta_bpc": 0.0025,
            "delta_se": 0.0004,
            "top1_agreement": 0.997,
            "kl_nats": 1e-4,
            "periods_per_stage": 36.0,
            "layers": [{"stage": "layer.0.coupling", "rms_rad": 5e-4, "slips": 2}],
        },
        "seen": seen,
    }
    return ReportParts(**(values | changes))


@pytest.fixture(scope="module")
def page() -> str:
    return report_html(_parts(tiny_program(tiny_stage(tokens=6))))


class _Outline(HTMLParser):
    """Open elements, identifiers and attribute values of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        found = dict(attrs)
        self.ids += [found["id"] or ""] if "id" in found else []
        self.links += [
            found[key] or ""
            for key in ("href", "src", "xlink:href", "action", "data")
            if key in found
        ]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def _outline(page: str) -> _Outline:
    found = _Outline()
    found.feed(page)
    return found


def test_page_is_well_formed_and_has_every_section(page: str) -> None:
    found = _outline(page)
    assert found.open == []
    assert set(SECTIONS) <= set(found.ids)
    assert page.count("<svg") == 6


def test_page_asks_for_nothing(page: str) -> None:
    found = _outline(page)
    assert "default-src 'none'" in page
    assert "script" not in found.tags
    assert "link" not in found.tags
    assert all(link.startswith(("#", "data:image/png")) for link in found.links)
    assert not re.search(r"https?://", page)
    assert not re.search(r"@import|url\((?!#)", page)


def test_every_reference_inside_the_page_has_its_target(page: str) -> None:
    found = _outline(page)
    known = set(found.ids)
    inner = [link[1:] for link in found.links if link.startswith("#")]
    inner += re.findall(r"url\(#([^)]+)\)", page)
    assert inner
    assert set(inner) <= known
    # One name for two things would let one figure clip or mark another.
    figures = [name for name in found.ids if "-" in name]
    assert len(figures) == len(set(figures))


def test_equal_parts_give_equal_bytes(page: str) -> None:
    assert report_html(_parts(tiny_program(tiny_stage(tokens=6)))) == page


def test_user_settings_of_the_plotting_library_change_nothing(page: str) -> None:
    import matplotlib

    with matplotlib.rc_context({"font.size": 30.0, "svg.fonttype": "path"}):
        assert report_html(_parts(tiny_program(tiny_stage(tokens=6)))) == page


def test_page_says_what_the_files_say(page: str) -> None:
    assert "PASS" in page
    assert "1.00 mrad" in page
    assert "2.1437" in page
    assert "0.0025 ± 0.0004" in page
    assert "500 µrad" in page
    assert "making and turning the harmonics of a source" in page
    assert "Horowitz" in page


def test_figures_of_the_verdict_stand_on_the_page() -> None:
    program = tiny_program()
    parts = _parts(program)
    assert parts.verdict is not None
    failed = dict(parts.verdict, passed=False)
    failed["levels"] = [dict(parts.verdict["levels"][0], passed=False, slips=3)]
    shown = report_html(ReportParts(program, verdict=failed))
    assert '<span class="badge bad">FAIL</span>' in shown
    undecided = dict(failed, levels=[dict(failed["levels"][0], passed=None)])
    shown = report_html(ReportParts(program, verdict=undecided))
    assert '<span class="badge open">INCONCLUSIVE</span>' in shown


def test_missing_parts_are_named_with_the_verb_that_makes_them() -> None:
    shown = report_html(ReportParts(tiny_program()))
    for verb in ("verify", "energy", "evaluate"):
        assert f"oscc {verb}" in shown
    assert "not verified" in shown
    assert set(SECTIONS) <= set(_outline(shown).ids)
    assert shown.count("<svg") == 2


def test_text_from_files_is_shown_and_never_run() -> None:
    evil = "<script>alert(1)</script><img src=http://x>"
    program = tiny_program(notes=(evil,))
    shown = report_html(_parts(program))
    assert "&lt;script&gt;alert(1)" in shown
    assert "script" not in _outline(shown).tags


def test_stale_energy_without_pairs_is_undefined_not_a_number() -> None:
    from oscc.ir import Coupling

    silent = Coupling(
        "present",
        np.array([1]),
        np.zeros((1, 2, 2)),
        np.ones((1, 1)),
        np.zeros((1, 1)),
    )
    program = two_token_program(two_token_stage(couplings=(silent,)))
    shown = report_html(_parts(program))
    assert "undefined" in shown
    assert "nan" not in shown.lower().replace("nanometre", "")


def test_one_token_has_a_page() -> None:
    shown = report_html(_parts(tiny_program(tiny_stage(tokens=1))))
    assert _outline(shown).open == []


def test_second_build_stands_beside_the_first() -> None:
    parts = _parts(tiny_program())
    other = ReportParts(tiny_program(tiny_stage(seed=1)), name="the other build")
    shown = report_html(parts, beside=other)
    assert "Two builds side by side" in shown
    assert other.program.digest()[:12] in shown


def test_large_program_stays_below_the_limit() -> None:
    program = tiny_program(tiny_stage(tokens=48, coordinates=32))
    shown = report_html(_parts(program))
    assert len(shown.encode()) < LIMIT_BYTES
    assert "300 of" in shown


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
    assert "Assumptions and omissions" in done.stdout
