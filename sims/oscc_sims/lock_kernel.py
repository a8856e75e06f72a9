"""Kernel of the lock circuit: one cell of two oscillators, event by event.

Between events every node voltage is a sum of exponentials (`lock_network`). The next
switching of each oscillator is found by Newton's method inside a bracket: the coupling
current stays below what could turn a node at its threshold (`lock_cell`), so each
state ends at the one root. The switching that comes first is taken; the other root,
less the time that has gone, is the start of the next search.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np

from oscc.arrays import ComplexArray, FloatArray, IntArray
from oscc_sims.compiled import compiled
from oscc_sims.lock_network import Network

TWO_PI = 2.0 * math.pi
MOST_STEPS = 200
NEAR = 1e-9  # a Newton step this short in base phase leaves an error of its square
LOST = -1.0
SUPPLY, SERIES, DEVICE, CAPACITOR, INJECTED = 0, 1, 2, 3, 4


Expansion: TypeAlias = tuple[ComplexArray, ComplexArray, FloatArray]
"""Amplitudes (6, modes), rates (modes,), levels (6,) of one segment."""


class Track(NamedTuple):
    """What the kernel writes, cell by cell.

    Attributes:
        crossing: Upward crossings of both oscillators in base phase, (M, 2, N).
        ups: How many of them there are, shape (M, 2); -1 where a cell was lost.
        energy: Energies of both oscillators together until the end of the dwell, shape
            (M, 5) [J]; (M, 0) leaves them out.
        steps: Evaluations of a voltage, shape (M,).
    """

    crossing: FloatArray
    ups: IntArray
    energy: FloatArray
    steps: IntArray


@compiled
def _voltage(
    x: float, amplitude: ComplexArray, rate: ComplexArray
) -> tuple[float, float]:
    """Fading part of a voltage at base phase x, with its slope."""
    value = 0.0
    slope = 0.0
    for m in range(amplitude.size):
        fade = math.exp(rate[m].real * x)
        if rate[m].imag == 0.0:
            part = amplitude[m].real * fade
            value += part
            slope += part * rate[m].real
        else:
            angle = rate[m].imag * x
            wave = amplitude[m] * complex(math.cos(angle), math.sin(angle)) * fade
            value += wave.real
            slope += (wave * rate[m]).real
    return value, slope


@compiled
def _switching(
    goal: tuple[float, float, float],
    amplitude: ComplexArray,
    rate: ComplexArray,
) -> tuple[float, int]:
    """Base phase until a node reaches its threshold, with the evaluations used.

    f(x) = sign (V(x) - threshold) is below zero before the root and above it after.

    Args:
        goal: sign, threshold less the level, and where to begin.
    """
    sign, height, guess = goal
    low = 0.0
    high = math.inf
    x = max(guess, 0.0)
    for step in range(MOST_STEPS):
        value, slope = _voltage(x, amplitude, rate)
        f = sign * (value - height)
        slope *= sign
        if f < 0.0:
            low = x
        else:
            high = x
            if x == 0.0:  # both switch at once: this one is there already
                return 0.0, step
        ahead = x - f / slope if slope > 0.0 else math.inf
        if not (low <= ahead <= high) or ahead == math.inf:
            ahead = 0.5 * (low + high) if high < math.inf else 2.0 * x + 0.1
        if abs(ahead - x) <= NEAR:
            return ahead, step
        x = ahead
    return LOST, MOST_STEPS


@compiled
def _amplitudes(
    state: FloatArray, level: FloatArray, into: ComplexArray, out: ComplexArray
) -> ComplexArray:
    """Amplitude of every mode in every state, shape (6, modes)."""
    modes = out.shape[1]
    found = np.empty((6, modes), dtype=np.complex128)
    for m in range(modes):
        total = complex(0.0, 0.0)
        for j in range(6):
            total += into[m, j] * (state[j] - level[j])
        for j in range(6):
            found[j, m] = out[j, m] * total
    return found


@compiled
def _advance(
    x: float,
    amplitude: ComplexArray,
    rate: ComplexArray,
    level: FloatArray,
    state: FloatArray,
) -> None:
    """Write the states at base phase x."""
    for j in range(6):
        state[j] = level[j]
    for m in range(rate.size):
        angle = rate[m].imag * x
        fade = math.exp(rate[m].real * x)
        wave = complex(math.cos(angle), math.sin(angle)) * fade
        for j in range(6):
            state[j] += (amplitude[j, m] * wave).real


@compiled
def _integral(rate: complex, length: float) -> complex:
    """Integral of e^{rate x} from 0 to a length; no mode stands still."""
    fade = math.exp(rate.real * length)
    angle = rate.imag * length
    top = complex(fade * math.cos(angle) - 1.0, fade * math.sin(angle))
    return top / rate


@compiled
def _pair_integrals(rate: ComplexArray, length: float) -> ComplexArray:
    """Integrals of e^{(r_m + r_n) x} and e^{(r_m + conj r_n) x}, shape (2, m, n)."""
    found = np.empty((2, rate.size, rate.size), dtype=np.complex128)
    for m in range(rate.size):
        for n in range(rate.size):
            found[0, m, n] = _integral(rate[m] + rate[n], length)
            found[1, m, n] = _integral(rate[m] + rate[n].conjugate(), length)
    return found


@compiled
def _product(a: ComplexArray, b: ComplexArray, pairs: ComplexArray) -> float:
    """Integral of Re(sum a_m e^{r_m x}) Re(sum b_n e^{r_n x}) over a segment."""
    total = 0.0
    for m in range(a.size):
        for n in range(a.size):
            rising = a[m] * b[n] * pairs[0, m, n]
            steady = a[m] * b[n].conjugate() * pairs[1, m, n]
            total += 0.5 * (rising.real + steady.real)
    return total


@compiled
def _add_energy(
    pair: int,
    length: float,
    expansion: Expansion,
    constants: FloatArray,
    energy: FloatArray,
) -> None:
    """Add what flows in one segment; the capacitors are left to the end."""
    amplitude, rate, level = expansion
    omega, supply, series = constants[0], constants[1], constants[2]
    pairs = _pair_integrals(rate, length)
    fading = np.zeros(6)
    for m in range(rate.size):
        mean = _integral(rate[m], length)
        for j in range(6):
            fading[j] += (amplitude[j, m] * mean).real
    for one in range(2):
        state = pair >> 1 if one == 0 else pair & 1
        tank = 4 - 2 * one
        v, u = level[one], level[tank]
        mean = v * length + fading[one]
        square = _product(amplitude[one], amplitude[one], pairs)
        square += v * (2.0 * mean - v * length)
        work = _product(amplitude[one], amplitude[tank], pairs)
        work += u * mean + v * fading[tank]
        energy[SUPPLY] += supply * (supply * length - mean) / series / omega
        lost = supply * supply * length - 2.0 * supply * mean + square
        energy[SERIES] += lost / series / omega
        energy[DEVICE] += square / constants[3 + state] / omega
        energy[INJECTED] += constants[5] * work / omega


@compiled
def _stored(cell: int, state: FloatArray, net: Network) -> float:
    """Energy in both capacitors."""
    first = net.capacity[cell, 0] * state[0] ** 2
    both: float = first + net.capacity[cell, 1] * state[1] ** 2
    return 0.5 * both


@compiled
def _expand(cell: int, pair: int, state: FloatArray, net: Network) -> Expansion:
    """Expansion of a segment that begins at a state."""
    modes = net.modes[cell, pair]
    into, out = net.into[cell, pair, :modes], net.out[cell, pair, :, :modes]
    level = net.level[cell, pair]
    return _amplitudes(state, level, into, out), net.rate[cell, pair, :modes], level


@compiled
def _roots(
    expansion: Expansion,
    device: IntArray,
    last: FloatArray,
    guess: FloatArray,
    root: FloatArray,
) -> int:
    """Write when each oscillator would switch; evaluations used."""
    amplitude, rate, level = expansion
    steps = 0
    for one in range(2):
        height = last[device[one]] - level[one]
        goal = (2.0 * device[one] - 1.0, height, guess[one])
        root[one], used = _switching(goal, amplitude[one], rate)
        steps += used + 1
    return steps


@compiled
def _account(
    cell: int,
    span: tuple[int, float, float],
    expansion: Expansion,
    net: Network,
    energy: FloatArray,
) -> None:
    """Energies of a segment, cut at the end of the dwell.

    Args:
        span: Device states, length of the segment, what is left of the dwell.
    """
    pair, length, left = span
    _add_energy(pair, min(length, left), expansion, net.constants, energy)
    if length > left:
        amplitude, rate, level = expansion
        state = np.empty(6)
        _advance(left, amplitude, rate, level, state)
        energy[CAPACITOR] += _stored(cell, state, net)


@compiled
def _switch(
    one: int, now: float, device: IntArray, usual: FloatArray, since: FloatArray
) -> float:
    """Turn the state of an oscillator over; how long the new state took last time."""
    usual[one, device[one]] = now - since[one]
    since[one] = now
    device[one] = 1 - device[one]
    return usual[one, device[one]]  # type: ignore[no-any-return]


@compiled
def _follow(cell: int, start_V: float, end: float, net: Network, track: Track) -> bool:
    """Follow a cell until both oscillators have crossed after the end of the dwell."""
    state = np.zeros(6)
    state[:2] = start_V
    device, root = np.ones(2, dtype=np.int64), np.empty(2)
    usual, since = net.length[cell].copy(), np.zeros(2)
    guess, last = usual[:, 1].copy(), np.zeros(2)
    begin = 0.0
    energies = track.energy.shape[1] > 0
    if energies:
        track.energy[cell, CAPACITOR] -= _stored(cell, state, net)
    while last[0] <= end or last[1] <= end:
        pair = 2 * device[0] + device[1]
        expansion = _expand(cell, pair, state, net)
        track.steps[cell] += _roots(expansion, device, net.last, guess, root)
        one = 1 if root[1] < root[0] else 0
        x = root[one]
        if root.min() == LOST:
            return False
        if energies and begin <= end:
            span = (pair, x, end - begin)
            _account(cell, span, expansion, net, track.energy[cell])
        _advance(x, expansion[0], expansion[1], expansion[2], state)
        state[one] = net.last[device[one]]
        begin += x
        if device[one] == 1:
            place = track.ups[cell, one]
            if place == track.crossing.shape[2]:
                return False
            track.crossing[cell, one, place] = begin
            track.ups[cell, one] += 1
            last[one] = begin
        guess[one] = _switch(one, begin, device, usual, since)
        guess[1 - one] = root[1 - one] - x
    return True


@compiled
def run_cells(
    cells: IntArray, start_V: float, end: float, net: Network, track: Track
) -> None:
    """Run some cells from rest, both nodes insulating at a voltage.

    Args:
        cells: Which cells to run, shape (L,).
        start_V: Voltage of both nodes at the start.
        end: End of the dwell in base phase.
        net: What is run.
        track: What is written.
    """
    for cell in cells:
        if not _follow(cell, start_V, end, net, track):
            track.ups[cell, 0] = -1
