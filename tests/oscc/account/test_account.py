"""The whole account: exact sums, JSON of the contract, rivals, undefined figures."""

from __future__ import annotations

import dataclasses
import json
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oscc.account import CAUSES, account, exact_parts
from oscc.device import card_to_mapping, load_card
from oscc.errors import RequestError
from oscc.files import dump_json
from oscc.ir import HostOperation
from oscc.testing.energy import two_token_program, two_token_stage

KEYS = {
    "format",
    "program",
    "fidelity",
    "ideal_elements",
    "pairs",
    "pair_terms",
    "per_pair_J",
    "per_token_J",
    "total_J",
    "causes_J",
    "assumptions",
    "measured",
    "digital_J",
    "host_assisted",
    "omitted",
}


def test_json_holds_every_key_of_the_contract() -> None:
    program = two_token_program()
    found = account(program, {}, ideal_elements={"B": 3, "V": 2}).to_json()
    assert set(found) >= KEYS
    assert found["format"] == "oscc.energy/1"
    assert found["program"] == program.digest()
    assert set(found["causes_J"]) == set(CAUSES)
    assert set(found["per_pair_J"]) >= {"marginal", "all_in"}
    assert set(found["digital_J"]) == {"int4", "int8", "fp32"}
    assert (found["pairs"], found["pair_terms"]) == (3, 3)
    assert json.loads(dump_json(found)) == found
    for entry in found["assumptions"]:
        wanted = {"name", "value", "unit", "source", "measured", "replaced"}
        assert set(entry) == wanted
        assert entry["source"]


@given(
    st.lists(st.floats(1e-18, 1e-3), min_size=6, max_size=6),
)
def test_parts_sum_exactly_in_every_order(values: list[float]) -> None:
    parts, total = exact_parts(dict(zip(CAUSES, values, strict=True)))
    for order in permutations(parts.values()):
        assert sum(order) == total
    for name, value in zip(CAUSES, values, strict=True):
        assert abs(parts[name] - value) <= 2.0**-50 * total


def test_causes_sum_to_the_total_after_a_trip_through_json() -> None:
    text = dump_json(account(two_token_program(), {}).to_json())
    found = json.loads(text)
    assert sum(found["causes_J"].values()) == found["total_J"]


def test_figures_per_pair_and_token_follow_from_the_total() -> None:
    found = account(two_token_program(), {}).to_json()
    assert found["per_pair_J"]["all_in"] == found["total_J"] / 3
    assert found["per_token_J"] == found["total_J"] / 2
    host = found["causes_J"]["host"]
    assert found["per_pair_J"]["without_host"] == (found["total_J"] - host) / 3


def test_marginal_is_a_coupler_and_a_weight_write() -> None:
    found = account(two_token_program(), {})
    wanted = (found.causes_J["couplers"] + 3 * 1.25e-12) / 3
    assert found.marginal_J == pytest.approx(wanted, rel=1e-12)
    assert found.all_in_J is not None
    assert found.marginal_J < found.all_in_J / 60


def test_digital_rival_by_hand() -> None:
    # 3 pairs, one harmonic, one route: 6 multiply-accumulates.
    found = account(two_token_program(), {}).digital_J
    assert found["fp32"] == pytest.approx(6 * 4.6e-12, rel=1e-12)
    assert found["int8"] == pytest.approx(6 * 0.23e-12, rel=1e-12)
    assert found["int4"] == pytest.approx(6 * 0.065e-12, rel=1e-12)


def test_host_by_hand() -> None:
    # score 100 and bound 6 MACs, 3 exponentials, 2 target gains.
    found = account(two_token_program(), {})
    wanted = (100 + 6 + 2) * 4.6e-12 + 3 * 36.8e-12
    assert found.causes_J["host"] == pytest.approx(wanted, rel=1e-9)
    assert found.host_parts_J["bound"] == pytest.approx(6 * 4.6e-12, rel=1e-12)


