"""The report: one HTML page that needs nothing outside itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from oscc.account.energy_account import break_even_line
from oscc.device import Card, card_from_mapping
from oscc.ir.program import Program
from oscc.ir.rounds import oscillators
from oscc.ir.stage import Stage
from oscc.ir.views import coupled_pairs
from oscc.observables import Observables
from oscc.pages import cells, evaluation, levels, tables
from oscc.units import counted, grouped

LIMIT_BYTES = 2_000_000
"""A report stays below this size."""


@dataclass(frozen=True, slots=True, eq=False)
class ReportParts:
    """What a report is made of; all but the program may be missing.

    Args:
        program: What was compiled.
        verdict: Content of `verify.json`.
        energy: Content of `energy.json`.
        evaluate: Content of `evaluate.json`.
        seen: Observables by engine.
        name: Word for the build in a comparison; no path, or equal builds in two
            folders would give two pages.
    """

    program: Program
    verdict: Mapping[str, Any] | None = None
    energy: Mapping[str, Any] | None = None
    evaluate: Mapping[str, Any] | None = None
    seen: Mapping[str, Observables] = field(default_factory=dict)
    name: str = "this build"


def report_html(parts: ReportParts, *, beside: ReportParts | None = None) -> str:
    """The page as text; equal parts give equal bytes.

    A part that is missing is named with the command that makes it. The page asks for
    nothing: its policy forbids every request, styles and images are inside.

    Args:
        parts: The build to report.
        beside: A second build whose key figures stand beside those of the first.

    Example:
        >>> from oscc.testing.energy import two_token_program
        >>> page = report_html(ReportParts(two_token_program()))
        >>> "oscc verify" in page, "<script" in page
        (True, False)
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html").render(_context(parts, beside))


def _context(parts: ReportParts, beside: ReportParts | None) -> dict[str, Any]:
    program, energy = parts.program, parts.energy
    words = cells if program.of_cells else tables
    ladder = cells if program.of_cells else levels
    return {
        "cells": program.of_cells,
        "title": _title(parts),
        "standing": standing(parts.verdict),
        "figures": key_figures(parts),
        "comparison": None if beside is None else _comparison(parts, beside),
        "facts": words.program_facts(program),
        "notes": program.notes,
        "stages": words.stage_table(program, parts.seen),
        "passes": tables.pass_table(program),
        "host": tables.host_table(program, energy),
        "ladder": _ladder(parts.verdict, ladder.ladder_table),
        "energy": _energy(energy, words.noise_lines),
        "evaluation": None
        if parts.evaluate is None
        else {
            "table": evaluation.evaluation_table(parts.evaluate),
            "layers": words.layer_table(parts.evaluate),
            "unit": evaluation.bits_per(parts.evaluate),
            "tokens": counted(parts.evaluate["tokens"], "held-out token"),
            "periods": tables.number(parts.evaluate.get("periods_per_stage")),
            "spice": parts.evaluate.get("spice"),
            "drawn": evaluation.spice_table(parts.evaluate),
        },
        "pictures": _pictures(parts),
    }


def _title(parts: ReportParts) -> str:
    program = parts.program
    return (
        f"{program.family} on {program.device.get('name')}, "
        f"{counted(program.tokens.size, 'token')}"
    )


def standing(verdict: Mapping[str, Any] | None) -> tuple[str, str]:
    """Word for the verdict with its kind: good, bad or open.

    Example:
        >>> standing(None)
        ('not verified', 'open')
    """
    if verdict is None:
        return "not verified", "open"
    if verdict["passed"]:
        return "PASS", "good"
    if any(level["passed"] is False for level in verdict["levels"]):
        return "FAIL", "bad"
    return "INCONCLUSIVE", "open"


