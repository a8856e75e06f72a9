"""Account of pair cells, by hand and by figures this code did not make."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oscc.account import account
from oscc.account.assumptions import assumptions
from oscc.account.locks import lock_stage_energy
from oscc.account.noise import (
    noise_periods,
    thermal_variance_per_period,
)
from oscc.device import Card, card_to_mapping, load_card
from oscc.device.ppv import ppv_at_switching
from oscc.ir import HostOperation
from oscc.testing.flat import cells_stage
from oscc.testing.tiny import tiny_program

CARD = load_card("vo2-two-state-5k5")
PULL = 2 * np.pi * 0.02 * 100
KNOWN = assumptions(CARD, ("cells",))


def stage_of(x=(0.0, 0.6, 0.9, 1.2), **changes):
    return cells_stage(x, gain_rad=PULL, **({"dwell_periods": 100} | changes))


def scaled(card: Card, farad: float, volt: float) -> Card:
    """The card with another capacitor, its voltages in the old proportions."""
    share = volt / card.vdd_V
    return replace(
        card,
        c_F=farad,
        vdd_V=volt,
        v_imt_V=card.v_imt_V * share,
        v_mit_V=card.v_mit_V * share,
    )


def period_by_hand(card: Card) -> tuple[float, float]:
    """Period [s] and supply energy of it [J], from the two exponentials of a cell."""
    time = energy = 0.0
    for ohm, begin, end in (
        (card.r_ins_ohm, card.v_mit_V, card.v_imt_V),
        (card.r_met_ohm, card.v_imt_V, card.v_mit_V),
    ):
        conductance = 1 / card.r_series_ohm + 1 / ohm
        level = card.vdd_V / card.r_series_ohm / conductance
        tau = card.c_F / conductance
        length = tau * np.log((begin - level) / (end - level))
        # integral of the node: level t - tau (end - begin)
        node = level * length - tau * (end - begin)
        energy += card.vdd_V * (card.vdd_V * length - node) / card.r_series_ohm
        time += length
    return time, energy


def test_a_cell_costs_what_the_design_says() -> None:
    """196 nJ in 100 periods, 3.3 MHz, 9 uA, 1.4 % for the coupler."""
    seconds, joule = period_by_hand(CARD)
    assert 1 / seconds == pytest.approx(3.3e6, rel=0.01)
    assert 200 * joule == pytest.approx(196e-9, rel=0.005)
    found = lock_stage_energy(stage_of(), CARD, KNOWN)
    causes = {name: value / 4 for name, value in found.causes_J.items()}
    assert causes["target_oscillators"] == pytest.approx(200 * joule, rel=1e-9)
    assert causes["source_oscillators"] == 0.0
    couplers = 2 * 5.0 * 453e-6 * 0.02 * 100 * seconds
    assert causes["couplers"] == pytest.approx(couplers, rel=2e-3)
    assert causes["couplers"] / causes["target_oscillators"] == pytest.approx(
        0.014, abs=5e-4
    )
    # one conversion of a crossing time, and both run on for the period of the read
    assert causes["read_out"] == pytest.approx(1e-12 + 2 * joule, rel=1e-9)
    # held at V_MIT for one period, both; a start word each, one word of the capacitors
    held = 5.0 * (5.0 - 1.0) / 5500 * seconds
    words = 3 * 12 * 10e-12 / 64
    assert causes["programming"] == pytest.approx(2 * held + words, rel=1e-9)
    assert found.duration_s == pytest.approx(102 * seconds, rel=1e-9)
    assert found.pair_J == pytest.approx(sum(found.causes_J.values()))


@pytest.mark.parametrize(("farad", "wanted"), [(1e-12, 78e-12), (1e-13, 7.8e-12)])
def test_small_cells_cost_what_the_design_says(farad: float, wanted: float) -> None:
    card = scaled(CARD, farad, 1.0)
    found = lock_stage_energy(stage_of(), card, assumptions(card, ("cells",)))
    assert found.causes_J["target_oscillators"] / 4 == pytest.approx(wanted, rel=0.01)


@pytest.mark.parametrize(
    ("farad", "volt", "wanted"),
    [
        (1e-10, 5.0, {0.6: 0.16e-3, 0.9: 0.22e-3}),
        (1e-12, 1.0, {0.6: 8.03e-3, 0.9: 10.88e-3}),
        (1e-13, 1.0, {0.6: 25.39e-3, 0.9: 34.40e-3}),
    ],
)
def test_thermal_jitter_of_a_cell(
    farad: float, volt: float, wanted: dict[float, float]
) -> None:
    """Of the loosest decided cell; figures of a script of another hand."""
    card = scaled(CARD, farad, volt)
    for x, jitter in wanted.items():
        periods = noise_periods(stage_of((0.3, x)))
        found = np.sqrt(periods * thermal_variance_per_period(card))
        assert found == pytest.approx(jitter, rel=0.003, abs=0.005e-3)


def test_the_window_that_a_lock_keeps_noise_in() -> None:
    """18 periods at x = .9; 46 mrad where each threshold errs by 1e-3 of itself."""
    periods = noise_periods(stage_of((0.9,)))
    assert periods == pytest.approx(18, abs=0.5)
    ends_V = np.array([CARD.v_mit_V, CARD.v_imt_V])  # of the metallic state first
    steps = ppv_at_switching(CARD) * CARD.c_F * 1e-3 * ends_V
    assert np.sqrt(periods * (steps**2).sum()) == pytest.approx(46e-3, rel=0.03)
    # twice the dwell is no more noise; a pair that slips has no lock to shake
    longer = cells_stage((0.9,), gain_rad=2 * PULL, dwell_periods=200)
    assert noise_periods(longer) == pytest.approx(periods)
    assert noise_periods(stage_of((0.9, 1.3))) == pytest.approx(periods)


def test_jitter_is_that_of_a_driven_random_walk() -> None:
    """An Ornstein-Uhlenbeck walk of the lock, stepped, against the closed form."""
    random = np.random.default_rng(0)
    x, variance = 0.9, thermal_variance_per_period(CARD)
    pull = 2 * np.pi * 0.02 * np.sqrt(1 - x * x)  # a period
    psi, parts = np.zeros(4000), 20
    for _ in range(120 * parts):
        noise = random.normal(0, np.sqrt(2 * variance / parts), psi.size)
        psi += -pull / parts * psi + noise
    wanted = noise_periods(stage_of((x,))) * variance
    assert psi.var() == pytest.approx(wanted, rel=0.1)


def test_an_account_of_cells_counts_one_root_a_cell() -> None:
    operations = (HostOperation("distances", 0, 1000), HostOperation("values", 0, 50))
    program = tiny_program(
        stage_of(),
        family="ssa",
        device=card_to_mapping(CARD),
        host_operations=operations,
    )
    found = account(program, {})
    assert found.pairs == 4
    assert sum(found.causes_J.values()) == found.total_J
    assert found.digital_J["fp32"] == pytest.approx(4 * 9 * 4.6e-12)
    assert found.digital_J["int8"] == pytest.approx(4 * 9 * 0.23e-12)
    assert any("one square root" in note for note in found.notes)
    assert found.noise["thermal_jitter_rad"] == pytest.approx(0.2e-3, rel=0.1)
    detunings = found.host_parts_J["detunings"]
    assert detunings > 0
    hardware = found.total_J - found.causes_J["host"] + detunings
    ratio = found.hardware_over_digital["int8"]
    assert ratio == pytest.approx(hardware / found.digital_J["int8"], rel=1e-9)


def test_a_decode_of_cells_speaks_of_no_bank() -> None:
    index = np.array([[0, 4, 1], [0, 4, 3]])
    stage = stage_of((0.4, 0.8), index=index, source_index=index, first_token=4)
    program = tiny_program(
        stage, device=card_to_mapping(CARD), tokens=np.arange(5), host_operations=()
    )
    found = account(program, {})
    assert (found.mode, found.tokens) == ("decode", 1)
    assert not any("bank" in note for note in found.notes)
    assert any("cells of its own pairs" in note for note in found.notes)
    assert "source_refresh" not in {entry["name"] for entry in found.assumptions}


def test_words_and_waits_are_assumptions_of_the_user() -> None:
    def programming(**changes: float) -> float:
        known = assumptions(CARD, ("cells",), changes)
        return float(lock_stage_energy(stage_of(), CARD, known).causes_J["programming"])

    assert programming(detuning_word_J=1.0) - programming() == pytest.approx(
        4, rel=1e-9
    )
    assert programming(phase_word_J=1.0) - programming() == pytest.approx(8, rel=1e-9)
    waits = assumptions(CARD, ("cells",), {"settle_periods": 100.0})
    one, two = (lock_stage_energy(stage_of(), CARD, k) for k in (KNOWN, waits))
    for cause in ("target_oscillators", "couplers"):
        assert two.causes_J[cause] == pytest.approx(2 * one.causes_J[cause])
