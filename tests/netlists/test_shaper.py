"""Shaper of a tile: the designed taps give the wanted current, solved independently."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oscc.arrays import ComplexArray
from oscc.device import load_card
from oscc.device.piecewise import omega, waveform_series
from oscc.seeds import stream
from oscc_netlists.circuit import Circuit, Section, Transient
from oscc_netlists.couplers import SUM_OHM, WEIGHT_SIEMENS
from oscc_netlists.element import (
    Capacitor,
    Element,
    Resistor,
    Transconductor,
)
from oscc_netlists.lint import lint
from oscc_netlists.shaper import (
    Load,
    ShaperPlan,
    channel,
    channels_of,
    design,
    full_A,
    taps,
)

CARD = load_card("vo2-two-state-6k")
FREE = Load(float("inf"), 0.0)


def units(seed: int, orders: int, routes: int) -> dict[str, ComplexArray]:
    """Wanted currents of harmonics 1..K, the null channel last."""
    random = stream(seed, "units")
    width = channels_of(tuple(range(1, orders + 1)))
    out = {}
    for route in ("present", "successor")[:routes]:
        unit = np.zeros(width, dtype=np.complex128)
        turn = np.exp(1j * random.uniform(-np.pi, np.pi, orders))
        unit[:orders] = 1e-5 * random.uniform(0.2, 1.0, orders) * turn
        out[route] = unit
    return out


def nodal(
    elements: list[Element], drive: dict[str, complex], at: float
) -> dict[str, complex]:
    """Node voltages of a linear circuit at one frequency, by nodal analysis."""
    names = sorted({n for e in elements for n in e.nodes} - {"0", *drive})
    place = {name: k for k, name in enumerate(names)}
    matrix = np.zeros((len(names), len(names)), dtype=np.complex128)
    right = np.zeros(len(names), dtype=np.complex128)

    def add(row: str, column: str, value: complex) -> None:
        if row not in place or column == "0":
            return
        if column in drive:
            right[place[row]] -= value * drive[column]
        else:
            matrix[place[row], place[column]] += value

    for e in elements:
        if isinstance(e, Transconductor):
            for row, sign in ((e.plus, 1.0), (e.minus, -1.0)):
                add(row, e.control_plus, sign * e.siemens)
                add(row, e.control_minus, -sign * e.siemens)
        else:
            assert isinstance(e, Resistor | Capacitor)
            size = 1 / e.ohm if isinstance(e, Resistor) else 1j * at * e.farad
            for row, other in ((e.plus, e.minus), (e.minus, e.plus)):
                add(row, row, size)
                add(row, other, -size)
    solved = np.linalg.solve(matrix, right)
    return {name: complex(solved[k]) for name, k in place.items()}


def parts(plan: ShaperPlan, route: str) -> list[Element]:
    """Sum node, channels and taps of one route, with its weight of one."""
    out: list[Element] = [
        Transconductor("g_w", "0", "x_0_p", "b", "0", WEIGHT_SIEMENS),
        Resistor("r_x", "x_0_p", "0", SUM_OHM),
        Resistor("r_y", "y", "0", SUM_OHM),
    ]
    if np.isfinite(plan.load.ohm):
        out.append(Resistor("r_o", "x_0_p", "0", plan.load.ohm))
        out.append(Capacitor("c_o", "x_0_p", "0", plan.load.farad, 0.0))
    for order in range(1, plan.channels + 1):
        out += channel(plan, "0_p", order, "x_0_p")
    return [*out, *taps(plan, route, "0_p", "y")]


@pytest.mark.parametrize("load", [FREE, Load(6e5, 2e-14)])
@pytest.mark.parametrize("quality", [3.0, 5.0])
@given(seed=st.integers(0, 1000), orders=st.integers(1, 2), routes=st.integers(1, 2))
@settings(max_examples=10)
def test_the_circuit_gives_the_wanted_current(
    quality: float, load: Load, seed: int, orders: int, routes: int
) -> None:
    wanted = units(seed, orders, routes)
    plan = design(CARD, omega(CARD), wanted, quality=quality, load=load)
    for route, unit in wanted.items():
        elements = parts(plan, route)
        for n in range(1, plan.channels + 1):
            # the source's own harmonic, written at the plan's offset
            phasor = 2 * waveform_series(CARD, n) * np.exp(1j * n * plan.offset_rad)
            seen = nodal(elements, {"b": complex(phasor)}, n * omega(CARD))["y"]
            found = seen * full_A(plan)
            # the joint solve of 2K taps, conditioned worse for more channels
            assert abs(found - unit[n - 1]) < 1e-9 * np.abs(unit).max()


def test_channel_one_of_the_first_route_needs_no_quadrature_tap() -> None:
    plan = design(CARD, omega(CARD), units(3, 2, 2), quality=3.0, load=FREE)
    size = np.abs(plan.taps_S["present"]).max()
    assert abs(plan.taps_S["present"][0, 1]) < 1e-9 * size
    assert abs(plan.taps_S["successor"][0, 1]) > 1e-3 * size


def test_a_second_route_may_be_all_there_is() -> None:
    wanted = units(4, 1, 2)
    wanted["present"] = np.zeros(1, dtype=np.complex128)
    plan = design(CARD, omega(CARD), wanted, quality=3.0, load=FREE)
    assert not plan.taps_S["present"].any()
    assert plan.taps_S["successor"].any()


def test_the_channels_have_a_path_for_direct_current() -> None:
    plan = design(CARD, omega(CARD), units(5, 2, 1), quality=3.0, load=FREE)
    elements = parts(plan, "present")
    grounded = [*elements, Resistor("r_b", "b", "0", 1.0)]
    group = Section("shaper", "", tuple(grounded))
    found = lint(Circuit("t", (), (group,), (), Transient(1e-9, 1e-6), ()))
    assert [f.name for f in found if f.kind == "no_dc_path"] == []