def key_figures(parts: ReportParts) -> list[tuple[str, str, str]]:
    """Figures for the top of the page: name, value, what it means."""
    program = parts.program
    pairs = sum(coupled_pairs(stage) for stage in program.stages)
    of_cells = program.of_cells
    count = sum(_oscillators(stage) for stage in program.stages)
    native = of_cells and program.stages[0].lock_mode == "native"
    each = "one a token and head" if native else "two a cell"
    out = [
        (
            "pair cells" if of_cells else "coupled pairs",
            grouped(pairs),
            f"in {counted(len(program.stages), 'stage')}",
        ),
        (
            "oscillators",
            grouped(count),
            each if of_cells else "targets and sources",
        ),
    ]
    level = _level(parts.verdict, "circuit")
    if of_cells:
        out += cells.key_figures(parts.verdict)
    elif level is not None:
        asked = tables.angle(level["tolerance_rad"])
        value = tables.angle(level["rms_rad"])
        out.append(("circuit error", value, f"rms, {asked} asked"))
    if parts.energy is not None:
        pair = parts.energy["per_pair_J"]
        out.append(("energy a pair", tables.joule(pair["all_in"]), "all in"))
        ratio = parts.energy.get("hardware_over_digital", {}).get("int8")
        if ratio is not None:
            out.append(
                ("hardware / digital", f"{tables.number(ratio, 3)} ×", "coupling, int8")
            )
    if parts.evaluate is not None:
        value = tables.number(parts.evaluate["bpc_hardware"], 4)
        delta = tables.number(parts.evaluate["delta_bpc"], 2)
        out.append((evaluation.bits_per(parts.evaluate), value, f"{delta} to digital"))
    return out


def _oscillators(stage: Stage) -> int:
    if stage.readout == "coherence":
        return oscillators(stage)
    return stage.targets + int(stage.theta_rad.size)


def _level(verdict: Mapping[str, Any] | None, name: str) -> Mapping[str, Any] | None:
    for level in verdict["levels"] if verdict else ():
        if level["level"] == name:
            found: Mapping[str, Any] = level
            return found
    return None


def _comparison(parts: ReportParts, beside: ReportParts) -> tables.Table:
    """Key figures of both builds; a dash where one lacks a figure."""
    sides = [
        {name: f"{value} ({what})" for name, value, what in key_figures(one)}
        | {"verdict": standing(one.verdict)[0], "program": one.program.digest()[:12]}
        for one in (parts, beside)
    ]
    names = list(dict.fromkeys([*sides[0], *sides[1]]))
    rows = [(name, *(side.get(name, "–") for side in sides)) for name in names]
    return tables.table(("", parts.name, beside.name), rows)


def _ladder(
    verdict: Mapping[str, Any] | None,
    ladder_table: Callable[[Mapping[str, Any]], tables.Table],
) -> dict[str, Any] | None:
    if verdict is None:
        return None
    gap = verdict.get("fidelity_gap")
    return {
        "table": ladder_table(verdict),
        "lines": tables.convergence_lines(verdict),
        "notes": verdict.get("notes", ()),
        "elements": _elements(verdict.get("ideal_elements")),
        "gap": None if not gap else tables.gap_facts(gap),
    }


def _elements(counts: Mapping[str, int] | None) -> str:
    if not counts:
        return "no netlist was run"
    return ", ".join(f"{n} {letter}" for letter, n in sorted(counts.items()))


def _energy(
    energy: Mapping[str, Any] | None,
    noise_lines: Callable[[Mapping[str, Any]], list[str]],
) -> dict[str, Any] | None:
    if energy is None:
        return None
    return {
        "pair": {name: tables.joule(v) for name, v in energy["per_pair_J"].items()},
        "token": tables.joule(energy["per_token_J"]),
        "total": tables.joule(energy["total_J"]),
        "measured": tables.measured_table(energy),
        "assumptions": tables.assumption_table(energy),
        "omitted": energy["omitted"],
        "notes": energy.get("notes", ()),
        "noise": noise_lines(energy),
        "ratio": _ratio(energy),
        "break_even": break_even_line(energy) if energy.get("break_even") else "",
        "assisted": energy["host_assisted"],
    }


