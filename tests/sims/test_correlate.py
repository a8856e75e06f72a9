"""Correlations in the engines and in SPICE, each against what it does not share."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import lru_cache

import numpy as np
import pytest
from scipy.signal import lsim

from oscc.device import load_card
from oscc.device.correlator import leakage
from oscc.device.piecewise import INSULATING, omega, segments, waveform_V
from oscc.errors import RequestError
from oscc.ir.correlation import Correlation
from oscc.ir.interpret import interpret_correlation
from oscc_sims import correlate_circuit, correlate_phase, correlate_spice
from oscc_sims.simulator import open_simulator

CARD = load_card("vo2-two-state-6k")
ANGLES = np.linspace(0, 2 * np.pi, 41)


def pairs(quality: float = 5.0, settle: int = 60, periods: int = 1) -> Correlation:
    """41 queries a step of the circle apart, one key, one coordinate."""
    one = np.ones((1, 1))
    return Correlation(
        "layer.0.score",
        ANGLES[:, None],
        0.3 * one,
        np.ones((41, 1)),
        one,
        np.zeros((1, 41, 1)),
        causal=False,
        quality=quality,
        settle_periods=settle,
        periods=periods,
    )


def test_tanks_follow_the_waveform_as_a_linear_system() -> None:
    quality, count = 3.0, 2000
    cycle = correlate_circuit.tank_cycle(CARD, quality)
    release = float(omega(CARD) * segments(CARD).begin_s[INSULATING])
    s = 2 * np.pi * np.arange(8 * count) / count
    driven = waveform_V(CARD, release + s) - CARD.v_mit_V
    system = ([1 / quality, 0], [1, 1 / quality, 1])
    _, wanted, _ = lsim(system, driven, s)
    found = correlate_circuit.tank_voltage(cycle, np.array([release]), s)[0]
    np.testing.assert_allclose(found, wanted, atol=2e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("quality", [2.0, 5.0, 12.0])
def test_settled_products_are_the_series_of_the_harmonics(quality: float) -> None:
    found = correlate_circuit.solve(CARD, pairs(quality, 120))[0, :, 0]
    n = np.arange(1, 41)
    wanted = np.cos(n * (ANGLES[:, None] - 0.3)) @ leakage(CARD, quality)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_a_transient_falls_as_the_tank_rings_down() -> None:
    settled = correlate_circuit.solve(CARD, pairs(5.0, 80))
    left = [
        np.abs(correlate_circuit.solve(CARD, pairs(5.0, n)) - settled).max()
        for n in (10, 15, 20)
    ]
    ratio = np.exp(-5 * np.pi / 5.0)
    np.testing.assert_allclose(np.divide(left[1:], left[:-1]), ratio, rtol=0.2)


def test_the_phase_engine_is_the_equation_itself() -> None:
    one = pairs()
    np.testing.assert_allclose(
        correlate_phase.solve(one), interpret_correlation(one), atol=1e-14
    )


def test_a_common_turn_of_both_banks_changes_nothing_once_settled() -> None:
    one = pairs()
    turned = Correlation(
        one.name,
        one.query_rad + 1.7,
        one.key_rad + 1.7,
        one.query_gain,
        one.key_gain,
        one.digital,
        causal=False,
        quality=one.quality,
        settle_periods=one.settle_periods,
        periods=one.periods,
    )
    found = [correlate_circuit.solve(CARD, which) for which in (one, turned)]
    np.testing.assert_allclose(*found, atol=1e-5)


def test_a_tank_that_does_not_ring_is_refused() -> None:
    with pytest.raises(RequestError, match="does not ring"):
        correlate_circuit.solve(CARD, pairs(0.5))


@lru_cache(maxsize=2)
def seen(dialect: str) -> dict[str, np.ndarray]:
    one = pairs(3.0, 8, 4)
    return correlate_spice.run(CARD, [one], open_simulator(dialect), dialect, jobs=2)


@pytest.mark.parametrize(
    "dialect",
    [
        pytest.param("ngspice", marks=pytest.mark.ngspice),
        pytest.param("gnucap", marks=pytest.mark.gnucap),
    ],
)
def test_simulators_give_the_products_of_the_exact_circuit(dialect: str) -> None:
    exact = correlate_circuit.solve(CARD, pairs(3.0, 8, 4))
    found = seen(dialect)["layer.0.score.correlation"]
    finer = seen(dialect)["layer.0.score.raw.half_step_correlation"]
    np.testing.assert_allclose(found, exact, atol=3e-4)
    np.testing.assert_allclose(found, finer, atol=3e-4)
    assert np.abs(found - interpret_correlation(pairs())).max() > 5e-4  # harmonics


def test_no_bit_depends_on_the_number_of_threads() -> None:
    script = (
        "import hashlib, numpy as np\n"
        "from oscc.device import load_card\n"
        "from oscc.lower.correlate import correlation\n"
        "from oscc_sims import correlate_circuit, correlate_phase\n"
        "draw = np.random.default_rng(0).normal(size=(2, 70, 48, 2))\n"
        "one = correlation('c', *(draw[..., 0] + 1j * draw[..., 1]), 4)\n"
        "card = load_card('vo2-two-state-6k')\n"
        "found = correlate_phase.solve(one), correlate_circuit.solve(card, one)\n"
        "print([hashlib.sha256(a.tobytes()).hexdigest() for a in found])\n"
    )
    said = []
    for threads in ("1", "2"):
        own = dict(os.environ, OPENBLAS_NUM_THREADS=threads, OMP_NUM_THREADS=threads)
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, env=own, capture_output=True, check=True)
        said.append(done.stdout)
    assert said[0] == said[1]
    assert said[0]
