"""Shaper of a tile: from the sum of real waveforms to the current a target needs.

A VO2 cell's own waveform holds every harmonic, v(t) = sum_n v_n e^{i n phi}. The sum of
the weighted sources feeds one channel for each harmonic: two gm-C biquads of quality Q
in cascade, tuned to it. A biquad is a resistor, a capacitor and a gyrator with a second
capacitor; its two nodes are taps in phase and in quadrature,

    b_m(x) = [1 + iQ (x/(m w) - m w/x)]^-2,   q_m(x) = b_m(x) g / (i x C)

and the current into the target is a sum of taps. What channel m leaks of another
harmonic is linear and known, so the taps are solved for jointly rather than filtered
harder; from harmonic 2 on one more channel nulls the next harmonic:

    2 v_n e^{i n d} gm R s_n  sum_m [G_m b_m(n w) + S_m q_m(n w)] = I_n,  I_n = 0 above

with s_n the response of the sum node to its load, and d the offset at which the sources
are written, chosen so that channel 1 of the first route needs no quadrature tap.
Source: derived and measured in docs/reference/spice.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from oscc.arrays import ComplexArray, FloatArray
from oscc.device.card import Card
from oscc.device.piecewise import waveform_series
from oscc_netlists.couplers import SUM_OHM, WEIGHT_SIEMENS
from oscc_netlists.element import Capacitor, Element, Resistor, Transconductor

BIQUADS = 2
_TURNS = 60
_SMALL = 1e-12


@dataclass(frozen=True, slots=True)
class Load:
    """What the weights of one sum node load it with, all together.

    Args:
        ohm: Output resistances in parallel; infinite for none.
        farad: Output capacitances in parallel.
    """

    ohm: float
    farad: float


@dataclass(frozen=True, slots=True, eq=False)
class ShaperPlan:
    """A shaper for every target of a tile.

    Args:
        omega: Angular frequency of the carrier, [rad/s].
        quality: Q of every biquad.
        offset_rad: Offset at which the sources are written.
        taps_S: In-phase and quadrature tap of each channel by route, shape (K, 2):
            ampere into the target per volt of the tap, for a gain of one.
        load: Load of a sum node.
    """

    omega: float
    quality: float
    offset_rad: float
    taps_S: Mapping[str, FloatArray]
    load: Load

    @property
    def channels(self) -> int:
        """Number of channels of a route, null channel included."""
        return int(next(iter(self.taps_S.values())).shape[0])


def channels_of(orders: tuple[int, ...]) -> int:
    """Channels that a shaper needs: one a harmonic, and a null one from two on.

    Example:
        >>> channels_of((1,)), channels_of((1, 2))
        (1, 3)
    """
    top = max(orders)
    return top if top == 1 else top + 1


def responses(omega: float, order: int, quality: float, at: FloatArray) -> ComplexArray:
    """In-phase and quadrature response of one channel, shape (2, len(at)).

    Args:
        omega: Carrier, [rad/s].
        order: Harmonic that the channel is tuned to.
        quality: Q of its biquads.
        at: Angular frequencies, [rad/s].

    Example:
        >>> b, q = responses(1.0, 1, 3.0, np.array([1.0]))
        >>> complex(b[0]).real, round(complex(q[0]).imag, 12)
        (1.0, -1.0)
    """
    centre = order * omega
    farad, siemens = _tank(omega, order, quality)
    one = 1 / (1 + 1j * quality * (at / centre - centre / at))
    both = one**BIQUADS
    return np.stack([both, both * siemens / (1j * at * farad)])


def design(
    card: Card,
    omega: float,
    unit_A: Mapping[str, ComplexArray],
    *,
    quality: float,
    load: Load,
) -> ShaperPlan:
    """Taps of every route and the write offset of the sources.

    Args:
        card: Device card of the sources.
        omega: Carrier of the simulator, [rad/s].
        unit_A: Wanted current phasor for a unit of field of harmonics 1..K by route,
            zero on null channels, shape (K,).
        quality: Q of every biquad.
        load: Load of a sum node; its static part is designed in.
    """
    first = next(iter(unit_A))
    width = unit_A[first].size
    order = np.arange(1, width + 1)
    at: FloatArray = np.asarray(order * omega, dtype=np.float64)
    basis = np.concatenate(
        [responses(omega, int(m), quality, at) for m in order], axis=0
    ).T
    stacked = np.vstack([basis.real, basis.imag])
    node = 1 / (1 + SUM_OHM / load.ohm + 1j * at * SUM_OHM * load.farad)
    source = 2 * waveform_series(card, order) * WEIGHT_SIEMENS * SUM_OHM * node

    def solve(unit: ComplexArray, offset: float) -> FloatArray:
        wanted = unit / (source * np.exp(1j * order * offset))
        flat = np.concatenate([wanted.real, wanted.imag])
        return np.asarray(np.linalg.solve(stacked, flat).reshape(width, 2))

    offset = float(np.angle(unit_A[first][0] / source[0])) if unit_A[first][0] else 0.0
    for _ in range(_TURNS):
        taps = solve(unit_A[first], offset)
        if abs(taps[0, 1]) <= _SMALL * np.abs(taps).max(initial=_SMALL):
            break
        offset += float(np.angle(taps[0, 0] - 1j * taps[0, 1]))
    out = {route: solve(unit, offset) for route, unit in unit_A.items()}
    return ShaperPlan(omega, quality, offset, out, load)


def channel(plan: ShaperPlan, tag: str, order: int, into: str) -> tuple[Element, ...]:
    """Elements of one channel: an input from the sum node, then the biquads.

    Its taps are the nodes `q_TAG_ORDER` and `h_TAG_ORDER`.

    Args:
        tag: Target and route, part of every name.
        order: Harmonic that it is tuned to.
        into: Sum node that drives it.
    """
    farad, siemens = _tank(plan.omega, order, plan.quality)
    out: list[Element] = []
    before = into
    for stage in range(BIQUADS):
        last = stage == BIQUADS - 1
        end = f"{tag}_{order}" if last else f"{tag}_{order}_{stage}"
        node, second = f"q_{end}", f"h_{end}"
        out += [
            Transconductor(f"g_in_{end}", "0", node, before, "0", 1 / SUM_OHM),
            Resistor(f"r_q_{end}", node, "0", SUM_OHM),
            Capacitor(f"c_q_{end}", node, "0", farad, 0.0),
            Transconductor(f"g_a_{end}", node, "0", second, "0", siemens),
            Transconductor(f"g_b_{end}", "0", second, node, "0", siemens),
            Capacitor(f"c_h_{end}", second, "0", farad, 0.0),
        ]
        before = node
    return tuple(out)


def taps(plan: ShaperPlan, route: str, tag: str, node: str) -> tuple[Element, ...]:
    """Transconductors from the taps of a route into node `y` of its target.

    Node `y` carries one volt for `full_A(plan)` of current at a gain of one.
    """
    scale = full_A(plan) * SUM_OHM
    out: list[Element] = []
    for number, pair in enumerate(plan.taps_S[route], start=1):
        for letter, size in zip("qh", pair, strict=True):
            if abs(size) > _SMALL * full_A(plan):
                name, tap = f"g_{letter}_{tag}_{number}", f"{letter}_{tag}_{number}"
                share = float(size) / scale
                out.append(Transconductor(name, "0", node, tap, "0", share))
    return tuple(out)


def full_A(plan: ShaperPlan) -> float:
    """Largest ampere per volt of a tap: the unit of node `y`, for a gain of one."""
    return max(float(np.abs(t).max()) for t in plan.taps_S.values()) or 1.0


def _tank(omega: float, order: int, quality: float) -> tuple[float, float]:
    """Capacitor and gyrator of a biquad; its resistor is the unit `SUM_OHM`."""
    return quality / (SUM_OHM * order * omega), quality / SUM_OHM
