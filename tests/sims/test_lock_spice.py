"""Pair cells in gnucap and ngspice, against the exact circuit."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oscc.device import load_card
from oscc.device.piecewise import omega
from oscc.errors import RequestError, ToolError
from oscc.testing.flat import cells_stage
from oscc_backends.lock import problem
from oscc_backends.lock_spice import build_deck
from oscc_netlists.settings import Settings, default_settings
from oscc_sims import lock_circuit
from oscc_sims.lock_spice import LockSpiceRun, read_cell, run
from oscc_sims.process import Children
from oscc_sims.rawfile import Plot
from oscc_sims.simulator import Runnable, Simulator, SimulatorFault

SIMULATORS = [
    pytest.param("ngspice", marks=pytest.mark.ngspice),
    pytest.param("gnucap", marks=pytest.mark.gnucap),
]
CARD = load_card("vo2-two-state-5k5")
CELLS = problem(
    cells_stage((0.6, 0.95, 1.2, 1.0), gain_rad=4 * np.pi, dwell_periods=100)
)
# locked cosine against the event code: published 2e-4 and 2e-3 of the same decks
COSINE = {"gnucap": 1e-3, "ngspice": 4e-3}


@lru_cache(maxsize=1)
def exact() -> lock_circuit.LockRun:
    return lock_circuit.solve(CARD, CELLS, energy=True)


@lru_cache(maxsize=2)
def seen(dialect: str) -> LockSpiceRun:
    return run(CARD, CELLS, [0, 1, 2], dialect, jobs=2)


@pytest.mark.parametrize("dialect", SIMULATORS)
def test_cells_read_as_in_the_exact_circuit(dialect: str) -> None:
    found, wanted = seen(dialect), exact().reading
    assert found.cells.tolist() == [0, 1, 2]
    assert found.reading.locked.tolist() == [1, 1, 0]
    error = found.reading.coherence - wanted.coherence[:3]
    assert np.abs(error).max() < COSINE[dialect]
    assert found.reading.coherence[2] == 0.0
    # a slip takes .28 rad a period at most: psi is off by the reading's own moment
    assert abs(found.reading.psi_rad[2] - wanted.psi_rad[2]) < 0.3
    np.testing.assert_allclose(found.reading.margin, wanted.margin[:3], atol=5e-3)
    assert dict(found.ideal) == {"E": 2, "G": 2}
    assert found.decks == 3


@pytest.mark.parametrize("dialect", SIMULATORS)
def test_the_supply_is_that_of_the_exact_circuit(dialect: str) -> None:
    energy = exact().energy_J
    assert energy is not None
    np.testing.assert_allclose(seen(dialect).supply_J, energy[:3, 0], rtol=2e-3)


@pytest.mark.parametrize("dialect", SIMULATORS)
def test_half_the_step_changes_little(dialect: str, tmp_path: Path) -> None:
    decks = tmp_path / "Run 1 Ü" / "decks"
    found = run(CARD, CELLS, [1], dialect, gate=True, jobs=2, decks_dir=decks)
    assert found.decks == 2
    assert 0 < np.abs(found.change).max() < COSINE[dialect]
    assert found.finer is not None
    error = found.finer.coherence - exact().reading.coherence[1:2]
    assert np.abs(error).max() < COSINE[dialect]
    names = sorted(path.name for path in decks.iterdir())
    stem = "layer_0_locks_h0_t1_p0"
    assert names == [f"{stem}.cir", f"{stem}_finer.cir"]
    arrays = found.arrays("s")
    assert arrays["s.cells"].tolist() == [1]
    assert arrays["s.raw.half_step_coherence"].shape == (1,)
    assert arrays["s.locked"].dtype == np.int8


@pytest.mark.gnucap
def test_coarse_steps_of_gnucap() -> None:
    """T/100: 4e-3 in the locked cosine, published."""
    coarse = Settings("gnucap", 100, 1e-5)
    found = run(CARD, CELLS, [0, 1], "gnucap", settings=coarse, jobs=2)
    error = found.reading.coherence - exact().reading.coherence[:2]
    assert np.abs(error).max() < 4e-3


@pytest.mark.gnucap
def test_a_failed_deck_is_kept_and_no_number_is_offered(tmp_path: Path) -> None:
    folder = tmp_path / "decks"
    with pytest.raises(ToolError, match=r"layer\.0\.locks/0/0/0: stopped") as caught:
        run(CARD, CELLS, [0], "gnucap", timeout_s=0.001, decks_dir=folder)
    kept = list((tmp_path / "failed").iterdir())
    assert str(kept[0]) in str(caught.value)
    assert (kept[0] / "deck.cir").read_text().startswith("* oscc lock cell")
    assert "time limit" in (kept[0] / "log.txt").read_text()


def waves(first: float, second: float) -> Plot:
    """Two steady saw-teeth of given frequencies over the card's, with the supply."""
    period = 2 * np.pi / omega(CARD)
    time = np.linspace(0, 102 * period, 40_000)
    # a little beyond V_IMT, so that no peak falls between two samples
    swing = 1.05 * (CARD.v_imt_V - CARD.v_mit_V)
    nodes = [
        CARD.v_mit_V + swing * np.mod(time / period * f, 1) for f in (first, second)
    ]
    table = np.stack([time, *nodes, np.full(time.size, -1e-3)], axis=1)
    names = ("time", "v(n_1)", "v(n_2)", "i(v_supply)")
    return Plot("Transient Analysis", names, table)


def fake(plot: Plot) -> Simulator:
    def runs(children: Children, deck: Runnable, timeout_s: float) -> Plot:
        return plot

    return Simulator("fake", "1", runs)


def test_crossings_are_read_from_waveforms() -> None:
    """Frequencies 1.002 and .998: psi = 2 pi .004 a period, counted."""
    found = run(CARD, CELLS, [0], "gnucap", simulator=fake(waves(1.002, 0.998)))
    # read at the last crossing of the dwell, near its end
    assert found.reading.psi_rad[0] == pytest.approx(2 * np.pi * 0.4, rel=0.02)
    assert found.reading.locked.tolist() == [0]
    supply = 100 * 2 * np.pi / omega(CARD) * CARD.vdd_V * 1e-3
    assert found.supply_J[0] == pytest.approx(supply, rel=1e-6)


@pytest.mark.parametrize(
    ("plot", "reason"),
    [(waves(0.0, 1.0), "crossed 0 and"), (waves(1.4, 1.4), "off by 0.29")],
)
def test_waveforms_that_say_nothing_are_refused(plot: Plot, reason: str) -> None:
    deck = build_deck(CARD, CELLS, 0, default_settings("gnucap"))
    with pytest.raises(SimulatorFault, match=reason):
        read_cell(deck, plot)
    with pytest.raises(ToolError, match=f"fake failed for .*{reason}"):
        run(CARD, CELLS, [0], "gnucap", simulator=fake(plot))


def test_what_cannot_be_run_is_refused_before_any_deck() -> None:
    steady: dict[str, Any] = {"simulator": fake(waves(1.0, 1.0))}
    with pytest.raises(RequestError, match="no cell 4"):
        run(CARD, CELLS, [4], "gnucap", **steady)
    found = run(CARD, CELLS, [0], "gnucap", **steady)
    with pytest.raises(ToolError, match="ask for `gate`"):
        _ = found.change
