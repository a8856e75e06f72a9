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

from oscc.arrays import ComplexArray, IntArray
from oscc_sims.compiled import compiled
from oscc_sims.segments import Drive, Lanes

TWO_PI = 2.0 * math.pi
ROUNDING = 1e-15  # a few units in the last place of a voltage of order one volt
MOST_STEPS = 100_000
NO_CROSSING, NOT_FOUND = -1.0, -2.0

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
    piece: tuple[float, float, float, float],
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
    begin, transient, settled, rate = piece
    bend = 0.0
    scale = abs(settled) + abs(target) + abs(transient)
    for n in range(response.size):
        bend += (n + 1) * (n + 1) * abs(response[n])
        scale += abs(response[n])
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
def _dwell(lane: int, drive: Drive, out: Lanes) -> int:
    """Follow one lane to the end of the dwell; evaluations of the voltage."""
    response = drive.response[:, :, lane].copy()
    state = out.state[lane]
    begin = 0.0
    gone = 0
    steps = 0
    ends = False
    out.ups[lane] = 0
    while not ends:
        h = response[state]
        settled, rate, target = drive.cell[:, state, lane]
        before = out.v[lane]
        transient = before - settled - _driven(begin, h)[0]
        piece = (begin, transient, settled, rate)
        left = TWO_PI * (drive.periods - gone) - begin
        x, used = _first_crossing(piece, target, 2.0 * state - 1.0, h, left)
        steps += used
        if x == NOT_FOUND:
            out.ups[lane] = -1
            return steps
        ends = x == NO_CROSSING
        if ends:
            x = left
            wave = _driven(begin + x, h)[0]
            out.v[lane] = settled + wave + transient * math.exp(-rate * x)
        else:
            out.v[lane] = target
            out.ups[lane] += state
            out.state[lane] = 1 - state
        if out.energy.shape[1] > 0:
            _add_energy(lane, piece, (state, before, x), drive, out)
        state = out.state[lane]
        begin += x
        while begin >= TWO_PI and not ends:
            begin -= TWO_PI
            gone += 1
    return steps


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
def _integrals(
    piece: tuple[float, float, float, float],
    length: float,
    response: ComplexArray,
    current: ComplexArray,
) -> tuple[float, float, float]:
    """Integrals of V, V^2 and V I over a segment in base phase, each on its own."""
    begin, transient, settled, rate = piece
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
    return mean, square, work


@compiled
def _add_energy(
    lane: int,
    piece: tuple[float, float, float, float],
    segment: tuple[int, float, float],
    drive: Drive,
    out: Lanes,
) -> None:
    """Add the energies of one segment: its state, first voltage and length."""
    state, v, length = segment
    omega, supply, series, capacity = drive.constants[lane, :4]
    mean, square, work = _integrals(
        piece, length, drive.response[state, :, lane], drive.current[lane]
    )
    energy = out.energy[lane]
    energy[SUPPLY] += supply * (supply * length - mean) / series / omega
    energy[SERIES] += (
        (supply * supply * length - 2.0 * supply * mean + square) / series / omega
    )
    energy[DEVICE] += square / drive.constants[lane, 4 + state] / omega
    energy[CAPACITOR] += 0.5 * capacity * (out.v[lane] ** 2 - v**2)
    energy[INJECTED] += work / omega


@compiled
def run_scalar(lanes: IntArray, drive: Drive, out: Lanes) -> int:
    """Run one dwell of some lanes.

    Args:
        lanes: Which lanes to run, shape (L,).
        drive: What is run.
        out: The starts; the ends are written over them.

    Returns:
        Evaluations of the voltage in all.
    """
    steps = 0
    for lane in lanes:
        steps += _dwell(lane, drive, out)
    return steps
