"""The exact circuit engine against an independent integrator, kernel by kernel."""

import dataclasses

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

from oscc.device import load_card
from oscc.device.coupler import injection_A, injection_ratio
from oscc.device.cycle_energy import energy_per_period_J
from oscc.device.piecewise import omega, period_s, segments
from oscc.device.ppv import slowest_current_A
from oscc.errors import RequestError
from oscc.seeds import stream
from oscc_sims.circuit_dwell import ENERGY_PARTS, run_dwell

CARD_6K, CARD_20K = load_card("vo2-two-state-6k"), load_card("vo2-two-state-20k")
TURN = 2 * np.pi


def _follow(card, current, start, end):
    """Voltage with four energies [uJ], state, upward crossings: DOP853 with events.

    Written from the node equation alone; `start` is (values, state), the dwell runs
    from base phase 0 to `end` (scipy finds events to an absolute 1e-15, so not in
    seconds).
    """
    resistance = (card.r_met_ohm, card.r_ins_ohm)
    target = (card.v_mit_V, card.v_imt_V)
    orders, base = np.arange(current.size), omega(card)
    (y, state), x, ups = start, 0.0, 0
    while x < end:

        def slope(x, y, state=state):
            inject = np.real(current * np.exp(1j * orders * x)).sum()
            drawn = (card.vdd_V - y[0]) / card.r_series_ohm
            taken = y[0] / resistance[state]
            powers = card.vdd_V * drawn, drawn**2 * card.r_series_ohm, y[0] * taken
            return [
                (drawn - taken + inject) / (card.c_F * base),
                *(1e6 * power / base for power in powers),
                1e6 * y[0] * inject / base,
            ]

        def event(_, y, state=state):
            return y[0] - target[state]

        event.terminal, event.direction = True, (-1, 1)[state]
        seen = solve_ivp(
            slope,
            (x, end),
            y,
            method="DOP853",
            rtol=1e-12,
            atol=1e-14,
            events=event,
            max_step=TURN / 60,
        )
        x, y = seen.t[-1], seen.y[:, -1].copy()
        if seen.status == 1:
            ups += state
            y[0], state = target[state], 1 - state
    return y, state, ups


def _time_to_crossing(card, v, state):
    """Time of the free cell to its next upward crossing, as an integral over V."""
    resistance = (card.r_met_ohm, card.r_ins_ohm)

    def per_volt(x, state):
        return card.c_F / ((card.vdd_V - x) / card.r_series_ohm - x / resistance[state])

    total = 0.0
    for k in range(state, 2):
        goal = (card.v_mit_V, card.v_imt_V)[k]
        total += quad(per_volt, v, goal, args=(k,), epsabs=0, epsrel=1e-12)[0]
        v = goal
    return total


def _oracle(card, current, phi0, periods):
    """Lead, unwrapped, with supply, series, device and injected energy [J]."""
    turns = np.floor(phi0 / TURN)
    rest = np.zeros(5)
    rest[0] = card.v_imt_V
    silent = np.zeros(1, dtype=complex)
    y, state, _ = _follow(card, silent, (rest, 0), phi0 - TURN * turns)
    y[1:] = 0.0
    y, state, ups = _follow(card, current, (y, state), periods * TURN)
    ahead = TURN - omega(card) * _time_to_crossing(card, y[0], state)
    return TURN * (turns + ups - periods) + ahead, y[1:] * 1e-6


def _random_drives(card, lanes, periods, ratio, *, harmonics=(1, 2), seed=0):
    """Injection of many lanes with peaks up to a ratio of the limit, start phases."""
    rng = stream(seed, "circuit drives")
    shape = (lanes, len(harmonics))
    drive = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    current = injection_A(card, drive, harmonics, periods)
    scale = ratio * rng.uniform(0.05, 1.0, lanes) / injection_ratio(card, current)
    return current * scale[:, None], rng.uniform(-20.0, 20.0, lanes)


