"""Measured energy: sign of the current, whole periods, balance by part."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from oscc.account import account, delivered_energy_J
from oscc.device import load_card
from oscc.device.cycle_energy import energy_per_period_J
from oscc.device.piecewise import omega, period_s, waveform_V
from oscc.errors import RequestError, UndecidedError
from oscc.observables import Observables
from oscc.testing.energy import two_token_program

STAGE = "layer.0.coupling"


def _seen(arrays: dict[str, Any], *, program: str | None = None) -> Observables:
    return Observables(
        "circuit",
        two_token_program().digest() if program is None else program,
        {f"{STAGE}.{name}": np.asarray(value) for name, value in arrays.items()},
        {},
    )


def test_a_delivering_source_has_negative_current_and_positive_energy() -> None:
    """1 kOhm on 1 V for 1 us is 1 nJ."""
    time = np.linspace(0.0, 1e-6, 11)
    current = np.full(11, -1.0 / 1e3)
    found = delivered_energy_J(time, np.ones(11), current, period_s=1e-7)
    assert found == pytest.approx(1e-9, rel=1e-12)
    assert delivered_energy_J(time, np.ones(11), -current, period_s=1e-7) < 0


@pytest.mark.parametrize("samples", [0, 1, 5])
def test_less_than_one_period_offers_no_energy(samples: int) -> None:
    time = np.linspace(0.0, 0.5e-6, samples)
    with pytest.raises(UndecidedError, match="0 periods"):
        delivered_energy_J(time, time, time, period_s=1e-6)


def test_window_of_exactly_one_period_counts() -> None:
    time = np.linspace(0.0, 1e-6, 5)
    assert delivered_energy_J(time, time * 0 + 1, time * 0 - 1, period_s=1e-6) > 0


def test_falling_time_is_refused() -> None:
    time = np.array([0.0, 2e-6, 1e-6])
    with pytest.raises(RequestError, match="must ascend"):
        delivered_energy_J(time, time, time, period_s=1e-6)


@pytest.mark.parametrize("periods", [4, 8])
def test_integrated_waveform_gives_the_closed_form_per_period(periods: int) -> None:
    card = load_card("vo2-two-state-6k")
    # Midpoints of 20 000 steps a period: far below the 1e-4 asked for.
    time = np.linspace(0.0, periods * period_s(card), 20_000 * periods + 1)
    current = -(card.vdd_V - waveform_V(card, omega(card) * time)) / card.r_series_ohm
    found = delivered_energy_J(
        time, np.full(time.size, card.vdd_V), current, period_s=period_s(card)
    )
    assert found / periods == pytest.approx(
        energy_per_period_J(card).supply_J, rel=1e-4
    )


def test_balanced_run_is_an_entry_beside_the_closed_form() -> None:
    free = 20 * 0.9025388528782835e-9
    seen = _seen(
        {
            "supply_J": [free, free],
            "injected_J": [2e-12, -1e-12],
            "parts_J": [
                [0.7 * free, 0.3 * free, 2e-12],
                [0.7 * free, 0.3 * free, -1e-12],
            ],
        }
    )
    (entry,) = account(two_token_program(), {"circuit": seen}).to_json()["measured"]
    assert entry["engine"] == "circuit"
    assert entry["supply_J"] == pytest.approx(2 * free, rel=1e-12)
    assert entry["injected_J"] == pytest.approx(1e-12, rel=1e-9)
    assert set(entry["parts_J"]) == {"r_series_J", "vo2_J", "capacitor_J"}
    assert entry["balance_error"] < 1e-12
    assert entry["balanced"]
    assert entry["over_closed_form"] == pytest.approx(1.0, rel=1e-9)
    assert "2 of 2 targets" in entry["scope"]
    assert entry["tag"] == "simulated"


def test_parts_that_miss_by_more_than_a_percent_are_said_to_fail() -> None:
    seen = _seen(
        {
            "supply_J": [1e-9, 1e-9],
            "injected_J": [0.0, 0.0],
            "parts_J": [[0.7e-9, 0.3e-9, 0.0], [0.7e-9, 0.32e-9, 0.0]],
        }
    )
    found = account(two_token_program(), {"circuit": seen})
    (entry,) = found.measured
    assert not entry["balanced"]
    assert entry["balance_error"] == pytest.approx(0.02, rel=1e-6)
    assert "2.00%" in entry["reason"]
    assert "FAILED" in str(found)


def test_a_negative_supply_energy_is_said_to_fail() -> None:
    seen = _seen(
        {
            "supply_J": [-1e-9, 1e-9],
            "injected_J": [0.0, 0.0],
            "parts_J": [[0.7e-9, 0.3e-9, 0.0]] * 2,
        }
    )
    (entry,) = account(two_token_program(), {"circuit": seen}).measured
    assert not entry["balanced"]
    assert "sign" in entry["reason"]


def test_energies_of_every_dwell_are_added() -> None:
    seen = _seen(
        {
            "index": [[1, 0]],
            "supply_J": [[1e-9, 2e-9]],
            "injected_J": [[0.0, 0.0]],
            "parts_J": [[[0.7e-9, 0.3e-9, 0.0], [1.4e-9, 0.6e-9, 0.0]]],
        }
    )
    (entry,) = account(two_token_program(), {"circuit": seen}).measured
    assert entry["supply_J"] == pytest.approx(3e-9, rel=1e-12)
    assert entry["parts_J"]["vo2_J"] == pytest.approx(0.9e-9, rel=1e-12)
    assert "1 of 2 targets" in entry["scope"]
    assert entry["balanced"]


def test_an_engine_without_energies_has_no_entry() -> None:
    assert account(two_token_program(), {"phase": _seen({})}).measured == ()


def test_observables_of_another_program_are_refused() -> None:
    seen = _seen({"supply_J": [1.0]}, program="f" * 64)
    with pytest.raises(RequestError, match="made from program ffffffff"):
        account(two_token_program(), {"circuit": seen})


def test_a_sample_is_set_beside_the_same_targets_of_the_circuit_run() -> None:
    whole = _seen({"supply_J": [1e-9, 4e-9], "injected_J": [0.0, 0.0]})
    sample = _seen({"index": [[1, 0]], "supply_J": [4.02e-9], "injected_J": [0.0]})
    sample = dataclasses.replace(sample, engine="ngspice")
    seen = {"circuit": whole, "ngspice": sample}
    circuit, ngspice = account(two_token_program(), seen).measured
    assert circuit["over_circuit"] is None
    assert ngspice["over_circuit"] == pytest.approx(1.005, rel=1e-9)
