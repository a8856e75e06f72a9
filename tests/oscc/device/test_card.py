"""Cards: reading, refusing, round trip."""

import dataclasses
import math

import pytest

from oscc.device import (
    card_from_mapping,
    card_names,
    card_to_mapping,
    load_card,
    series_resistor_range_ohm,
)
from oscc.errors import RequestError

NAMES = ("vo2-two-state-20k", "vo2-two-state-5k5", "vo2-two-state-6k")

PLAIN = """format: oscc.card/1
name: mine
parameters:
  vdd_V: 5.0
  r_series_ohm: 6000.0
  c_F: 1e-10
  r_ins_ohm: 1e5
  r_met_ohm: 1000.0
  v_imt_V: 2.0
  v_mit_V: 1.0
"""


def _refused(tmp_path, old, new):
    path = tmp_path / "mine.yaml"
    assert old in PLAIN
    path.write_text(PLAIN.replace(old, new))
    with pytest.raises(RequestError) as caught:
        load_card(path)
    return str(caught.value)


def test_package_cards_are_the_three_of_the_design():
    assert card_names() == NAMES
    resistors = {name: load_card(name).r_series_ohm for name in NAMES}
    assert resistors == {
        "vo2-two-state-20k": 20e3,
        "vo2-two-state-5k5": 5.5e3,
        "vo2-two-state-6k": 6e3,
    }


@pytest.mark.parametrize("name", NAMES)
def test_every_value_states_its_source(name):
    card = load_card(name)
    assert [entry.name for entry in card.sources] == [
        field
        for field in (
            "vdd_V",
            "r_series_ohm",
            "c_F",
            "r_ins_ohm",
            "r_met_ohm",
            "v_imt_V",
            "v_mit_V",
        )
    ]
    assert all(entry.source and not entry.measured for entry in card.sources)
    assert card.trim is not None


@pytest.mark.parametrize("name", NAMES)
def test_round_trip_through_a_mapping(name):
    card = load_card(name)
    assert card_from_mapping(card_to_mapping(card)) == card


def test_a_plain_card_of_the_user(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(PLAIN)
    card = load_card(str(path))
    assert (card.name, card.c_F, card.sources) == ("mine", 1e-10, ())


def test_unknown_name_lists_the_cards():
    with pytest.raises(RequestError, match="Did you mean `vo2-two-state-6k`") as caught:
        load_card("vo2-two-stat-6k")
    assert all(name in str(caught.value) for name in NAMES)


def test_missing_file():
    with pytest.raises(RequestError, match="does not exist"):
        load_card("nowhere/card.yaml")


@pytest.mark.parametrize("text", ["20k", "1M", "6kohm"])
def test_unit_suffix_is_refused_with_its_line(tmp_path, text):
    message = _refused(tmp_path, "6000.0", text)
    assert "mine.yaml:5" in message
    assert f"`{text}` (text)" in message
    assert "plain number in ohm" in message


def test_unknown_key_names_the_nearest(tmp_path):
    message = _refused(tmp_path, "r_series_ohm", "r_serie_ohm")
    assert "mine.yaml:5" in message
    assert "Did you mean `r_series_ohm`?" in message


def test_missing_key(tmp_path):
    message = _refused(tmp_path, "  c_F: 1e-10\n", "")
    assert "`parameters.c_F` is missing" in message


def test_wrong_unit(tmp_path):
    message = _refused(tmp_path, "6000.0", "{value: 6, unit: kohm}")
    assert "must be `ohm`, but is 'kohm'" in message


def test_foreign_format(tmp_path):
    message = _refused(tmp_path, "oscc.card/1", "oscc.card/9")
    assert "must be `oscc.card/1`" in message


@pytest.mark.parametrize("text", ["0", "-1.0", "nan", ".nan", "true", "[1]"])
def test_values_that_are_no_positive_number(tmp_path, text):
    message = _refused(tmp_path, "6000.0", text)
    assert "r_series_ohm" in message


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0, -5.0])
def test_no_card_can_be_made_of_such_a_value(value):
    with pytest.raises(RequestError, match="c_F"):
        dataclasses.replace(load_card("vo2-two-state-6k"), c_F=value)


@pytest.mark.parametrize("resistor", [3999.0, 4000.0, 150e3, 1e6])
def test_series_resistor_outside_the_window_names_the_range(resistor):
    """Case C18: r_met (Vdd - V_MIT)/V_MIT = 4k, r_ins (Vdd - V_IMT)/V_IMT = 150k."""
    card = load_card("vo2-two-state-6k")
    with pytest.raises(RequestError, match="allowed is 4000 to 150000 ohm"):
        dataclasses.replace(card, r_series_ohm=resistor)


@pytest.mark.parametrize("resistor", [4001.0, 149e3])
def test_series_resistor_just_inside_the_window(resistor):
    card = dataclasses.replace(load_card("vo2-two-state-6k"), r_series_ohm=resistor)
    assert series_resistor_range_ohm(card) == pytest.approx((4000.0, 150e3))


def test_thresholds_in_the_wrong_order():
    with pytest.raises(RequestError, match="`v_mit_V` must be below `v_imt_V`"):
        dataclasses.replace(load_card("vo2-two-state-6k"), v_mit_V=2.0)


def test_no_resistor_helps_a_low_supply():
    with pytest.raises(RequestError, match="raise `vdd_V`"):
        dataclasses.replace(
            load_card("vo2-two-state-6k"), vdd_V=2.01, v_imt_V=2.0, v_mit_V=0.01
        )


def test_frequency_above_the_card_limit():
    with pytest.raises(RequestError, match=r"above its `f_max_Hz` 1e\+06 Hz"):
        dataclasses.replace(load_card("vo2-two-state-6k"), f_max_Hz=1e6)
