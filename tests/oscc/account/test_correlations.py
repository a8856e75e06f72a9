"""Energy of scores and logits, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from oscc.account import account
from oscc.account.assumptions import assumptions
from oscc.account.correlations import correlation_energy
from oscc.device import load_card
from oscc.device.cycle_energy import energy_per_period_J
from oscc.device.piecewise import period_s, waveform_V
from oscc.lower.correlate import correlation
from oscc.testing.tiny import tiny_program

CARD = load_card("vo2-two-state-6k")
KNOWN = assumptions(CARD, ("pairwise", "correlations"))
ONE = correlation(
    "layer.0.score",
    np.array([[1.0, 2.0], [0.5, 0.5]]) + 0j,
    np.array([[1.0, 1.0], [4.0, 1.0]]) + 0j,
    settle_periods=6,
    periods=4,
)


def test_causes_are_those_of_the_equations() -> None:
    found = correlation_energy(ONE, CARD, KNOWN).causes_J
    free = energy_per_period_J(CARD).supply_J
    assert found["source_oscillators"] == pytest.approx(4 * 10 * free)
    assert found["target_oscillators"] == pytest.approx(4 * 10 * free)
    assert found["read_out"] == pytest.approx(3e-12)
    # visible products: (1 + 2), (.5 + .5), (2 + .5); the largest is 2
    phase = 2 * np.pi * (np.arange(4096) + 0.5) / 4096
    first = np.mean(waveform_V(CARD, phase) * np.exp(-1j * phase))
    current = 1e-4 * 2 * abs(first) * 6.5 / 2
    seconds = 10 * period_s(CARD)
    assert found["couplers"] == pytest.approx(CARD.vdd_V * current * seconds, rel=1e-5)


def test_the_account_holds_them_and_their_digital_rival() -> None:
    program = tiny_program(correlations=(ONE,))
    without = account(tiny_program(), {})
    found = account(program, {})
    added = correlation_energy(ONE, CARD, KNOWN)
    assert found.total_J - without.total_J == pytest.approx(
        sum(added.causes_J.values())
    )
    assert sum(found.causes_J.values()) == found.total_J
    assert found.periods - without.periods == 10
    macs = 2 * 3 * 2  # two a mixer, three visible pairs, two coordinates
    assert found.digital_J["int8"] - without.digital_J["int8"] == pytest.approx(
        macs * 0.23e-12
    )
    assert any("correlations" in note for note in found.notes)
    assert any("integrators" in part for part in found.omitted)
    names = {entry["name"] for entry in found.assumptions}
    assert {"mixer_S", "integrator_read_J"} <= names
    pair, spent = found.to_json()["per_pair_J"], found.correlations
    assert spent["energy_J"] == pytest.approx(sum(added.causes_J.values()))
    assert (spent["outputs"], spent["multiply_accumulates"]) == (3, macs)
    assert pair["without_correlations"] == pytest.approx(without.all_in_J)
    assert pair["all_in"] > pair["without_correlations"]
    assert "scores and logits  " in str(found)
    assert (without.to_json()["correlations"], without.correlations) == (None, {})
    assert "mixer_S" not in {entry["name"] for entry in without.assumptions}
