"""Lock-step kernel of the circuit engine: blocks of targets, vectorised over lanes.

Every lane charges and discharges in turn, so a block advances all its lanes by one
segment at a time: a few steps of Halley's method, started at the lane's last segment in
the same state, find the switching event. Right where the node is monotone (then the
threshold is passed once, on the whole real line); the caller tests that, and gives
lanes that fail or do not converge to the scalar kernel.

A lane that has converged is frozen, blocks are always full: what a lane does depends on
that lane alone, whatever lanes share its block. The kernel has its own sine, cosine
and exponential, without branches. See `circuit_scalar` for the equations.
"""

from __future__ import annotations

import math

import numpy as np

from oscc.arrays import ComplexArray, FloatArray, IntArray
from oscc_sims.compiled import compiled, inlined
from oscc_sims.segments import Drive, Lanes

BLOCK = 128
TWO_PI = 2.0 * math.pi
MOST_STEPS = 12
CLOSE = 2e-6  # a third-order method: the next step is of order 1e-17
LONGEST = 40.0
MAGIC = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to a whole number

# Rows of a block's buffer, BLOCK numbers each. One buffer with constant offsets tells
# the compiler that no two rows overlap, so that it vectorises every loop. Rows from
# X_NOW on come in pairs: the state that the pass is in, then the other one.
BEGIN, VOLT, COS, SIN, FADE, SHIFT, LEFT = (BLOCK * row for row in range(7))
LIVE, OPEN, STATE, GONE, UPS, FIRST = (BLOCK * row for row in range(7, 13))
POWER_RE, POWER_IM, WAVE, SLOPE, BEND = (BLOCK * row for row in range(13, 18))
X_NOW, X_NEXT, FREE_NOW, FREE_NEXT = (BLOCK * row for row in range(18, 22))
LEVEL_NOW, LEVEL_NEXT, RATE_NOW, RATE_NEXT = (BLOCK * row for row in range(22, 26))
END_NOW, END_NEXT = (BLOCK * row for row in range(26, 28))
ROWS = 28


@inlined
def _cos_sin(x: float) -> tuple[float, float]:
    """Cosine and sine for |x| below 100, error a few units of the last place."""
    shifted = x * 0.6366197723675814 + MAGIC
    quarter = shifted - MAGIC
    # pi/2 in three parts (Cody and Waite)
    r = x - quarter * 1.5707963267341256
    r = r - quarter * 6.077100506303966e-11
    r = r - quarter * 2.0222662487959506e-21
    z = r * r
    s = 1.58962301576546568060e-10
    s = s * z - 2.50507477628578072866e-8
    s = s * z + 2.75573136213857245213e-6
    s = s * z - 1.98412698295895385996e-4
    s = s * z + 8.33333333332211858878e-3
    s = s * z - 1.66666666666666307295e-1
    s = r + r * z * s
    c = -1.13585365213876817300e-11
    c = c * z + 2.08757008419747316778e-9
    c = c * z - 2.75573141792967388112e-7
    c = c * z + 2.48015872888517045348e-5
    c = c * z - 1.38888888888730564116e-3
    c = c * z + 4.16666666666665929218e-2
    c = 1.0 - 0.5 * z + z * z * c
    # the low bits of the shifted number hold the quarter turn
    k = np.float64(shifted).view(np.int64)
    odd = (k & 1) == 1
    sine = c if odd else s
    cosine = s if odd else c
    sine = -sine if (k & 2) == 2 else sine
    cosine = -cosine if ((k + 1) & 2) == 2 else cosine
    return cosine, sine


@inlined
def _exp(y: float) -> float:
    """Exponential for y in [-700, 0]: Taylor series of degree 12 on |r| < ln 2 / 2."""
    shifted = y * 1.4426950408889634 + MAGIC
    whole = shifted - MAGIC
    r = y - whole * 0.693147180369123816490
    r = r - whole * 1.90821492927058770002e-10
    p = 2.08767569878680989792e-9
    p = p * r + 2.50521083854417187751e-8
    p = p * r + 2.75573192239858906526e-7
    p = p * r + 2.75573192239858906526e-6
    p = p * r + 2.48015873015873015873e-5
    p = p * r + 1.98412698412698412698e-4
    p = p * r + 1.38888888888888888889e-3
    p = p * r + 8.33333333333333333333e-3
    p = p * r + 4.16666666666666666667e-2
    p = p * r + 1.66666666666666666667e-1
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    bits = (np.float64(shifted).view(np.int64) + 1023) << 52
    return p * np.int64(bits).view(np.float64)