CASES = [
    # card, drive of harmonics 1 and 2, start, periods: s up to 12, gains of both signs
    (CARD_6K, (1.5 + 0.2j, 0.3j), 0.7, 6),
    (CARD_6K, (-12.0 + 0.1j, 2.0), -5.1, 20),
    (CARD_6K, (4.0j, -0.8), 14.0, 8),
    (CARD_20K, (-1.2 + 0.9j, 0.1), 6.2, 6),
    (CARD_20K, (3.0 - 1.0j, 0.4j), 3.0, 12),
]


@pytest.mark.parametrize("kernel", ["lanes", "scalar"])
@pytest.mark.parametrize(("card", "drive", "phi0", "periods"), CASES)
def test_lead_and_energies_against_an_integrator(card, drive, phi0, periods, kernel):
    """Tolerance: 1e-11 of a period, which is about the rest of the integrator."""
    current = injection_A(card, np.array([drive], complex), [1, 2], periods)
    seen = run_dwell(
        card, current, np.array([phi0]), periods, energy=True, kernel=kernel
    )
    lead, energies = _oracle(card, current[0], phi0, periods)
    assert seen.lead_rad[0] == pytest.approx(lead, abs=1e-11 * TURN)
    found = dict(zip(ENERGY_PARTS, seen.energy_J[0], strict=True))
    names = ("supply_J", "r_series_J", "vo2_J", "injected_J")
    wanted = dict(zip(names, energies, strict=True))
    scale = wanted["supply_J"]
    for name in names:
        assert found[name] == pytest.approx(wanted[name], abs=1e-9 * scale)


def test_direct_current_and_higher_harmonics_against_an_integrator():
    """As the corrected scheme injects: order 0, and orders up to 4."""
    unit = 0.1 * slowest_current_A(CARD_6K)
    current = unit * np.array([0.5, 1 + 1j, -0.6j, 0.4, 0.8 - 0.2j])
    seen = run_dwell(CARD_6K, current[None], np.array([2.0]), 5)
    lead, _ = _oracle(CARD_6K, current, 2.0, 5)
    assert seen.lead_rad[0] == pytest.approx(lead, abs=1e-11 * TURN)


def test_node_that_turns_back_falls_to_the_scalar_kernel():
    """Injection above the node current: V is not monotone, no crossing is jumped."""
    unit = slowest_current_A(CARD_6K)
    current = np.array([[0, 0.2 * unit], [0, 1.9 * unit], [0, 0.3 * unit]], complex)
    current = np.pad(current, ((0, 0), (0, 4)))
    current[1, 5] = 2.5 * unit
    phi0 = np.array([0.1, 0.2, 0.3])
    seen = run_dwell(CARD_6K, current, phi0, 4)
    assert seen.fallback.tolist() == [False, True, False]
    alone = run_dwell(CARD_6K, current, phi0, 4, kernel="scalar")
    assert seen.lead_rad[1] == alone.lead_rad[1]
    lead, _ = _oracle(CARD_6K, current[1], 0.2, 4)
    assert seen.lead_rad[1] == pytest.approx(lead, abs=1e-11 * TURN)


@pytest.mark.parametrize("card", [CARD_6K, CARD_20K], ids=["6k", "20k"])
@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.8, 0.97])
def test_lanes_equal_scalar_lane_by_lane(card, ratio):
    """Rounding of 24 events, stretched by the flow (40) and by slow crossings."""
    current, phi0 = _random_drives(card, 517, 12, ratio, harmonics=(1, 2, 3))
    lanes = run_dwell(card, current, phi0, 12)
    scalar = run_dwell(card, current, phi0, 12, kernel="scalar")
    assert lanes.crossings.tolist() == scalar.crossings.tolist()
    if ratio <= 0.8:  # what a scheme allows needs no fall-back
        assert not lanes.fallback.any()
    # near the limit the slope at a crossing falls to 1 - ratio of its free value
    tolerance = 24 * 4 * np.finfo(float).eps * 40 / (1.0 - ratio)
    assert np.abs(lanes.lead_rad - scalar.lead_rad).max() < tolerance