def _ratio(energy: Mapping[str, Any]) -> str:
    """Hardware over int8 for the coupling, empty where it is undefined."""
    found = energy.get("hardware_over_digital", {}).get("int8")
    return "" if found is None else tables.number(found, 3)


def _pictures(parts: ReportParts) -> dict[str, Any]:
    """Figures by name; None where what they need is missing."""
    from oscc.pages import plots

    energy = parts.energy
    causes = parts.verdict["causes"] if parts.verdict else {}
    priced = energy is not None and energy["total_J"] > 0
    own = _cell_pictures if parts.program.of_cells else _phase_pictures
    return own(parts) | {
        "gap": _safe(plots.gap_bars(causes)) if causes else None,
        "energy": _safe(plots.energy_bars(energy)) if energy and priced else None,
        "rivals": _safe(plots.rival_bars(energy))
        if energy and priced and energy["pairs"]
        else None,
    }


def _phase_pictures(parts: ReportParts) -> dict[str, Any]:
    """Figures of targets that are read as phases."""
    from oscc.pages import pictures, plots, scene

    program, stage = parts.program, parts.program.stages[0]
    card = card_from_mapping(program.device)
    shown = scene.make_scene(stage, card)
    graph, graph_note = pictures.graph_picture(stage, shown.coordinate)
    listed = next((s for s in program.stages if s.modes is not None), None)
    series = error_series(program, parts.seen)
    return {
        "waveform": _safe(pictures.waveform_picture(shown, card)),
        "scene": shown,
        "modes": None if listed is None else _listed_pictures(listed, card),
        "graph": _safe(graph),
        "graph_note": graph_note,
        "drive": _safe(
            plots.error_against_drive(series, tolerance_rad=program.accuracy_rad)
        )
        if series
        else None,
    }


def _cell_pictures(parts: ReportParts) -> dict[str, Any]:
    """Figures of pair cells."""
    from oscc.device.lock_law import x_settled, x_slipped
    from oscc.ladder.locks import lock_ratio
    from oscc.pages import cell_plots

    program, stage = parts.program, parts.program.stages[0]
    scenes = cells.make_scenes(stage, card_from_mapping(program.device))
    circuit, head = parts.seen.get("circuit"), cells.fullest_head(stage)
    kinds = cells.pair_map(program, stage, head, circuit)
    _, pull = lock_ratio(stage)
    edges = (x_settled(pull), x_slipped(pull))
    series = cells.coherence_series(program, parts.seen)
    return {
        "scenes": scenes,
        "stage": stage.name,
        "head": head,
        "native": stage.lock_mode == "native",
        "edges": edges,
        "ran": [engine for engine, *_ in series],
        "read": circuit is not None and stage.name in circuit.stages,
        "cells": _safe(cell_plots.cells_picture(scenes)) if scenes else None,
        "pairs": _safe(cell_plots.pairs_picture(kinds)),
        "coherence": _safe(cell_plots.coherence_picture(series, edges)),
    }


def _listed_pictures(stage: Stage, card: Card) -> dict[str, Any]:
    """Figures of the first stage of modes, for a page that has one."""
    from oscc.pages import bipartite, pictures, scene

    shown = scene.make_scene(stage, card)
    graph, note = bipartite.token_picture(stage, shown.token)
    return {
        "scene": shown,
        "waveform": _safe(pictures.waveform_picture(shown, card)),
        "graph": _safe(graph),
        "graph_note": note,
    }


def _safe(svg: str) -> Any:
    from markupsafe import Markup

    return Markup(svg)


def error_series(program: Program, seen: Mapping[str, Observables]) -> list[Any]:
    """Absolute errors of the circuit against the exact phases, one series a stage.

    Empty where either engine has not run.
    """
    from oscc.ladder.levels import compare

    if "circuit" not in seen or "phase" not in seen:
        return []
    circuit, exact = seen["circuit"], seen["phase"]
    if not set(circuit.stages) <= set(exact.stages):
        return []
    errors = compare(program, circuit, lambda stage: exact.phase(stage.name))
    return [(e.stage, e.drive, np.abs(e.error_rad)) for e in errors]
