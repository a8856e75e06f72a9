"""The lock cell: two cells of a card, mutually coupled through tuned tanks.

Each node drives, through a buffer and a resistor R, a parallel L-C tank of quality
Q = R sqrt(C/L); the voltage u of the tank drives a transconductor gm into the other
node. The two are detuned by their capacitors:

    u(s)/V(s) = (s wr/Q) / (s^2 + s wr/Q + wr^2),      C_1,2 = C / (1 +- Delta/(2 w0))

so that the free frequencies are w0 +- Delta/2 exactly. To first order in gm

    dpsi/dt = Delta - sum_n K_n sin(n psi),     K_n = -4 Im[conj(Gamma_n) Y(n w0) v_n]

with psi = phi_1 - phi_2 and Y = gm u/V: the even part of the pair interaction cancels.
The tank is tuned so that n = 1 has no even part at all. In this module `rate` is
K_1/w0. Derivation and measured errors: docs/reference/lock.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from oscc.arrays import ComplexArray, FloatArray
from oscc.checks import require_positive
from oscc.device.card import Card
from oscc.device.coupler import INJECTION_LIMIT
from oscc.device.piecewise import omega, waveform_series
from oscc.device.ppv import ppv_series, slowest_current_A
from oscc.errors import RequestError

LOCK_CARD = "vo2-two-state-5k5"
"""Card of lock stages unless another is asked for: its odd second harmonic is least."""

QUALITY = 2.0
RATE = 0.02
PERIODS = 100
"""Defaults that go together: K t = 12.6, settled below x = .954, slips above 1.026."""

TANK_OHM = 1e3
ORDERS = 60


@dataclass(frozen=True, slots=True)
class LockCell:
    """Element values of a lock cell.

    Attributes:
        card: Card of both oscillators.
        rate: K/w0, lock range over the angular frequency of the card.
        quality: Q of the tanks.
        resonance: Angular frequency of the tanks over that of the card, wr/w0.
        siemens: Transconductance gm.
    """

    card: Card
    rate: float
    quality: float
    resonance: float
    siemens: float

    @property
    def tank_H(self) -> float:
        """Inductance of a tank: R/(Q wr)."""
        return TANK_OHM / (self.quality * self.resonance * omega(self.card))

    @property
    def tank_F(self) -> float:
        """Capacitance of a tank: Q/(R wr)."""
        return self.quality / (TANK_OHM * self.resonance * omega(self.card))


def lock_rate(lock_rad: float, periods: int) -> float:
    """K/w0 of a dwell K t over a number of periods: K t / (2 pi P).

    Example:
        >>> round(lock_rate(12.6, 100), 5)
        0.02005
    """
    return lock_rad / (2.0 * math.pi * periods)


def lock_periods(lock_rad: float, rate: float = RATE) -> int:
    """Fewest whole periods of a dwell of at least K t at a rate K/w0.

    Example:
        >>> lock_periods(12.6), lock_periods(12.6, 0.03)
        (101, 67)
    """
    exact = lock_rad / (2.0 * math.pi * rate)
    return max(1, math.ceil(exact * (1.0 - 1e-12)))


def tank_angle_rad(card: Card) -> float:
    """Angle of the coupler at w0 that makes the pull odd and attractive, [rad].

        arg Y(w0) = -pi/2 - arg v_1 + arg Gamma_1

    Example:
        >>> from oscc.device import load_card
        >>> round(tank_angle_rad(load_card("vo2-two-state-5k5")), 3)
        -0.584
    """
    angle = np.angle(ppv_series(card, 1)) - np.angle(waveform_series(card, 1))
    return float(np.angle(np.exp(1j * (angle - 0.5 * np.pi))))


def lock_cell(card: Card, rate: float = RATE, *, quality: float = QUALITY) -> LockCell:
    """Lock cell of a card with a wanted lock range.

    The tank's angle at w0 is -atan(Q (w0/wr - wr/w0)), so that, with a the wanted one,

        w0/wr - wr/w0 = tan(-a)/Q
        gm = rate w0 / (-4 Im[conj(Gamma_1) (u/V)(w0) v_1])

    Args:
        rate: K/w0, > 0.
        quality: Q of the tanks, > 1/2, so that they ring.

    Raises:
        RequestError: a value out of range, a card whose angle no tank can give, or a
            current above `INJECTION_LIMIT` of the slowest node current.

    Example:
        >>> from oscc.device import load_card
        >>> cell = lock_cell(load_card("vo2-two-state-5k5"))
        >>> [f"{v:.3g}" for v in (cell.resonance, cell.tank_F, cell.tank_H)]
        ['0.848', '1.14e-10', '2.85e-05']
    """
    require_positive("rate", rate)
    if not quality > 0.5 or not math.isfinite(quality):
        raise RequestError(
            f"Argument `quality` must be above 1/2, but is {quality!r}: the tank of a "
            "lock cell has to ring."
        )
    angle = tank_angle_rad(card)
    if abs(angle) >= 0.5 * math.pi:
        raise RequestError(
            f"card {card.name}: its lock cell needs a tank angle of {angle:.3g} rad, "
            "and a tank reaches less than pi/2. Choose another series resistor."
        )
    offset = math.tan(-angle) / quality
    resonance = 2.0 / (offset + math.hypot(offset, 2.0))
    bare = LockCell(card, rate, quality, resonance, 1.0)
    unit = -4.0 * float(np.imag(_pair_series(bare, np.array([1])))[0])
    cell = LockCell(card, rate, quality, resonance, rate * omega(card) / unit)
    _require_monotone(cell)
    return cell


def tank_gain(cell: LockCell, n: npt.ArrayLike) -> ComplexArray:
    """Tank voltage over node voltage at n times the card's frequency, shape (...).

    Example:
        >>> from oscc.device import load_card
        >>> cell = lock_cell(load_card("vo2-two-state-5k5"))
        >>> bool(abs(tank_gain(cell, cell.resonance) - 1.0) < 1e-12)
        True
    """
    s = 1j * np.asarray(n, dtype=np.float64) / cell.resonance
    loss = s / cell.quality
    return np.asarray(loss / (s * s + loss + 1.0), dtype=np.complex128)


def _pair_series(cell: LockCell, order: FloatArray | npt.NDArray[Any]) -> ComplexArray:
    """h_n = conj(Gamma_n) Y(n w0) v_n, [rad/s]."""
    admittance = cell.siemens * tank_gain(cell, order)
    response = np.conj(ppv_series(cell.card, order))
    return np.asarray(response * admittance * waveform_series(cell.card, order))


def odd_series(cell: LockCell, orders: int = ORDERS) -> FloatArray:
    """K_n/K of the law dpsi/dt = Delta - sum_n K_n sin(n psi), n = 1..N, shape (N,).

        K_n = -4 Im[conj(Gamma_n) Y(n w0) v_n]

    Example:
        >>> from oscc.device import load_card
        >>> odd_series(lock_cell(load_card("vo2-two-state-5k5")), 3).round(4)
        array([1.    , 0.0019, 0.0014])
    """
    series = _pair_series(cell, np.arange(1, orders + 1))
    return np.asarray(-4.0 * series.imag / (cell.rate * omega(cell.card)))


def even_series(cell: LockCell, orders: int = ORDERS) -> FloatArray:
    """E_n/K of the common frequency w0 + sum_n E_n cos(n psi), n = 1..N, shape (N,).

        E_n = 2 Re[conj(Gamma_n) Y(n w0) v_n]

    It does not enter the law; the tuning of the tank makes E_1 zero.

    Example:
        >>> from oscc.device import load_card
        >>> cell = lock_cell(load_card("vo2-two-state-5k5"))
        >>> bool(abs(even_series(cell, 1)[0]) < 1e-12)
        True
    """
    series = _pair_series(cell, np.arange(1, orders + 1))
    return np.asarray(2.0 * series.real / (cell.rate * omega(cell.card)))


def odd_pull(
    cell: LockCell, psi_rad: npt.ArrayLike, orders: int = ORDERS
) -> FloatArray:
    """What replaces sin psi in the law to first order: sum_n (K_n/K) sin(n psi).

    Args:
        psi_rad: Phase difference, [rad], shape (...).

    Example:
        >>> from oscc.device import load_card
        >>> cell = lock_cell(load_card("vo2-two-state-5k5"))
        >>> bool(abs(odd_pull(cell, 1.0) - np.sin(1.0)) < 4e-3)
        True
    """
    n = np.arange(1, orders + 1)
    waves = np.sin(np.multiply.outer(np.asarray(psi_rad, dtype=np.float64), n))
    return np.asarray(waves @ odd_series(cell, orders), dtype=np.float64)


def peak_current_A(cell: LockCell) -> float:
    """Peak of the first harmonic injected into a node: K/(2 |Gamma_1|), [A].

    Example:
        >>> from oscc.device import load_card
        >>> cell = lock_cell(load_card("vo2-two-state-5k5"))
        >>> round(peak_current_A(cell) / cell.rate * 1e6)
        453
    """
    pull = abs(complex(ppv_series(cell.card, 1)))
    return cell.rate * omega(cell.card) / (2.0 * pull)


def largest_current_A(cell: LockCell) -> float:
    """Bound of the injected current at any time, start-up from rest included, [A].

    A step of one volt gives the tank g(t) = e^{-at} sin(bt) wr/(Q b) with
    a = wr/(2Q), of first peak g_0 = e^{-a t_0}/Q at b t_0 = atan(b/a) and of total
    variation 2 g_0/(1 - e^{-a pi/b}). The node keeps between its thresholds, that is
    within half the swing of their middle, hence

        |u| <= g_0 (V_IMT + V_MIT)/2 + g_0 (V_IMT - V_MIT)/(1 - e^{-a pi/b})

    Example:
        >>> from oscc.device import load_card
        >>> cell = lock_cell(load_card("vo2-two-state-5k5"))
        >>> peak_current_A(cell) < largest_current_A(cell) < 4 * peak_current_A(cell)
        True
    """
    a = 0.5 / cell.quality  # over wr
    b = math.sqrt(1.0 - a * a)
    first = math.exp(-a / b * math.atan2(b, a)) / cell.quality
    swing = cell.card.v_imt_V - cell.card.v_mit_V
    middle = 0.5 * (cell.card.v_imt_V + cell.card.v_mit_V)
    bound = first * (middle + swing / -math.expm1(-a * math.pi / b))
    return abs(cell.siemens) * bound


def _require_monotone(cell: LockCell) -> None:
    """Refuse a cell whose nodes might pass a threshold twice."""
    share = largest_current_A(cell) / slowest_current_A(cell.card)
    if share > INJECTION_LIMIT:
        fits = cell.rate * INJECTION_LIMIT / share
        raise RequestError(
            f"card {cell.card.name}: a lock range of {cell.rate:.3g} of the frequency "
            f"needs {share:.3g} of the slowest node current, above the limit "
            f"{INJECTION_LIMIT:g}. Use more periods for the same dwell, so that it is "
            f"at most {fits:.3g}."
        )


def slip_bias(cell: LockCell, ratio: npt.ArrayLike) -> FloatArray:
    """Mean of cos psi of a slipping pair over whole slips, x > 1, shape (...).

    The tank's group delay tau makes the pull lag behind psi, so that the mean is

        -(K tau/2) <cos^2>,   <cos^2> = 1 - x^2 + x sqrt(x^2 - 1)
        tau = Q (r + 1/r) cos^2(a) / w0,   r = w0/wr,   a the tank's angle

    which is why the mean is no read-out: it is not zero.

    Example:
        >>> from oscc.device import load_card
        >>> cell = lock_cell(load_card("vo2-two-state-5k5"))
        >>> slip_bias(cell, [1.05, 1.2]).round(4)
        array([-0.0066, -0.01  ])
    """
    x = np.abs(np.asarray(ratio, dtype=np.float64))
    square = 1.0 - x * x + x * np.sqrt(x * x - 1.0)
    r = 1.0 / cell.resonance
    delay = cell.quality * (r + 1.0 / r) * math.cos(tank_angle_rad(cell.card)) ** 2
    return np.asarray(-0.5 * cell.rate * delay * square, dtype=np.float64)


def largest_ratio(card: Card, rate: float) -> float:
    """Largest |x| that the card's trim of the capacitor reaches at a rate K/w0.

        |x| rate/2 <= range / (1 + range)

    Raises:
        RequestError: the card cannot trim its capacitor.

    Example:
        >>> from oscc.device import load_card
        >>> round(largest_ratio(load_card("vo2-two-state-5k5"), 0.02), 2)
        2.91
    """
    trim = card.trim
    if trim is None or trim.parameter != "c_F":
        raise RequestError(
            f"card {card.name} has no trim of `c_F`, by which the pairs of a lock "
            "stage are detuned. Give the card a `trim` of that parameter."
        )
    reach = trim.range_relative
    return 2.0 * reach / (1.0 + reach) / rate


def capacitors_F(
    card: Card, rate: float, ratio: npt.ArrayLike, *, where: str = ""
) -> FloatArray:
    """Capacitors of both oscillators of every cell, [F], shape (2, M).

        C_1,2 = C / (1 +- x rate/2)

    Args:
        rate: K/w0.
        ratio: x of every cell, shape (M,).
        where: Place for the message.

    Raises:
        RequestError: a cell is detuned beyond the range of the card's trim.

    Example:
        >>> from oscc.device import load_card
        >>> card = load_card("vo2-two-state-5k5")
        >>> (capacitors_F(card, 0.02, [1.0])[:, 0] / card.c_F).round(4)
        array([0.9901, 1.0101])
    """
    x = np.asarray(ratio, dtype=np.float64)
    limit = largest_ratio(card, rate)
    if x.size and float(np.abs(x).max()) > limit * (1.0 + 1e-12):
        worst = int(np.abs(x).argmax())
        raise RequestError(
            f"{where + ': ' if where else ''}cell {worst} is detuned by "
            f"{abs(float(x[worst])):.4g} lock ranges, and the trim of card {card.name} "
            f"reaches {limit:.4g}. Set what lies beyond to that, as it slips all the "
            "same, or take more periods for the same dwell."
        )
    shift = 0.5 * rate * x
    return np.stack([card.c_F / (1.0 + shift), card.c_F / (1.0 - shift)])
