"""Shaped coupling: the injected current that realises a wanted pull on the phase.

An injection is kept dense: an array of shape (M, N+1) of peak phasors in ampere, whose
column is the harmonic order, column 0 the direct current:

    I(t) = I_0 + sum_{n>=1} Re(I_n e^{i n omega t}),  t from the opening of the gate

A positive current flows into the node. Derivations: docs/reference/physics.md.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from oscc.arrays import ComplexArray, FloatArray, IntArray
from oscc.checks import require_finite, require_shape
from oscc.device.card import Card
from oscc.device.piecewise import period_s
from oscc.device.ppv import ppv_series, slowest_current_A
from oscc.errors import RequestError

INJECTION_LIMIT = 0.8
"""Largest allowed peak injection over the smallest C |dV/dt| of the free cycle."""


def require_harmonics(harmonics: npt.ArrayLike) -> IntArray:
    """Harmonic orders as an array; refuse what is not a set of whole numbers >= 1.

    Raises:
        RequestError: an order is below one, not whole, or given twice.

    Example:
        >>> require_harmonics([1, 3]).tolist()
        [1, 3]
    """
    order = np.asarray(harmonics)
    whole = order.astype(np.int64)
    if order.ndim != 1 or (whole != order).any() or (whole < 1).any():
        raise RequestError(
            f"Argument `harmonics` must hold whole numbers >= 1, but is {harmonics!r}."
        )
    if np.unique(whole).size != whole.size:
        raise RequestError(
            f"Argument `harmonics` holds an order twice: {whole.tolist()}. Add them up."
        )
    return whole


def injection_A(
    card: Card,
    drive: ComplexArray,
    harmonics: npt.ArrayLike,
    dwell_periods: int,
    *,
    detuning_rad: FloatArray | None = None,
) -> ComplexArray:
    """Injection that pulls the phase along the wanted flow, to first order.

    Averaging omega + ppv(phi) I(t) gives for the lead psi = phi - omega t
        d psi/dt = Gamma_0 I_0 + sum_n Re[conj(Gamma_n) I_n e^{-i n psi}]
    and the wanted flow over one dwell of P periods is
        d psi/dtau = Omega + sum_n Im[D_n e^{-i n psi}],      tau = t / (P T0)
    hence, with kappa = 1 / (P T0),
        conj(Gamma_n) I_n = -i kappa D_n,     Gamma_0 I_0 = kappa Omega

    Args:
        drive: D_n = gain times field of each target and harmonic, [rad], shape (M, H).
        harmonics: Orders n of the columns of `drive`, shape (H,).
        dwell_periods: Whole number P of periods that the gate is open, >= 1.
        detuning_rad: Omega of each target, [rad], shape (M,); zero if not given.

    Returns:
        Peak phasors, [A], shape (M, max(harmonics) + 1), column = order.

    Raises:
        RequestError: shapes do not fit, values are not finite, or P is below one.

    Example:
        >>> from oscc.device import load_card
        >>> card = load_card("vo2-two-state-6k")
        >>> injection_A(card, np.array([[1 + 0j]]), [1], 20).shape
        (1, 2)
    """
    order = require_harmonics(harmonics)
    pull = np.asarray(drive, dtype=np.complex128)
    require_shape("drive", pull, (-1, order.size), axes="(targets, harmonics)")
    require_finite("drive", pull)
    if int(dwell_periods) != dwell_periods or dwell_periods < 1:
        raise RequestError(
            "Argument `dwell_periods` must be a whole number >= 1, "
            f"but is {dwell_periods!r}."
        )
    kappa = 1.0 / (int(dwell_periods) * period_s(card))
    width = int(order.max(initial=0)) + 1
    current = np.zeros((pull.shape[0], width), dtype=np.complex128)
    current[:, order] = -1j * kappa * pull / np.conj(ppv_series(card, order))
    if detuning_rad is not None:
        offset = np.asarray(detuning_rad, dtype=np.float64)
        require_shape("detuning_rad", offset, (pull.shape[0],), axes="(targets,)")
        require_finite("detuning_rad", offset)
        current[:, 0] = kappa * offset / ppv_series(card, 0).real
    return current


def unit_injection_A(
    card: Card, harmonics: npt.ArrayLike, dwell_s: float
) -> ComplexArray:
    """Injection for a drive of 1 rad at each harmonic, over a dwell of given length.

    As `injection_A`, for a simulator whose own free period the dwell is built on.

    Args:
        harmonics: Orders n, shape (H,).
        dwell_s: Length of the dwell, [s].

    Returns:
        Peak phasors, [A], shape (H,), in the order of the harmonics.

    Raises:
        RequestError: orders that `injection_A` refuses.

    Example:
        >>> from oscc.device import load_card
        >>> card = load_card("vo2-two-state-6k")
        >>> both = [unit_injection_A(card, [1], s)[0] for s in (1e-6, 2e-6)]
        >>> round(float(abs(both[0] / both[1])), 12)
        2.0
    """
    order = require_harmonics(harmonics)
    one = injection_A(card, np.ones((1, order.size), dtype=np.complex128), order, 1)[
        0, order
    ]
    return np.asarray(one * (period_s(card) / dwell_s))


def peak_injection_A(injection: ComplexArray) -> FloatArray:
    """Upper bound of |I(t)| over all times, [A], at most 0.5 % above the peak.

    The largest of M equidistant samples of a trigonometric polynomial of degree N is
    at least cos(pi N / M) times its maximum (here M >= 32 N).

    Args:
        injection: Peak phasors, [A], shape (..., N+1), column = order.

    Returns:
        Bound of the peak, [A], shape (...).

    Source: Ehlich, Zeller, Math. Z. 86 (1964) 41 [recalled]; the bound is tested.

    Example:
        >>> float(peak_injection_A(np.array([1.0, 2.0j])).round(1))
        3.0
    """
    degree = injection.shape[-1] - 1
    samples = 32 * max(degree, 1)
    angle = np.arange(samples) * (2.0 * np.pi / samples)
    basis = np.exp(1j * np.outer(np.arange(degree + 1), angle))
    wave = np.real(np.asarray(injection, dtype=np.complex128) @ basis)
    bound = np.cos(np.pi * degree / samples)
    return np.asarray(np.abs(wave).max(axis=-1) / bound, dtype=np.float64)


def injection_ratio(card: Card, injection: ComplexArray) -> FloatArray:
    """Peak injection over the smallest C |dV/dt| of the free cycle.

    Below one the node stays monotone in each state and the phase equation is exact;
    `INJECTION_LIMIT` keeps a margin.

    Args:
        injection: Peak phasors, [A], shape (..., N+1), column = order.

    Returns:
        Ratio, shape (...).

    Example:
        >>> from oscc.device import load_card
        >>> card = load_card("vo2-two-state-6k")
        >>> current = injection_A(card, np.array([[12 + 0j]]), [1], 20)
        >>> round(float(injection_ratio(card, current)[0]), 2)
        0.28
    """
    return peak_injection_A(injection) / slowest_current_A(card)


def require_injection(
    card: Card,
    injection: ComplexArray,
    *,
    limit: float = INJECTION_LIMIT,
    where: str = "",
) -> FloatArray:
    """Injection ratio of every target; refuse a target above the limit.

    Args:
        injection: Peak phasors, [A], shape (M, N+1), column = order.

    Returns:
        Ratio, shape (M,).

    Raises:
        RequestError: a target is above the limit; names the worst one.

    Example:
        >>> from oscc.device import load_card
        >>> card = load_card("vo2-two-state-6k")
        >>> float(require_injection(card, np.zeros((1, 2), complex))[0])
        0.0
    """
    ratio = injection_ratio(card, injection)
    if ratio.size and float(ratio.max()) > limit:
        worst = int(ratio.argmax())
        raise RequestError(
            f"{where + ': ' if where else ''}target {worst} needs "
            f"{ratio[worst]:.3g} of the slowest node current of card {card.name}, "
            f"above the limit {limit:g} ({int((ratio > limit).sum())} of {ratio.size} "
            "targets). Use more periods or substeps."
        )
    return ratio