def test_bound_is_named_with_as_many_products_as_the_coupling_saves() -> None:
    notes = " ".join(account(two_token_program(), {}).notes)
    assert "6 multiply-accumulates there, where the coupling saves 6" in notes
    assert "replaces no digital work" in notes
    free = two_token_program(host_operations=())
    assert account(free, {}).notes == ()


def test_ratio_leaves_the_model_s_own_host_work_out_of_both_sides() -> None:
    plain = two_token_program(host_operations=())
    busy = two_token_program(host_operations=(HostOperation("score", 0, 10**9),))
    assert account(plain, {}).hardware_over_digital == pytest.approx(
        account(busy, {}).hardware_over_digital, rel=1e-9
    )
    bound = two_token_program(host_operations=(HostOperation("bound", 0, 6),))
    more = account(bound, {}).hardware_over_digital["fp32"]
    less = account(plain, {}).hardware_over_digital["fp32"]
    assert more is not None
    assert less is not None
    # The bound repeats the 6 products of the coupling: one digital layer more.
    assert more - less == pytest.approx(1.0, rel=1e-6)


def test_corrected_is_host_assisted_and_its_products_are_counted() -> None:
    plain = account(two_token_program(), {})
    corrected = account(two_token_program(two_token_stage(scheme="corrected")), {})
    assert not plain.host_assisted
    assert corrected.host_assisted
    assert corrected.host_parts_J["field"] == pytest.approx(6 * 4.6e-12, rel=1e-12)
    assert "field" not in plain.host_parts_J
    assert any("Host-assisted" in note for note in corrected.notes)


def test_no_pairs_give_undefined_figures_not_numbers() -> None:
    stage = two_token_stage()
    from oscc.ir import Coupling

    silent = Coupling(
        "present",
        np.array([1]),
        np.zeros((1, 2, 2)),
        np.ones((1, 1)),
        np.zeros((1, 1)),
    )
    program = two_token_program(two_token_stage(couplings=(silent,)))
    found = account(program, {})
    content = found.to_json()
    assert content["pairs"] == 0
    assert content["per_pair_J"] == {
        "marginal": None,
        "all_in": None,
        "without_host": None,
    }
    assert content["hardware_over_digital"]["int8"] is None
    assert content["total_J"] > 0
    assert "undefined (0 pairs)" in str(found)
    assert account(two_token_program(stage), {}).to_json()["pairs"] == 3


def test_one_token_alone_has_its_self_pair() -> None:
    from oscc.ir import Coupling

    one = np.array([[0.2]])
    own = Coupling(
        "present", np.array([1]), np.ones((1, 1, 1)), np.ones((1, 1)), 0.0 * one
    )
    stage = two_token_stage(
        theta_rad=one,
        phi0_rad=one,
        gain_rad=one,
        detuning_rad=0.0 * one,
        digital_rad=one,
        couplings=(own,),
    )
    assert account(two_token_program(stage, tokens=np.array([1])), {}).pairs == 1


def test_overrides_replace_a_figure_and_say_so() -> None:
    program = two_token_program()
    cheap = account(program, {}, overrides={"read_out_J": 0.0}).to_json()
    dear = account(program, {}, overrides={"read_out_J": 1e-9}).to_json()
    # 2 targets, 1 dwell.
    added = dear["causes_J"]["read_out"] - cheap["causes_J"]["read_out"]
    assert added == pytest.approx(2e-9, rel=1e-9)
    entry = next(e for e in dear["assumptions"] if e["name"] == "read_out_J")
    assert entry["value"] == 1e-9
    assert "given by the user" in entry["source"]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("read_out", 1e-12, "Did you mean `read_out_J`"),
        ("read_out_J", -1.0, ">= 0"),
        ("read_out_J", float("nan"), ">= 0"),
        ("card.c_F", 1e-12, "There is no assumption `card.c_F`"),
    ],
)
def test_wrong_overrides_are_refused(name: str, value: float, words: str) -> None:
    with pytest.raises(RequestError, match=words.replace("(", r"\(")):
        account(two_token_program(), {}, overrides={name: value})


