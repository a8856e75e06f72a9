"""Closed-form stage energy against figures worked out by hand and published here.

The oracle figures come from the physics page of the project (a script of its own, not
this package): E0 0.902539 nJ (6k), 0.619673 nJ (20k); class A per target at gain 0.3
and unit field 193 pJ for one harmonic, 366 pJ for three (1, 0.5, 0.25) on the 20k card.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from oscc.account.assumptions import assumptions
from oscc.account.pairs import (
    count_pairs,
    field_by_harmonic,
    strength_by_harmonic,
)
from oscc.account.stages import (
    class_a_energy_J,
    hold_energy_per_period_J,
    second_order_energy_J,
    stage_energy,
)
from oscc.device import Card, load_card
from oscc.ir import Coupling, Stage
from oscc.ir.views import pairs
from oscc.testing.energy import two_token_stage

E0_6K, E0_20K = 0.9025388528782835e-9, 0.619673e-9
PERIOD_6K = 3.063117286832964e-07
BARE = {"hold_periods": 0.0, "read_periods": 0.0, "phase_word_J": 0.0}


def _energy(
    stage: Stage, card: str = "vo2-two-state-6k", **changes: float
) -> dict[str, float]:
    known = assumptions(load_card(card), {stage.fidelity}, changes)
    return dict(stage_energy(stage, load_card(card), known).causes_J)


def _random_stage(rng: np.random.Generator, **changes: object) -> Stage:
    """Five tokens, four coordinates in two heads, two routes, some zeros."""
    tokens, width, heads = 5, 4, 2
    couplings = []
    for route in ("present", "successor"):
        weights = np.tril(rng.normal(size=(heads, tokens, tokens)))
        weights[0, 3, 1] = 0.0
        gamma = rng.normal(size=(2, width))
        gamma[1, 2] = 0.0
        couplings.append(
            Coupling(
                route, np.array([1, 2]), weights, gamma, rng.normal(size=(2, width))
            )
        )
    shape = (tokens, width)
    values: dict[str, object] = {
        "name": "layer.0.coupling",
        "theta_rad": rng.normal(size=shape),
        "phi0_rad": rng.normal(size=shape),
        "gain_rad": rng.normal(size=shape),
        "detuning_rad": np.zeros(shape),
        "couplings": tuple(couplings),
        "digital_rad": np.zeros(shape),
        "dwell_periods": 4,
        "substeps": 3,
    }
    return Stage(**(values | changes))  # type: ignore[arg-type]


def test_oscillators_cost_their_period_energy() -> None:
    causes = _energy(two_token_stage(dwell_periods=20), **BARE)
    assert causes["target_oscillators"] == pytest.approx(2 * 20 * E0_6K, rel=1e-9)
    assert causes["source_oscillators"] == pytest.approx(2 * 20 * E0_6K, rel=1e-9)


def test_extrapolated_counts_both_dwells_of_every_substep() -> None:
    stage = two_token_stage(scheme="extrapolated", substeps=3, dwell_periods=4)
    causes = _energy(stage, **BARE)
    # 3 x (4 + 8) = 36 periods in 6 dwells; 2 targets and 2 sources, 1 reference.
    assert causes["target_oscillators"] == pytest.approx(2 * 36 * E0_6K, rel=1e-9)
    reads = 6 * 2 * 1e-12 + 36 * E0_6K
    assert causes["read_out"] == pytest.approx(reads, rel=1e-9)
    # 3 pair terms once, one gain word per target and dwell, 1.25 pJ a word.
    assert causes["programming"] == pytest.approx((3 + 6 * 2) * 1.25e-12, rel=1e-9)


def test_probe_counts_both_runs_at_its_small_gain() -> None:
    flow = _energy(two_token_stage())
    probe = _energy(two_token_stage(update="probe", model_update="euler"))
    assert probe["target_oscillators"] == 2 * flow["target_oscillators"]
    assert probe["read_out"] == 2 * flow["read_out"]
    # Two runs at 2 % of the gain each.
    assert probe["couplers"] == pytest.approx(0.04 * flow["couplers"], rel=1e-12)


def test_twice_the_periods_is_twice_the_oscillator_energy_at_equal_coupler() -> None:
    short, long = (_energy(two_token_stage(dwell_periods=p), **BARE) for p in (9, 18))
    for cause in ("source_oscillators", "target_oscillators"):
        assert long[cause] == pytest.approx(2 * short[cause], rel=1e-12)
    assert long["couplers"] == short["couplers"]
    assert long["programming"] == short["programming"]


def test_a_longer_dwell_costs_its_periods_alone_with_writes_and_reads_on() -> None:
    short, long = (_energy(two_token_stage(dwell_periods=p)) for p in (9, 18))
    added = long["target_oscillators"] - short["target_oscillators"]
    assert added == pytest.approx(2 * 9 * E0_6K, rel=1e-9)
    added = long["source_oscillators"] - short["source_oscillators"]
    assert added == pytest.approx(2 * 9 * E0_6K, rel=1e-9)


@pytest.mark.parametrize(
    ("strengths", "figure_J"), [((1.0,), 193.32e-12), ((1.0, 0.5, 0.25), 366.27e-12)]
)
def test_class_a_reproduces_the_published_figures(
    strengths: tuple[float, ...], figure_J: float
) -> None:
    orders = np.arange(1, len(strengths) + 1)
    coupling = Coupling(
        "present",
        orders,
        np.ones((1, 1, 1)),
        np.array(strengths)[:, None],
        np.zeros((orders.size, 1)),
    )
    one = np.zeros((1, 1))
    stage = Stage("s", one, one, one + 0.3, one, (coupling,), one)
    card = load_card("vo2-two-state-20k")
    found = class_a_energy_J(card, strength_by_harmonic(stage), stage)
    # The figures are printed with two decimals of a picojoule.
    assert found[0, 0] == pytest.approx(figure_J, abs=0.005e-12)


def test_gain_of_either_sign_costs_the_same() -> None:
    stage = two_token_stage()
    card = load_card("vo2-two-state-6k")
    energy = class_a_energy_J(card, strength_by_harmonic(stage), stage)
    assert energy[0, 0] == pytest.approx(energy[1, 0], rel=1e-12)


def test_pairwise_coupler_covers_the_sum_of_strengths_of_the_expanded_pairs() -> None:
    stage = _random_stage(np.random.default_rng(3))
    expanded = np.zeros((2, stage.targets))
    for chunk in pairs(stage):
        np.add.at(expanded, (chunk.harmonic - 1, chunk.target), np.abs(chunk.strength))
    found = strength_by_harmonic(stage).reshape(2, -1)
    np.testing.assert_allclose(found, expanded, rtol=1e-12)


def test_summed_field_of_equal_sources_is_the_sum_and_never_more() -> None:
    stage = _random_stage(np.random.default_rng(4))
    assert (field_by_harmonic(stage) <= strength_by_harmonic(stage) + 1e-12).all()
    aligned = two_token_stage(theta_rad=np.full((2, 1), 0.7))
    np.testing.assert_allclose(
        field_by_harmonic(aligned), strength_by_harmonic(aligned), rtol=1e-12
    )


def test_pairwise_costs_more_coupler_than_summed() -> None:
    rng = np.random.default_rng(5)
    pairwise = _random_stage(rng)
    summed = dataclasses.replace(pairwise, fidelity="summed")
    assert _energy(pairwise)["couplers"] > 1.2 * _energy(summed)["couplers"]
    assert _energy(summed)["source_oscillators"] == 0.0


def test_counts_of_the_expanded_form() -> None:
    stage = _random_stage(np.random.default_rng(6))
    terms = sum(chunk.target.size for chunk in pairs(stage))
    triples = {
        (int(t), int(s), int(r))
        for chunk in pairs(stage)
        for t, s, r in zip(chunk.target, chunk.source, chunk.route, strict=True)
    }
    counts = count_pairs(stage)
    assert counts.pair_terms == terms
    assert counts.pair_routes == len(triples)
    assert counts.pairs == len({(t, s) for t, s, _ in triples})
    assert (counts.targets, counts.sources) == (20, 20)


def test_a_held_cell_draws_what_the_deck_of_real_cells_shows() -> None:
    """The deck holds at 0.9866 V and measured 1.024 nJ a period."""
    card = load_card("vo2-two-state-6k")
    at_deck_voltage = (5.0 - 0.9866) / (5.0 - 1.0)
    held = hold_energy_per_period_J(card) * at_deck_voltage
    assert held == pytest.approx(1.024e-9, rel=1e-3)
    assert held > E0_6K


def test_oscillators_fidelity_settles_and_pays_for_weights_and_shapers() -> None:
    pairwise = _energy(two_token_stage(), **BARE)
    real = _energy(two_token_stage(fidelity="oscillators"), **BARE)
    assert real["target_oscillators"] == pytest.approx(
        pairwise["target_oscillators"] * (20 + 12) / 20, rel=1e-12
    )
    # The row sums of |A| are 1: weights alone draw gm 0.5 V Vdd = 0.25 mW a target.
    known = {"shaper_S": 0.0, "bias_over_peak": 1.0}
    bare = _energy(two_token_stage(fidelity="oscillators"), **BARE, **known)
    none = _energy(two_token_stage(fidelity="oscillators"), **BARE, **known, weight_S=0)
    seconds = 32 * PERIOD_6K
    power = (bare["couplers"] - none["couplers"]) / seconds / 2
    # Period of the cell from the script behind the physics page.
    assert power == pytest.approx(0.25e-3, rel=1e-9)


def test_energy_scales_with_the_capacitor_at_fixed_resistors_and_voltages() -> None:
    card = load_card("vo2-two-state-6k")
    small = dataclasses.replace(card, c_F=card.c_F / 10)
    stage = two_token_stage()

    def causes(which: Card) -> dict[str, float]:
        known = assumptions(which, {"pairwise"}, {"phase_word_J": 0.0})
        return dict(stage_energy(stage, which, known).causes_J)

    for cause in ("source_oscillators", "target_oscillators", "couplers"):
        assert causes(small)[cause] == pytest.approx(causes(card)[cause] / 10, rel=1e-9)


def test_detuning_draws_its_trim_current() -> None:
    with_trim = two_token_stage(detuning_rad=np.full((2, 1), 0.1))
    added = _energy(with_trim)["couplers"] - _energy(two_token_stage())["couplers"]
    # Gamma_0 I_0 = Omega / (P T0), hence Vdd I_0 P T0 = Vdd Omega / Gamma_0.
    from oscc.device.ppv import ppv_series

    gamma = float(ppv_series(load_card("vo2-two-state-6k"), 0).real)
    assert added == pytest.approx(2 * 5.0 * 0.1 / abs(gamma), rel=1e-9)


def test_energy_of_the_20k_card() -> None:
    causes = _energy(two_token_stage(), card="vo2-two-state-20k", **BARE)
    assert causes["target_oscillators"] == pytest.approx(2 * 20 * E0_20K, rel=1e-5)


def test_second_order_currents_are_priced_by_their_published_size() -> None:
    """I_0 = 454 A^-1 |I_1|^2 and I_2 = (3390 + 1080i) A^-1 I_1^2 on the 20k card."""
    card, gain, periods = load_card("vo2-two-state-20k"), 0.3, 20
    stage = two_token_stage(
        scheme="corrected",
        dwell_periods=periods,
        theta_rad=np.full((2, 1), 0.7),
        gain_rad=np.array([[gain], [0.0]]),
    )
    seconds = periods * 7.123235781181e-07
    first = gain / (seconds * 7.759006e9)
    wanted = 5.0 * seconds * (454.0 + abs(3390.0 + 1080.0j)) * first**2
    # The figures are given to within 0.3 %.
    assert second_order_energy_J(stage, card) == pytest.approx(wanted, rel=5e-3)