def test_threads_and_blocks_do_not_change_a_bit():
    """A lane count that no block or chunk size divides."""
    current, phi0 = _random_drives(CARD_6K, 2311, 5, 0.7)
    one = run_dwell(CARD_6K, current, phi0, 5, threads=1, energy=True)
    for threads in (2, 3):
        more = run_dwell(CARD_6K, current, phi0, 5, threads=threads, energy=True)
        assert np.array_equal(one.lead_rad, more.lead_rad)
        assert np.array_equal(one.energy_J, more.energy_J)


def test_a_lane_does_not_depend_on_its_neighbours():
    current, phi0 = _random_drives(CARD_6K, 700, 5, 0.7)
    every = run_dwell(CARD_6K, current, phi0, 5)
    for some in (np.array([3]), np.arange(131, 600, 7), np.arange(699, -1, -1)):
        few = run_dwell(CARD_6K, current[some], phi0[some], 5)
        assert np.array_equal(few.lead_rad, every.lead_rad[some])


def test_energies_cost_no_bit_of_the_phase():
    current, phi0 = _random_drives(CARD_6K, 300, 5, 0.7)
    plain = run_dwell(CARD_6K, current, phi0, 5)
    full = run_dwell(CARD_6K, current, phi0, 5, energy=True)
    assert plain.energy_J is None
    assert np.array_equal(plain.lead_rad, full.lead_rad)


def test_energies_balance():
    """Supply plus injected work equals series, device and capacitor, to rounding."""
    current, phi0 = _random_drives(CARD_20K, 300, 9, 0.8, harmonics=(1, 3))
    current[:, 0] = 0.05 * slowest_current_A(CARD_20K)
    energy = run_dwell(CARD_20K, current, phi0, 9, energy=True).energy_J
    supply, series, device, store, injected = energy.T
    balance = supply + injected - series - device - store
    # some forty segments with a dozen terms each
    assert np.abs(balance).max() < 500 * np.finfo(float).eps * supply.max()


@pytest.mark.parametrize("card", [CARD_6K, CARD_20K], ids=["6k", "20k"])
def test_free_cell_keeps_its_phase_and_its_energy(card):
    """No current: whole turns kept, energies of P free periods."""
    edge = omega(card) * segments(card).length_s[0]
    phi0 = np.array([0.0, 1.0, edge, 6.28, -1e-18, -0.5, TURN, 40.0, -71.3, 1e4])
    seen = run_dwell(card, np.zeros((10, 3), complex), phi0, 7, energy=True)
    assert seen.lead_rad == pytest.approx(phi0, abs=2e-12)
    free = energy_per_period_J(card)
    supply, series, device, store, injected = seen.energy_J.T
    assert supply == pytest.approx(7 * free.supply_J, rel=1e-12)
    assert series == pytest.approx(7 * free.r_series_J, rel=1e-12)
    assert device == pytest.approx(7 * (free.vo2_met_J + free.vo2_ins_J), rel=1e-12)
    assert np.abs(store).max() < 1e-13 * free.supply_J
    assert not injected.any()


@pytest.mark.parametrize("kernel", ["lanes", "scalar"])
def test_a_cell_of_resistance_ratio_10_000_is_followed_to_the_end(kernel):
    """Case C17: switching is an event, however fast the metallic discharge is."""
    card = dataclasses.replace(CARD_6K, name="steep", r_ins_ohm=1e7, r_met_ohm=1e3)
    free = energy_per_period_J(card).supply_J
    current = injection_A(card, np.array([[2.0 + 1.0j, 0.4j]]), [1, 2], 12)
    phi0 = np.array([0.7])
    seen = run_dwell(card, current, phi0, 12, energy=True, kernel=kernel)
    lead, energies = _oracle(card, current[0], 0.7, 12)
    assert seen.lead_rad[0] == pytest.approx(lead, abs=1e-11 * TURN)
    assert seen.energy_J[0, 0] == pytest.approx(energies[0], rel=1e-9)
    assert seen.energy_J[0, 0] == pytest.approx(12 * free, rel=0.05)


