"""Phase response of a two-state cell (PPV), its series, what follows to first order.

A charge q put on the node at phase phi moves the phase by ppv(phi) q. The node has one
state variable, so d phi/dt = omega + ppv(phi) I(t) holds exactly at any strength, as
long as |I| < C |dV/dt|. Derivations: docs/reference/physics.md.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from oscc.arrays import ComplexArray, FloatArray
from oscc.device.card import Card
from oscc.device.piecewise import (
    INSULATING,
    METALLIC,
    omega,
    period_s,
    segments,
    state_of,
    waveform_V,
)


def ppv(card: Card, phi: npt.ArrayLike) -> FloatArray:
    """Phase response at a phase of the free cycle, [rad/C].

        ppv(phi) = omega / (C dV/dt)

    Args:
        phi: Phase, [rad], any turn, shape (...).

    Example:
        >>> from oscc.device import load_card
        >>> card = load_card("vo2-two-state-6k")
        >>> bool(ppv(card, 1.0) < 0 < ppv(card, 4.0))   # falling, then rising node
        True
    """
    piece, state = segments(card), state_of(card, phi)
    slope = (piece.v_inf_V[state] - waveform_V(card, phi)) / piece.tau_s[state]
    return np.asarray(omega(card) / (card.c_F * slope), dtype=np.float64)


def ppv_series(card: Card, n: npt.ArrayLike) -> ComplexArray:
    """Two-sided Fourier coefficients Gamma_n of the phase response, [rad/C].

    Args:
        n: Orders, any sign, shape (...).

    Example:
        >>> from oscc.device import load_card
        >>> gamma = ppv_series(load_card("vo2-two-state-20k"), 1)
        >>> f"{abs(gamma):.6e}"
        '7.759006e+09'
    """
    return _exponential_series(card, np.asarray(n, dtype=np.float64), power=1)


def ppv_square_series(card: Card, n: npt.ArrayLike) -> ComplexArray:
    """Two-sided Fourier coefficients of ppv(phi)^2, [rad^2/C^2].

    Args:
        n: Orders, any sign, shape (...).

    Example:
        >>> from oscc.device import load_card
        >>> card = load_card("vo2-two-state-6k")
        >>> mean = ppv_square_series(card, 0).real
        >>> bool(mean > abs(ppv_series(card, 0)) ** 2)
        True
    """
    return _exponential_series(card, np.asarray(n, dtype=np.float64), power=2)


def ppv_at_switching(card: Card) -> FloatArray:
    """Phase response just before each state ends, [rad/C], shape (2,) by state.

    These are the largest values of the state in size: the node is slowest there.

    Example:
        >>> from oscc.device import load_card
        >>> ppv_at_switching(load_card("vo2-two-state-20k")).shape
        (2,)
    """
    piece = segments(card)
    slope = (piece.v_inf_V - piece.v_end_V) / piece.tau_s
    return np.asarray(omega(card) / (card.c_F * slope), dtype=np.float64)


def slowest_current_A(card: Card) -> float:
    """Smallest C |dV/dt| of the free cycle, [A]: injection must stay below it.

    Example:
        >>> from oscc.device import load_card
        >>> round(slowest_current_A(load_card("vo2-two-state-6k")) * 1e6)
        333
    """
    return omega(card) / float(np.abs(ppv_at_switching(card)).max())


def lock_range(card: Card, injection_A: npt.ArrayLike, harmonic: int = 1) -> FloatArray:
    """One-sided injection lock range at a harmonic, to first order, [rad/s].

        lock_range = |Gamma_n| injection

    Args:
        injection_A: Peak current of the injected sine, [A], shape (...), >= 0.
        harmonic: Order n of the injected sine, >= 1.

    Returns:
        Largest |omega - omega_pump / n| that still locks, shape (...).

    Source: docs/reference/physics.md; a sine phase response gives Adler 1946.

    Example:
        >>> from oscc.device import load_card
        >>> float(lock_range(load_card("vo2-two-state-6k"), 0.0))
        0.0
    """
    strength = float(np.abs(ppv_series(card, harmonic)))
    return np.asarray(strength * np.asarray(injection_A, float), dtype=np.float64)


def _exponential_series(card: Card, order: FloatArray, *, power: int) -> ComplexArray:
    """Series of ppv^power: in each state peak^power e^{-power (t_sw - t)/tau}."""
    piece, rate = segments(card), 1j * order * omega(card)
    peak = ppv_at_switching(card)
    out = np.zeros(order.shape, dtype=np.complex128)
    for state in (METALLIC, INSULATING):
        begin = piece.begin_s[state]
        end = begin + piece.length_s[state]
        growth = power / piece.tau_s[state]
        decay = np.exp(-growth * piece.length_s[state])
        edges = np.exp(-rate * end) - decay * np.exp(-rate * begin)
        out += peak[state] ** power * edges / (growth - rate)
    return np.asarray(out / period_s(card), dtype=np.complex128)
