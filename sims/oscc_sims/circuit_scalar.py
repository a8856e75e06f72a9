"""Safe scalar kernel of the circuit engine: one target, event by event.

Between two switching events the node is known in closed form,
    V(x) = v_ss + sum_n Re(h_n e^{i n x}) + D e^{-r (x - x_0)},
with x = omega t, h_n the response of the state to the injected harmonic n, v_ss its
settled level, direct current included, and r = 1 / (omega tau). The next event is found
by steps that a bound on the curvature keeps from passing it, so no crossing is missed
whatever the drive. The kernel is the oracle and the fall-back of the lanes kernel, and
integrates the energies.
"""

from __future__ import annotations

import math

import numpy as np

from oscc.arrays import ComplexArray, FloatArray, IntArray
from oscc_sims.compiled import compiled

TWO_PI = 2.0 * math.pi
ROUNDING = 1e-15  # a few units in the last place of a voltage of order one volt
MOST_STEPS = 100_000
NO_CROSSING, NOT_FOUND = -1.0, -2.0
METALLIC, INSULATING = 0, 1

SUPPLY, SERIES, DEVICE, CAPACITOR, INJECTED = 0, 1, 2, 3, 4
"""Columns of the energies: what is integrated over the dwell."""


@compiled
def _driven(x: float, response: ComplexArray) -> tuple[float, float]:
    """Driven part of the voltage at base phase x, with its slope."""
    turn = complex(math.cos(x), math.sin(x))
    power = complex(1.0, 0.0)
    value = 0.0
    slope = 0.0
    for n in range(response.size):
        power *= turn
        wave = response[n] * power
        value += wave.real
        slope -= (n + 1) * wave.imag
    return value, slope


@compiled
def _first_crossing(
    begin: float,
    transient: float,
    settled: float,
    rate: float,
    target: float,
    sign: float,
    response: ComplexArray,
    longest: float,
) -> tuple[float, int]:
    """Length of the segment and the number of evaluations.

    f(x) = sign (V(begin + x) - target) starts below zero. Its curvature ahead of x is
    at most sum n^2 |h_n| + max(0, sign D r^2 e^{-r x}), so the first root of the
    parabola with that curvature does not lie beyond the first root of f.
    """
    bend = 0.0
    scale = abs(settled) + abs(target) + abs(transient)
    for n in range(response.size):
        size = abs(response[n])
        bend += (n + 1) * (n + 1) * size
        scale += size
    x = 0.0
    for step in range(MOST_STEPS):
        wave, slope = _driven(begin + x, response)
        decay = transient * math.exp(-rate * x)
        f = sign * (settled + wave + decay - target)
        f1 = sign * (slope - rate * decay)
        if f >= -ROUNDING * scale:
            if f1 > 0.0:
                x = max(x - f / f1, 0.0)
            return (x, step) if x <= longest else (NO_CROSSING, step)
        curvature = bend + max(0.0, sign * decay * rate * rate)
        root = math.sqrt(f1 * f1 - 2.0 * curvature * f)
        ahead = -2.0 * f / (f1 + root) if f1 > 0.0 else (root - f1) / curvature
        x += ahead
        if x > longest:
            return NO_CROSSING, step
        if ahead <= 1e-16 * x:
            return x, step
    return NOT_FOUND, MOST_STEPS


@compiled
def _dwell(
    start: tuple[float, int],
    periods: int,
    cell: tuple[FloatArray, FloatArray, FloatArray],
    response: ComplexArray,
    current: ComplexArray,
    constants: FloatArray,
    energy: FloatArray,
    events: FloatArray,
) -> tuple[float, int, int, int]:
    """End voltage, end state, upward crossings (-1 if lost), evaluations."""
    v, state = start
    settled, rate, target = cell
    begin = 0.0
    gone = 0
    ups = 0
    hits = 0
    steps = 0
    while True:
        h = response[state]
        sign = 1.0 if state == INSULATING else -1.0
        wave, _ = _driven(begin, h)
        transient = v - settled[state] - wave
        left = TWO_PI * (periods - gone) - begin
        x, used = _first_crossing(
            begin, transient, settled[state], rate[state], target[state], sign, h, left
        )
        steps += used
        if x == NOT_FOUND:
            return v, state, -1, steps
        ends = x == NO_CROSSING
        if ends:
            x = left
        before = v
        if ends:
            wave, _ = _driven(begin + x, h)
            v = settled[state] + wave + transient * math.exp(-rate[state] * x)
        else:
            v = target[state]
        if energy.size > 0:
            _add_energy(
                (begin, x, transient, settled[state], rate[state]),
                (before, v),
                h,
                current,
                constants,
                state,
                energy,
            )
        if ends:
            return v, state, ups, steps
        begin += x
        if hits < events.size:
            events[hits] = begin + TWO_PI * gone
            hits += 1
        ups += state
        state = 1 - state
        while begin >= TWO_PI:
            begin -= TWO_PI
            gone += 1


@compiled
def _between(order: int, begin: float, end: float) -> complex:
    """Integral of e^{i order x} from begin to end."""
    if order == 0:
        return complex(end - begin, 0.0)
    middle = 0.5 * order * (begin + end)
    size = 2.0 * math.sin(0.5 * order * (end - begin)) / order
    return complex(size * math.cos(middle), size * math.sin(middle))


