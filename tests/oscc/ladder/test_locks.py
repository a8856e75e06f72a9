"""Levels of pair cells: what is decided, judged, counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oscc.device.lock_law import x_settled, x_slipped
from oscc.errors import UndecidedError
from oscc.ir.stage import Stage
from oscc.ladder.locks import (
    compare_cells,
    decided_by_ratio,
    judge_cells,
    lock_causes,
    lock_ratio,
    sample_cells,
)
from oscc.observables import Observables
from oscc.testing.flat import cells_stage
from oscc.testing.tiny import tiny_program

X = np.concatenate([np.linspace(0.0, 0.95, 60), [0.99, 1.01], np.linspace(1.04, 2, 38)])
PROGRAM = tiny_program(cells_stage(X))
STAGE = PROGRAM.stages[0]
NAME = STAGE.name


def seen(coherence, locked=None, engine="circuit", cells=None) -> Observables:
    coherence = np.asarray(coherence, dtype=np.float64)
    locked = (coherence > 0) * 1.0 if locked is None else locked
    arrays = {f"{NAME}.coherence": coherence, f"{NAME}.locked": locked}
    if cells is not None:
        arrays[f"{NAME}.cells"] = np.asarray(cells)
    return Observables(engine, PROGRAM.digest(), arrays, {})


def digital(stage: Stage):
    return stage.digital_coherence


def judged(observables: Observables, tolerance: float = 0.006):
    errors = compare_cells(PROGRAM, observables, digital)
    names = {"level": "circuit", "engine": "circuit", "reference": "phase"}
    return judge_cells(errors, **names, tolerance=tolerance)


def test_the_ratio_is_read_from_gain_strength_and_detuning() -> None:
    ratio, pull = lock_ratio(STAGE)
    np.testing.assert_allclose(ratio, X, atol=1e-12)
    assert pull == pytest.approx(12.6)
    gains = np.array(STAGE.gain_rad)
    gains[3] *= 2
    with pytest.raises(UndecidedError, match="unlike pulls"):
        lock_ratio(replace(STAGE, gain_rad=gains))


def test_only_cells_near_the_edge_are_open() -> None:
    decided = decided_by_ratio(STAGE)
    np.testing.assert_array_equal(np.flatnonzero(~decided), [60, 61])
    assert x_settled(12.6) < 0.99 < 1.01 < x_slipped(12.6)


def test_an_exact_run_passes_and_open_cells_are_counted() -> None:
    result = judged(seen(digital(STAGE)))
    assert result.passed is True
    assert result.rms_coherence == 0.0
    assert (result.targets, result.undecided, result.slips) == (100, 2, 0)
    content = result.to_json()
    assert content["rms_rad"] is None
    assert content["tolerance_rad"] is None
    assert content["tolerance_coherence"] == 0.006


def test_errors_of_open_cells_are_never_judged() -> None:
    coherence = np.array(digital(STAGE))
    coherence[[60, 61]] = 0.9
    assert judged(seen(coherence)).rms_coherence == 0.0


def test_the_rms_is_over_decided_cells() -> None:
    shifted = np.where(X < 1, digital(STAGE) - 0.01, 0.0)
    result = judged(seen(shifted, locked=(X < 1) * 1.0))
    assert result.rms_coherence == pytest.approx(0.01 * np.sqrt(60 / 98))
    assert result.passed is False
    assert "rms in the coherence" in result.reason
    assert result.max_coherence == pytest.approx(0.01)
    assert judged(seen(shifted, locked=(X < 1) * 1.0), 0.02).passed is True


@pytest.mark.parametrize(("cell", "value"), [(10, 0.0), (80, 0.5)])
def test_one_flipped_cell_fails_and_is_named(cell: int, value: float) -> None:
    coherence = np.array(digital(STAGE))
    coherence[cell] = value
    result = judged(seen(coherence), tolerance=0.5)
    assert (result.passed, result.slips) == (False, 1)
    assert result.worst is not None
    assert result.worst["pair"] == [0, cell, 0]
    assert result.worst["ratio"] == pytest.approx(X[cell])


def test_what_the_read_out_leaves_open_counts_and_may_be_too_much() -> None:
    locked = (X < 1) * 1.0
    locked[:3] = -1.0
    few = judged(seen(digital(STAGE), locked))
    assert (few.passed, few.undecided) == (True, 5)
    locked[3] = -1.0
    many = judged(seen(digital(STAGE), locked))
    assert (many.passed, many.blame) == (None, 4)
    assert "--periods" in many.reason


def test_a_sample_is_compared_by_its_rows() -> None:
    rows = [3, 61, 90]
    sample = seen(digital(STAGE)[rows] + [0.003, 0.5, 0.0], cells=rows, engine="gnucap")
    (errors,) = compare_cells(PROGRAM, sample, digital)
    np.testing.assert_array_equal(errors.index[:, 1], rows)
    np.testing.assert_array_equal(errors.decided, [True, False, True])
    np.testing.assert_allclose(errors.error, [0.003, 0.5, 0.0])
    with pytest.raises(UndecidedError, match="no cell"):
        judge_cells([], level="spice", engine="x", reference="y", tolerance=1.0)


def test_causes_are_the_steps_of_the_ladder() -> None:
    exact = digital(STAGE)
    levels = {
        "ir": seen(exact, engine="ir"),
        "phase": seen(np.where(X < 1, exact + 0.001, 0), engine="phase"),
        "circuit": seen(np.where(X < 1, exact - 0.002, 0), (X < 1) * 1.0),
    }
    found = lock_causes(PROGRAM, levels)
    assert found["settling"]["max_coherence"] == pytest.approx(0.001)
    assert found["averaging"]["max_coherence"] == pytest.approx(0.003)
    assert found["settling"]["rms_rad"] is None


def test_samples_are_decided_cells_of_every_band() -> None:
    rows = sample_cells(STAGE, 8, np.random.default_rng(0))
    assert len(set(rows.tolist())) == 8
    assert decided_by_ratio(STAGE)[rows].all()
    assert X[rows].min() < 0.3
    assert X[rows].max() > 1.5
    again = sample_cells(STAGE, 8, np.random.default_rng(0))
    np.testing.assert_array_equal(rows, again)
    assert len(sample_cells(STAGE, 500, np.random.default_rng(0))) == 98