@pytest.mark.parametrize("card", [CARD_6K, CARD_20K])
def test_energy_per_period_of_a_window_of_twice_the_length_is_the_same(card):
    """Case E6: within 1 %, over windows of N and 2 N periods after settling.

    A current held at one size and phase locks the cell; windows start where the cell
    stands after 60 periods.
    """
    drive = np.array([[1.5 + 0.2j, 0.3j]])
    current = injection_A(card, drive, [1, 2], 12)
    settled = run_dwell(card, current, np.array([0.7]), 60).lead_rad
    once, twice = (
        run_dwell(card, current, settled, periods, energy=True).energy_J[0, 0] / periods
        for periods in (12, 24)
    )
    assert twice == pytest.approx(once, rel=0.01)
    assert once == pytest.approx(energy_per_period_J(card).supply_J, rel=0.1)


def test_no_lanes():
    seen = run_dwell(CARD_6K, np.zeros((0, 2), complex), np.zeros(0), 3, energy=True)
    assert seen.lead_rad.shape == (0,)
    assert seen.energy_J.shape == (0, 5)


def test_no_harmonics():
    seen = run_dwell(CARD_6K, np.zeros((2, 1), complex), np.array([1.0, 4.0]), 3)
    assert seen.lead_rad == pytest.approx([1.0, 4.0], abs=1e-12)


@pytest.mark.parametrize("parameter", ["c_F", "v_imt_V", "r_met_ohm"])
def test_spread_is_the_frequency_of_the_other_card(parameter):
    """A free lane with its own value drifts by 2 pi P (f / f_card - 1)."""
    factors = np.array([0.97, 1.0, 1.02])
    values = getattr(CARD_6K, parameter) * factors
    phi0 = np.array([0.3, 2.0, 5.0])
    for kernel in ("lanes", "scalar"):
        seen = run_dwell(
            CARD_6K,
            np.zeros((3, 2), complex),
            phi0,
            9,
            spread={parameter: values},
            kernel=kernel,
        )
        for lane, value in enumerate(values):
            other = dataclasses.replace(CARD_6K, **{parameter: float(value)})
            drift = TURN * 9 * (period_s(CARD_6K) / period_s(other) - 1)
            assert seen.lead_rad[lane] - phi0[lane] == pytest.approx(drift, abs=1e-11)


def test_spread_of_nominal_values():
    """The nominal value given lane by lane is the nominal card, bit for bit."""
    current, phi0 = _random_drives(CARD_6K, 3, 4, 0.6)
    same = run_dwell(CARD_6K, current, phi0, 4)
    spread = {"r_series_ohm": np.full(3, CARD_6K.r_series_ohm)}
    assert np.array_equal(
        run_dwell(CARD_6K, current, phi0, 4, spread=spread).lead_rad, same.lead_rad
    )


def test_bad_spread():
    still = np.zeros((2, 2), complex)
    with pytest.raises(RequestError, match="Did you mean `c_F`"):
        run_dwell(CARD_6K, still, np.zeros(2), 1, spread={"c_f": np.ones(2)})
    with pytest.raises(RequestError, match="stop oscillating, first lane 1"):
        run_dwell(CARD_6K, still, np.zeros(2), 1, spread={"r_series_ohm": [6e3, 3e3]})


@pytest.mark.parametrize("periods", [0, -1, 1.5])
def test_dwell_must_be_whole_periods(periods):
    with pytest.raises(RequestError, match="whole number >= 1"):
        run_dwell(CARD_6K, np.zeros((1, 2), complex), np.zeros(1), periods)


def test_bad_arrays():
    with pytest.raises(RequestError, match="phi0_rad"):
        run_dwell(CARD_6K, np.zeros((1, 2), complex), np.array([np.nan]), 1)
    with pytest.raises(RequestError, match=r"phi0_rad` must have shape \(2 targets,\)"):
        run_dwell(CARD_6K, np.zeros((2, 2), complex), np.zeros(1), 1)
    with pytest.raises(RequestError, match="real in order 0"):
        run_dwell(CARD_6K, np.full((1, 1), 1e-6j), np.zeros(1), 1)