@compiled
def _fading(order: int, begin: float, length: float, rate: float) -> complex:
    """Integral of e^{i order (begin + y)} e^{-rate y} for y from 0 to length."""
    fade = math.exp(-rate * length)
    last = order * (begin + length)
    first = order * begin
    top = complex(
        fade * math.cos(last) - math.cos(first), fade * math.sin(last) - math.sin(first)
    )
    return top / complex(-rate, float(order))


@compiled
def _products(
    left: ComplexArray, right: ComplexArray, begin: float, end: float
) -> float:
    """Integral of the product of two sums Re(a_n e^{i n x}), n = 1, 2, ..."""
    total = 0.0
    for n in range(left.size):
        for m in range(right.size):
            rising = left[n] * right[m] * _between(n + m + 2, begin, end)
            steady = left[n] * right[m].conjugate() * _between(n - m, begin, end)
            total += 0.5 * (rising.real + steady.real)
    return total


@compiled
def _add_energy(
    piece: tuple[float, float, float, float, float],
    voltages: tuple[float, float],
    response: ComplexArray,
    current: ComplexArray,
    constants: FloatArray,
    state: int,
    energy: FloatArray,
) -> None:
    """Add the energies of one segment, each integral taken on its own."""
    begin, length, transient, settled, rate = piece
    omega, supply, series, capacity = constants[:4]
    end = begin + length
    direct = current[0].real
    fade = -math.expm1(-rate * length) / rate
    waves = 0.0
    waves_fading = 0.0
    flow = direct * length
    flow_fading = direct * fade
    for n in range(response.size):
        plain = _between(n + 1, begin, end)
        fading = _fading(n + 1, begin, length, rate)
        waves += (response[n] * plain).real
        waves_fading += (response[n] * fading).real
        flow += (current[n + 1] * plain).real
        flow_fading += (current[n + 1] * fading).real
    mean = settled * length + waves + transient * fade
    square = (
        settled * settled * length
        + 2.0 * settled * (waves + transient * fade)
        - transient * transient * math.expm1(-2.0 * rate * length) / (2.0 * rate)
        + 2.0 * transient * waves_fading
        + _products(response, response, begin, end)
    )
    work = (
        settled * flow
        + direct * waves
        + transient * flow_fading
        + _products(response, current[1:], begin, end)
    )
    energy[SUPPLY] += supply * (supply * length - mean) / series / omega
    energy[SERIES] += (
        (supply * supply * length - 2.0 * supply * mean + square) / series / omega
    )
    energy[DEVICE] += square / constants[4 + state] / omega
    energy[CAPACITOR] += 0.5 * capacity * (voltages[1] ** 2 - voltages[0] ** 2)
    energy[INJECTED] += work / omega


@compiled
def run_scalar(
    lanes: IntArray,
    periods: int,
    cell: FloatArray,
    response: ComplexArray,
    current: ComplexArray,
    constants: FloatArray,
    v: FloatArray,
    state: IntArray,
    ups: IntArray,
    energy: FloatArray,
) -> int:
    """Run one dwell of some lanes; v and state hold the start, then the end.

    Args:
        lanes: Which lanes to run, shape (L,).
        periods: Length of the dwell in carrier periods.
        cell: Settled level, rate and end threshold by state, shape (3, 2, M).
        response: Phasors h_n by state, shape (2, N, M).
        current: Phasors I_n with the direct current first, shape (M, N+1).
        constants: omega, Vdd, R_series, C, R_met, R_ins of each lane, shape (M, 6).
        v: Node voltage, shape (M,).
        state: State, shape (M,).
        ups: Upward crossings of each lane, set; -1 where the kernel gave up.
        energy: Added to, shape (M, 5); or (M, 0), which leaves the energies out.

    Returns:
        Evaluations of the voltage in all.
    """
    steps = 0
    no_events = np.empty(0)
    for lane in lanes:
        settled = cell[0, :, lane].copy()
        rate = cell[1, :, lane].copy()
        target = cell[2, :, lane].copy()
        v[lane], state[lane], ups[lane], used = _dwell(
            (v[lane], state[lane]),
            periods,
            (settled, rate, target),
            response[:, :, lane].copy(),
            current[lane],
            constants[lane],
            energy[lane],
            no_events,
        )
        steps += used
    return steps


@compiled
def run_events(
    lane: int,
    periods: int,
    cell: FloatArray,
    response: ComplexArray,
    v: float,
    state: int,
    events: FloatArray,
) -> int:
    """Fill the base phases of the switching events of one lane; return how many."""
    settled = cell[0, :, lane].copy()
    rate = cell[1, :, lane].copy()
    target = cell[2, :, lane].copy()
    nothing = np.empty(0)
    events[:] = np.inf
    _dwell(
        (v, state),
        periods,
        (settled, rate, target),
        response[:, :, lane].copy(),
        np.zeros(1, dtype=np.complex128),
        nothing,
        nothing,
        events,
    )
    return int(np.isfinite(events).sum())
