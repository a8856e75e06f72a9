"""Free cycle of a two-state cell: period, duty, waveform, their Fourier series.

Convention of the whole package: phase phi = omega t on the free cycle, phi = 0 at the
upward V_IMT crossing. State 0 is metallic (node falls from V_IMT to V_MIT) and comes
first; state 1 is insulating (node rises back). A series is two-sided,
f(phi) = sum over all n of f_n e^{i n phi}. Derivations: docs/reference/physics.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from oscc.arrays import ComplexArray, FloatArray, IntArray
from oscc.device.card import Card
from oscc.phases import TURN

METALLIC, INSULATING = 0, 1


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """The two exponential pieces of the free cycle, arrays of shape (2,) by state.

        V(t) = v_inf + (v_start - v_inf) e^{-t/tau},  0 <= t < length

    Attributes:
        conductance_S: Series resistor and device in parallel.
        tau_s: Time constant.
        v_inf_V: Voltage that the node would settle to.
        v_start_V: Threshold at which the state begins.
        v_end_V: Threshold at which it ends.
        length_s: Time from one to the other.
    """

    conductance_S: FloatArray
    tau_s: FloatArray
    v_inf_V: FloatArray
    v_start_V: FloatArray
    v_end_V: FloatArray
    length_s: FloatArray

    @property
    def begin_s(self) -> FloatArray:
        """Time at which each state begins on the free cycle, shape (2,)."""
        return np.array([0.0, self.length_s[METALLIC]])


def segments(card: Card) -> Segments:
    """Closed-form pieces of the free cycle.

        length = tau ln((v_inf - v_start) / (v_inf - v_end))

    Example:
        >>> from oscc.device import load_card
        >>> segments(load_card("vo2-two-state-20k")).length_s
        array([7.98408753e-08, 6.32482703e-07])
    """
    resistance = np.array([card.r_met_ohm, card.r_ins_ohm])
    conductance = 1.0 / card.r_series_ohm + 1.0 / resistance
    tau = card.c_F / conductance
    v_inf = card.vdd_V / card.r_series_ohm / conductance
    v_start = np.array([card.v_imt_V, card.v_mit_V])
    v_end = v_start[::-1].copy()
    length = tau * np.log((v_inf - v_start) / (v_inf - v_end))
    return Segments(conductance, tau, v_inf, v_start, v_end, length)


def period_s(card: Card) -> float:
    """Period of the free cycle, [s].

    Example:
        >>> from oscc.device import load_card
        >>> round(1e-6 / period_s(load_card("vo2-two-state-6k")), 2)
        3.26
    """
    return float(segments(card).length_s.sum())


def omega(card: Card) -> float:
    """Angular frequency of the free cycle, [rad/s].

    Example:
        >>> from oscc.device import load_card
        >>> round(omega(load_card("vo2-two-state-6k")) / 1e7, 2)
        2.05
    """
    return TURN / period_s(card)


def duty(card: Card) -> float:
    """Insulating fraction of the period.

    Example:
        >>> from oscc.device import load_card
        >>> round(duty(load_card("vo2-two-state-6k")), 3)
        0.579
    """
    return float(segments(card).length_s[INSULATING]) / period_s(card)


def state_of(card: Card, phi: npt.ArrayLike) -> IntArray:
    """State at a phase of the free cycle: 0 metallic, 1 insulating.

    Args:
        phi: Phase, [rad], any turn, shape (...).

    Example:
        >>> from oscc.device import load_card
        >>> state_of(load_card("vo2-two-state-6k"), [0.0, 3.0, 6.3]).tolist()
        [0, 1, 0]
    """
    late = _time_in_cycle(card, phi) >= segments(card).length_s[METALLIC]
    return np.asarray(late, dtype=np.int64)


def waveform_V(card: Card, phi: npt.ArrayLike) -> FloatArray:
    """Node voltage at a phase of the free cycle, [V].

    Args:
        phi: Phase, [rad], any turn, shape (...).

    Example:
        >>> from oscc.device import load_card
        >>> float(waveform_V(load_card("vo2-two-state-6k"), 0.0))
        2.0
    """
    piece, state = segments(card), state_of(card, phi)
    since = _time_in_cycle(card, phi) - piece.begin_s[state]
    step = piece.v_start_V[state] - piece.v_inf_V[state]
    return np.asarray(
        piece.v_inf_V[state] + step * np.exp(-since / piece.tau_s[state]),
        dtype=np.float64,
    )


def phase_of(card: Card, v_V: npt.ArrayLike, state: npt.ArrayLike) -> FloatArray:
    """Phase of the free cycle that passes through a voltage in a state, [rad].

    The isochron of the free cycle: exact, as the node has one state variable.

    Args:
        v_V: Node voltage, [V], shape (...).
        state: 0 metallic or 1 insulating, shape (...).

    Returns:
        Phase, shape (...), in [0, 2 pi) where the voltage is between the thresholds.

    Example:
        >>> from oscc.device import load_card
        >>> float(phase_of(load_card("vo2-two-state-6k"), 2.0, 0))
        0.0
    """
    piece, which = segments(card), np.asarray(state, dtype=np.int64)
    v_inf = piece.v_inf_V[which]
    ratio = (v_inf - piece.v_start_V[which]) / (v_inf - np.asarray(v_V, float))
    since = piece.begin_s[which] + piece.tau_s[which] * np.log(ratio)
    return np.asarray(omega(card) * since, dtype=np.float64)


def waveform_series(card: Card, n: npt.ArrayLike) -> ComplexArray:
    """Two-sided Fourier coefficients v_n of the node voltage, [V].

    Args:
        n: Orders, any sign, shape (...).

    Example:
        >>> from oscc.device import load_card
        >>> round(float(waveform_series(load_card("vo2-two-state-20k"), 0).real), 6)
        1.520272
    """
    piece, order = segments(card), np.asarray(n, dtype=np.float64)
    rate = 1j * order * omega(card)
    out = np.zeros(order.shape, dtype=np.complex128)
    for state in (METALLIC, INSULATING):
        begin = piece.begin_s[state]
        end = begin + piece.length_s[state]
        at_begin, at_end = np.exp(-rate * begin), np.exp(-rate * end)
        divisor = np.where(order == 0, 1.0, rate)
        flat = np.where(order == 0, end - begin, (at_begin - at_end) / divisor)
        decay = np.exp(-piece.length_s[state] / piece.tau_s[state])
        fall = (at_begin - decay * at_end) / (rate + 1.0 / piece.tau_s[state])
        step = piece.v_start_V[state] - piece.v_inf_V[state]
        out += piece.v_inf_V[state] * flat + step * fall
    return np.asarray(out / period_s(card), dtype=np.complex128)


def _time_in_cycle(card: Card, phi: npt.ArrayLike) -> FloatArray:
    return np.asarray(
        np.mod(np.asarray(phi, dtype=np.float64), TURN) / omega(card), dtype=np.float64
    )
