"""Account of listed pairs, by figures worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from oscc.account import account
from oscc.account.assumptions import assumptions
from oscc.account.digital import coupling_macs
from oscc.account.pairs import count_pairs, field_by_harmonic, strength_by_harmonic
from oscc.account.stages import class_a_energy_J, stage_energy
from oscc.device import load_card
from oscc.device.ppv import ppv_series
from oscc.ir import Edges, HostOperation, Stage
from oscc.testing.flat import grid_index, modes_stage
from oscc.testing.tiny import tiny_program

CARD = load_card("vo2-two-state-6k")


def hand_stage(**changes: object) -> Stage:
    """One token, two coordinates, two modes and a pin: strengths .5, .25, 2 and 1."""
    edges = Edges(
        target=np.array([0, 0, 1, 1]),
        source=np.array([0, 1, 1, 2]),
        harmonic=np.array([1, 2, 2, 1]),
        gamma=np.array([0.5, -0.25, 2.0, 1.0]),
        alpha_rad=np.array([0.3, 0.0, 0.7, 0.2]),
    )
    values: dict[str, object] = {
        "name": "layer.0.modes",
        "theta_rad": np.array([0.4, 1.1, 0.0]),
        "phi0_rad": np.array([0.0, 0.5]),
        "gain_rad": np.array([0.3, -0.6]),
        "detuning_rad": np.zeros(2),
        "couplings": (edges,),
        "digital_rad": np.zeros(2),
        "index": grid_index(1, 2),
        "source_index": grid_index(1, 3),
        "scheme": "plain",
        "substeps": 1,
        "dwell_periods": 20,
    }
    return Stage(**(values | changes))  # type: ignore[arg-type]


def test_counts_and_strengths_of_a_stage_by_hand() -> None:
    stage = hand_stage()
    counts = count_pairs(stage)
    assert (counts.pairs, counts.pair_terms, counts.pair_routes) == (4, 4, 4)
    assert (counts.targets, counts.sources) == (2, 3)
    assert strength_by_harmonic(stage).tolist() == [[0.5, 1.0], [0.25, 2.0]]
    # one pair a harmonic and target, so fields and strengths agree
    assert field_by_harmonic(stage) == pytest.approx(strength_by_harmonic(stage))


def test_the_couplers_draw_their_peak_current() -> None:
    """E = Vdd |g| sum_n strength_n / |Gamma_n|, by hand for both targets."""
    stage = hand_stage()
    one, two = np.abs(ppv_series(CARD, np.array([1, 2])))
    wanted = [
        CARD.vdd_V * 0.3 * (0.5 / one + 0.25 / two),
        CARD.vdd_V * 0.6 * (1.0 / one + 2.0 / two),
    ]
    found = class_a_energy_J(CARD, strength_by_harmonic(stage), stage)
    assert found == pytest.approx(wanted, rel=1e-12)


def test_every_pair_has_a_weight_word_and_every_source_a_write() -> None:
    zero = {"phase_word_J": 0.0, "hold_periods": 0.0, "weight_write_J": 0.0}

    def programming(**changes: float) -> float:
        known = assumptions(CARD, {"pairwise"}, zero | changes)
        return float(stage_energy(hand_stage(), CARD, known).causes_J["programming"])

    # four pairs once, and the gain of both targets in the one dwell
    assert programming(weight_write_J=1.0) == pytest.approx(6.0)
    # three sources, two targets and the reference are written once
    assert programming(phase_word_J=1.0) == pytest.approx(6.0)


def test_a_complex_product_is_four_and_a_complex_constant_two() -> None:
    # .5 turned: 4; -.25 not turned: 2; 2 turned: 4; the pin: 2
    assert coupling_macs(tiny_program(hand_stage())) == 12


def test_work_for_the_oscillators_alone_is_on_their_side() -> None:
    operations = (
        HostOperation("modes", 0, 1000),
        HostOperation("mode_weights", 0, 100),
        HostOperation("mode_phases", 0, 10, "sincos"),
    )
    with_all = account(tiny_program(hand_stage(), host_operations=operations), {})
    without = account(tiny_program(hand_stage(), host_operations=operations[:1]), {})
    ratios = [
        found.hardware_over_digital["int8"] * found.digital_J["int8"]
        for found in (with_all, without)
    ]
    extra = sum(with_all.host_parts_J[name] for name in ("mode_weights", "mode_phases"))
    assert extra > 0
    assert ratios[0] - ratios[1] == pytest.approx(extra, rel=1e-6)
    assert with_all.total_J - without.total_J == pytest.approx(extra, rel=1e-6)


@pytest.mark.parametrize("fidelity", ["summed", "pairwise", "oscillators"])
@pytest.mark.parametrize("scheme", ["plain", "extrapolated", "corrected"])
def test_every_fidelity_and_scheme_has_an_account(fidelity: str, scheme: str) -> None:
    stage = modes_stage(fidelity=fidelity, scheme=scheme)
    found = account(tiny_program(stage), {})
    assert sum(found.causes_J.values()) == found.total_J > 0
    assert found.pairs == 3 * 4 * 2