def test_programming_and_read_out_are_never_zero_by_default() -> None:
    for fidelity in ("summed", "pairwise", "oscillators"):
        stage = two_token_stage(fidelity=fidelity)
        causes = account(two_token_program(stage), {}).causes_J
        assert causes["programming"] > 0
        assert causes["read_out"] > 0


def test_two_stages_add_up() -> None:
    one = account(two_token_program(host_operations=()), {})
    second = two_token_stage(name="layer.1.coupling")
    both = account(two_token_program(two_token_stage(), second, host_operations=()), {})
    assert both.total_J == pytest.approx(2 * one.total_J, rel=1e-12)
    assert both.pairs == 2 * one.pairs
    assert len(both.stages) == 2


def test_threshold_noise_that_passes_fills_the_accuracy() -> None:
    """The physics page: 1e-3 of V_IMT at P = 20 on the 20k card makes 61 mrad."""
    program = two_token_program(
        device=card_to_mapping(load_card("vo2-two-state-20k")), accuracy_rad=0.061
    )
    noise = account(program, {}).noise
    # Printed with two figures there.
    assert noise["threshold_noise_max_relative"] == pytest.approx(1e-3, rel=0.01)
    assert noise["thermal_jitter_rad"] == pytest.approx(0.1453e-3, rel=1e-3)


def test_thermal_jitter_above_the_accuracy_leaves_no_threshold_noise() -> None:
    program = two_token_program(accuracy_rad=1e-6)
    assert account(program, {}).noise["threshold_noise_max_V"] is None


def test_break_even_cell_costs_as_much_as_digital() -> None:
    """Put the capacitor it names into the card: the ratio is then one."""
    figures = {"digital_fp32_mac_J": 1e-11, "digital_int8_mac_J": 1e-16}
    bare = two_token_program(host_operations=())
    found = account(bare, {}, overrides=figures).break_even
    assert found["int8"]["c_F"] is None
    size = found["fp32"]["c_F"]
    card = dataclasses.replace(load_card("vo2-two-state-6k"), c_F=size)
    small = two_token_program(host_operations=(), device=card_to_mapping(card))
    again = account(small, {}, overrides=figures)
    assert again.hardware_over_digital["fp32"] == pytest.approx(1.0, rel=1e-6)
    assert again.noise["thermal_jitter_rad"] == pytest.approx(
        found["fp32"]["thermal_jitter_rad"], rel=1e-6
    )


def test_break_even_of_the_physics_page() -> None:
    """k = 64 sources, P = 20, gain 0.3, |Z| = 0.51: C Vdd^2 59 pJ fp32, 2.9 pJ int8.

    There a target shares its 64 sources with 64 targets, oscillators run for the dwell
    alone, and a read-out of 1 pJ is all that is fixed.
    """
    from oscc.ir import Coupling, Stage

    k = 64
    gain = np.full((k, 1), 0.3)
    coupling = Coupling(
        "present",
        np.array([1]),
        np.full((1, k, k), 0.51 / k),
        np.ones((1, 1)),
        np.zeros((1, 1)),
    )
    flat = np.zeros((k, 1))
    stage = Stage(
        *("s", flat, flat, gain, flat, (coupling,), flat),
        scheme="plain",
        substeps=1,
        dwell_periods=20,
        causal=False,
    )
    program = two_token_program(
        stage,
        host_operations=(),
        device=card_to_mapping(load_card("vo2-two-state-20k")),
        tokens=np.arange(k),
    )
    nothing = ("hold_periods", "read_periods", "reference_oscillators")
    words = ("phase_word_J", "weight_write_J", "host_mac_J")
    found = account(program, {}, overrides=dict.fromkeys((*nothing, *words), 0.0))
    energy_J = {n: found.break_even[n]["c_F"] * 25.0 for n in ("fp32", "int8")}
    # Both are printed with two figures.
    assert energy_J["fp32"] == pytest.approx(59e-12, abs=0.5e-12)
    assert energy_J["int8"] == pytest.approx(2.9e-12, abs=0.05e-12)
