"""Tables of the page that fold nested records into rows."""

from __future__ import annotations

from dataclasses import replace

from oscc.pages.evaluation import evaluation_table, spice_table
from oscc.pages.tables import convergence_lines, gap_facts, pass_table
from oscc.testing.tiny import tiny_program


def test_a_pass_has_a_row_for_each_stage() -> None:
    stages = [{"stage": "layer.0.coupling", "substeps": 2, "scheme": "plain"}]
    passes = [
        {"name": "choose_dwell", "stages": stages},
        {"name": "legalise", "limit": 0.8, "stages": [{"stage": "s", "ratio": 0.25}]},
        {"name": "other", "cells": [1, 2]},
    ]
    program = replace(tiny_program(), provenance={"passes": passes})
    assert pass_table(program).rows == (
        ("choose_dwell", "layer.0.coupling", "scheme: plain; substeps: 2"),
        ("legalise", "all", "limit: 0.8"),
        ("legalise", "s", "ratio: 0.25"),
        ("other", "all", "cells: 1, 2"),
    )


def test_a_tile_is_one_line_of_its_own_figures() -> None:
    tile = {
        "stage": "layer.0.coupling",
        "rms_rad": 0.0015,
        "max_rad": 0.004,
        "supply_J": 1.08e-6,
        "coordinate": 26,
        "pairs": 1360,
        "supply_parts_J": {"read": 1e-7},
        "engine": "gnucap",
    }
    assert gap_facts({"rms_rad": 0.002, "tiles": [tile, {"stage": "s"}]}) == (
        ("rms", "2.00 mrad"),
        (
            "tile of layer.0.coupling",
            "1.50 mrad rms, 4.00 mrad largest, supply 1.08 µJ, coordinate 26, "
            "pairs 1 360",
        ),
        ("tile of s", ""),
    )


def test_bits_are_counted_in_the_unit_of_the_model() -> None:
    figures = {
        "engine": "circuit",
        **dict.fromkeys(("bpc_digital", "bpc_phase", "bpc_hardware"), 2.0),
        **dict.fromkeys(("delta_bpc", "delta_se", "top1_agreement", "kl_nats"), 0.5),
    }
    assert evaluation_table(figures | {"unit": "byte"}).columns[1] == "bits per byte"
    assert evaluation_table(figures).columns[1] == "bits per character"


def test_spice_in_the_loop_has_its_table() -> None:
    sizes = {
        f"{size}_rad_to_{one}": value
        for one, value in (("circuit", 1e-3), ("digital", 2e-3))
        for size in ("rms", "max")
    }
    layer = {"stage": "s", "engine": "gnucap", "windows": 3, "targets": 4, **sizes}
    shown = spice_table({"spice": {"layers": [layer]}})
    assert shown is not None
    assert shown.rows == (
        ("s", "gnucap", "3", "4", "1.00 mrad", "1.00 mrad", "2.00 mrad", "2.00 mrad"),
    )
    cells = {key.replace("_rad_", "_coherence_"): size for key, size in sizes.items()}
    head = {key: layer[key] for key in ("stage", "engine", "windows", "targets")}
    shown = spice_table({"spice": {"layers": [head | cells]}})
    assert shown is not None
    assert shown.columns[4] == "rms to circuit (cos)"
    assert shown.rows[0][4] == "0.001"
    assert spice_table({}) is None
    assert spice_table({"spice": {"layers": []}}) is None


def test_convergence_of_pair_cells_is_told_in_the_cosine() -> None:
    entry = {"engine": "gnucap", "targets": 4, "passed": True, "change_rad": None}
    (line,) = convergence_lines({"convergence": [entry | {"change_coherence": 5e-4}]})
    assert line.startswith("Halving the step moves gnucap by at most 0.0005 in cos")
    (line,) = convergence_lines({"convergence": [entry | {"change_rad": 1e-3}]})
    assert "by at most 1.00 mrad over 4 targets: converged." in line