@compiled
def _waves(row: FloatArray, re: FloatArray, im: FloatArray) -> None:
    """Driven part of the voltage with two derivatives, at the angles of COS and SIN.

    Harmonic by harmonic, each a loop over lanes; POWER holds e^{i n x}.
    """
    for i in range(BLOCK):
        c = row[COS + i]
        s = row[SIN + i]
        wave = re[i] * c - im[i] * s
        row[POWER_RE + i] = c
        row[POWER_IM + i] = s
        row[WAVE + i] = wave
        row[SLOPE + i] = -(re[i] * s + im[i] * c)
        row[BEND + i] = -wave
    for n in range(1, re.size // BLOCK):
        order = n + 1.0
        at = n * BLOCK
        for i in range(BLOCK):
            c = row[POWER_RE + i] * row[COS + i] - row[POWER_IM + i] * row[SIN + i]
            s = row[POWER_RE + i] * row[SIN + i] + row[POWER_IM + i] * row[COS + i]
            wave = re[at + i] * c - im[at + i] * s
            row[POWER_RE + i] = c
            row[POWER_IM + i] = s
            row[WAVE + i] += wave
            row[SLOPE + i] -= order * (re[at + i] * s + im[at + i] * c)
            row[BEND + i] -= order * order * wave


@compiled
def _open_segment(k: int, row: FloatArray) -> None:
    """Take up the lanes that are in state k, with the transient they start from."""
    for i in range(BLOCK):
        open_ = row[LIVE + i] if row[STATE + i] == k else 0.0
        fade = row[VOLT + i] - row[LEVEL_NOW + i] - row[WAVE + i]
        row[FADE + i] = fade if open_ > 0.0 else row[FADE + i]
        row[OPEN + i] = open_


@compiled
def _turn(row: FloatArray) -> None:
    """Angle of the carrier at the present guess of every open lane."""
    for i in range(BLOCK):
        c, s = _cos_sin(row[BEGIN + i] + row[X_NOW + i])
        row[COS + i] = c if row[OPEN + i] > 0.0 else row[COS + i]
        row[SIN + i] = s if row[OPEN + i] > 0.0 else row[SIN + i]


@compiled
def _step(row: FloatArray) -> int:
    """One step of Halley's method of every open lane; how many stay open."""
    for i in range(BLOCK):
        x = row[X_NOW + i]
        rate = row[RATE_NOW + i]
        fade = row[FADE + i] * _exp(-x * rate)
        f = row[LEVEL_NOW + i] + row[WAVE + i] + fade - row[END_NOW + i]
        f1 = row[SLOPE + i] - fade * rate
        f2 = row[BEND + i] + fade * rate * rate
        step = 2.0 * f * f1 / (2.0 * f1 * f1 - f * f2)
        moved = min(max(x - step, 0.0), LONGEST)
        open_ = row[OPEN + i]
        row[X_NOW + i] = moved if open_ > 0.0 else x
        row[SHIFT + i] = moved - x if open_ > 0.0 else row[SHIFT + i]
        # written so that a step that is not a number stays open
        row[OPEN + i] = 0.0 if abs(step) <= CLOSE else open_
    left = 0
    for i in range(BLOCK):
        left += 1 if row[OPEN + i] > 0.0 else 0
    return left


@compiled
def _close_segment(k: int, periods: int, row: FloatArray) -> int:
    """Pass the event, or end the dwell before it; how many lanes live on."""
    for i in range(BLOCK):
        x = row[X_NOW + i]
        begin = row[BEGIN + i]
        here = row[LIVE + i] if row[STATE + i] == k else 0.0
        left = TWO_PI * (periods - row[GONE + i]) - begin
        on = here if x <= left else 0.0
        row[LEFT + i] = left if here > on else row[LEFT + i]
        row[LIVE + i] = on if here > 0.0 else row[LIVE + i]
        ahead = begin + x
        over = 1.0 if ahead >= TWO_PI else 0.0
        row[BEGIN + i] = ahead - TWO_PI * over if on > 0.0 else begin
        row[GONE + i] += over if on > 0.0 else 0.0
        row[UPS + i] += k * on
        row[VOLT + i] = row[END_NOW + i] if on > 0.0 else row[VOLT + i]
        row[STATE + i] = 1.0 - k if on > 0.0 else row[STATE + i]
        # the last evaluation was a short shift away: turn its angle by that
        d = row[SHIFT + i]
        c = row[COS + i] * (1.0 - 0.5 * d * d) - row[SIN + i] * (d - d * d * d / 6.0)
        s = row[SIN + i] * (1.0 - 0.5 * d * d) + row[COS + i] * (d - d * d * d / 6.0)
        row[COS + i] = c if on > 0.0 else row[COS + i]
        row[SIN + i] = s if on > 0.0 else row[SIN + i]
        # a first segment is only the rest of one: no guess for the next
        guess = row[FREE_NOW + i] if row[FIRST + i] > 0.0 else x
        row[X_NOW + i] = guess if on > 0.0 else x
        row[FIRST + i] = 0.0 if here > 0.0 else row[FIRST + i]
    living = 0
    for i in range(BLOCK):
        living += 1 if row[LIVE + i] > 0.0 else 0
    return living


@compiled
def _swap(row: FloatArray) -> None:
    """Exchange the rows of the two states."""
    for pair in range(X_NOW, ROWS * BLOCK, 2 * BLOCK):
        for i in range(BLOCK):
            now = row[pair + i]
            row[pair + i] = row[pair + BLOCK + i]
            row[pair + BLOCK + i] = now


@compiled
def _advance(
    k: int, periods: int, row: FloatArray, re: FloatArray, im: FloatArray
) -> tuple[int, int]:
    """One segment of every lane: how many live on, evaluations."""
    _waves(row, re, im)
    _open_segment(k, row)
    unsettled = 1
    used = 0
    while unsettled > 0 and used < MOST_STEPS:
        _turn(row)
        _waves(row, re, im)
        unsettled = _step(row)
        used += 1
    if unsettled > 0:  # the scalar kernel takes the lanes that are still open
        for i in range(BLOCK):
            row[LIVE + i] = 0.0 if row[OPEN + i] > 0.0 else row[LIVE + i]
            row[UPS + i] = -math.inf if row[OPEN + i] > 0.0 else row[UPS + i]
    return _close_segment(k, periods, row), used


@compiled
def _load(
    lanes: IntArray, drive: Drive, out: Lanes, guess: FloatArray, row: FloatArray
) -> int:
    """Fill the rows of a block, short ones with copies; first state of the block."""
    first = 1
    for i in range(BLOCK):
        lane = lanes[min(i, lanes.size - 1)]
        s = out.state[lane]
        first = min(first, s)
        row[BEGIN + i] = 0.0
        row[VOLT + i] = out.v[lane]
        row[COS + i] = 1.0
        row[SIN + i] = 0.0
        row[FADE + i] = 0.0
        row[SHIFT + i] = 0.0
        row[LEFT + i] = 0.0
        row[LIVE + i] = 1.0
        row[STATE + i] = s
        row[GONE + i] = 0.0
        row[UPS + i] = 0.0
        row[FIRST + i] = 1.0
        for k in range(2):
            at = k * BLOCK + i
            row[FREE_NOW + at] = guess[k, lane]
            row[X_NOW + at] = guess[2, lane] if k == s else guess[k, lane]
            row[LEVEL_NOW + at] = drive.cell[0, k, lane]
            row[RATE_NOW + at] = drive.cell[1, k, lane]
            row[END_NOW + at] = drive.cell[2, k, lane]
    return first


@compiled
def _load_response(
    lanes: IntArray, response: ComplexArray, re: FloatArray, im: FloatArray
) -> None:
    """Copy the phasors of a block's lanes: state, harmonic, lane."""
    for k in range(2):
        for n in range(response.shape[1]):
            for i in range(BLOCK):
                lane = lanes[min(i, lanes.size - 1)]
                re[k, n * BLOCK + i] = response[k, n, lane].real
                im[k, n * BLOCK + i] = response[k, n, lane].imag


@compiled
def _store(
    lanes: IntArray, drive: Drive, re: FloatArray, row: FloatArray, out: Lanes
) -> None:
    """Voltage, state and upward crossings at the end of the dwell.

    The dwell ends a whole number of periods after its start, where e^{i n x} = 1.
    """
    for i in range(lanes.size):
        lane = lanes[i]
        s = int(row[STATE + i])
        wave = 0.0
        for n in range(re.shape[1] // BLOCK):
            wave += re[s, n * BLOCK + i]
        fade = row[FADE + i] * _exp(-row[LEFT + i] * drive.cell[1, s, lane])
        if row[UPS + i] < 0.0:
            out.ups[lane] = -1
        else:
            out.ups[lane] = int(row[UPS + i])
            out.v[lane] = drive.cell[0, s, lane] + wave + fade
            out.state[lane] = s


@compiled
def run_lanes(lanes: IntArray, drive: Drive, guess: FloatArray, out: Lanes) -> int:
    """Run one dwell of some lanes, in blocks of the given order.

    Args:
        lanes: Lanes to run, shape (L,).
        drive: What is run.
        guess: Length of a free segment in base phase by state, then of what is left
            of the first one, shape (3, M).
        out: The starts; the ends are written over them. A lane that does not converge
            keeps its start, with -1 crossings.

    Returns:
        Evaluations of the voltage in all.
    """
    width = drive.response.shape[1] * BLOCK
    row = np.empty(ROWS * BLOCK)
    re = np.empty((2, width))
    im = np.empty((2, width))
    steps = 0
    for at in range(0, lanes.size, BLOCK):
        block = lanes[at : at + BLOCK]
        k = _load(block, drive, out, guess, row)
        _load_response(block, drive.response, re, im)
        if k == 1:
            _swap(row)
        living = 1
        while living > 0:
            living, used = _advance(k, drive.periods, row, re[k], im[k])
            steps += used * block.size
            _swap(row)
            k = 1 - k
        _store(block, drive, re, row, out)
    return steps
