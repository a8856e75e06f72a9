"""Beyond first-order averaging: the ripple of the phase, the second-order currents.

Both need the injected current of every target on the host, that is the field the
coupling is there to form: a scheme that uses them is host-assisted.
Derivations: docs/reference/physics.md.
"""

from __future__ import annotations

import numpy as np

from oscc.arrays import ComplexArray, FloatArray, IntArray
from oscc.device.card import Card
from oscc.device.piecewise import INSULATING, METALLIC, omega, segments, state_of
from oscc.device.ppv import (
    ppv,
    ppv_at_switching,
    ppv_series,
    ppv_square_series,
)
from oscc.errors import UndecidedError
from oscc.phases import TURN

_TERMS = 2000
_MOST_ROUNDS = 200


def ripple_antiderivative(card: Card, phi: FloatArray, n: int) -> ComplexArray:
    """Periodic, zero-mean antiderivative over phase of ppv(phi) e^{i n phi}, mean out.

        U_n(phi) = sum_{r != 0} Gamma_{r-n} e^{i r phi} / (i r)

    in closed form: ppv grows as e^{rho phi} in each state, so that its antiderivative
    there is ppv(phi) e^{i n phi} / (rho + i n).

    Args:
        phi: Phase, [rad], any turn, shape (...).
        n: Order, any sign.

    Returns:
        U_n, [rad/C], shape (...).

    Example:
        >>> from oscc.device import load_card
        >>> card = load_card("vo2-two-state-6k")
        >>> grid = (np.arange(4096) + 0.5) * TURN / 4096
        >>> size = abs(ripple_antiderivative(card, grid, 1)).max()
        >>> bool(abs(ripple_antiderivative(card, grid, 1).mean()) < 1e-6 * size)
        True
    """
    angle, state = np.mod(np.asarray(phi, dtype=np.float64), TURN), state_of(card, phi)
    piece = segments(card)
    growth = 1.0 / (omega(card) * piece.tau_s) + 1j * n
    begin = omega(card) * piece.begin_s
    end = np.array([begin[INSULATING], TURN])
    peak = ppv_at_switching(card)
    last = peak * np.exp(1j * n * end) / growth
    first = last * np.exp(-growth * (end - begin))
    mean = complex(ppv_series(card, -n))
    # constants of the two states: continuous at the switching, zero mean over the cycle
    step = last[METALLIC] - first[INSULATING]
    inner = ((last - first) / growth).sum() / TURN
    share = (TURN - begin[INSULATING]) / TURN
    base = 0.5 * TURN * mean - inner - step * share
    offset = np.where(state == INSULATING, base + step, base)
    local = ppv(card, phi) * np.exp(1j * n * angle) / growth[state]
    return np.asarray(local + offset - mean * angle, dtype=np.complex128)


def ripple_rad(card: Card, injection: ComplexArray, psi_rad: FloatArray) -> FloatArray:
    """First-order ripple of the lead at the opening (or closing) of the gate.

        phi = psi + W(psi),  W = (1/omega) [I_0 U_0 + sum_n Re(I_n e^{-i n psi} U_n)]

    where psi follows the averaged flow.

    Args:
        injection: Peak phasors, [A], shape (M, N+1), column = order.
        psi_rad: Lead against the carriers, [rad], shape (M,).

    Returns:
        W, [rad], shape (M,).

    Example:
        >>> from oscc.device import load_card
        >>> card = load_card("vo2-two-state-6k")
        >>> float(ripple_rad(card, np.zeros((1, 2), complex), np.ones(1))[0])
        0.0
    """
    total = injection[:, 0].real * ripple_antiderivative(card, psi_rad, 0).real
    for n in range(1, injection.shape[1]):
        back = np.exp(-1j * n * psi_rad)
        total = total + np.real(
            injection[:, n] * back * ripple_antiderivative(card, psi_rad, n)
        )
    return np.asarray(total / omega(card), dtype=np.float64)


def without_ripple(
    card: Card, injection: ComplexArray, read_rad: FloatArray
) -> FloatArray:
    """Averaged lead psi of a phase that was read: psi + W(psi) = read.

    Args:
        injection: Peak phasors, [A], shape (M, N+1), column = order.
        read_rad: Phase read at the closing of the gate, [rad], shape (M,).

    Raises:
        UndecidedError: the ripple is too large for the iteration to settle.

    Example:
        >>> from oscc.device import load_card
        >>> card = load_card("vo2-two-state-6k")
        >>> float(without_ripple(card, np.zeros((1, 2), complex), np.ones(1))[0])
        1.0
    """
    psi = np.asarray(read_rad, dtype=np.float64)
    for _ in range(_MOST_ROUNDS):
        better = read_rad - ripple_rad(card, injection, psi)
        change = float(np.abs(better - psi).max(initial=0.0))
        psi = better
        if change < 1e-12:
            return psi
    raise UndecidedError(
        f"The ripple of the read phase did not settle (last change {change:.2g} rad). "
        "Use more periods."
    )


def second_order_drift(card: Card, injection: ComplexArray) -> ComplexArray:
    """Second averaging term of the phase equation, by order.

        drift = F_0 + 2 Re sum_{q>0} F_q e^{i q psi}
        F_q = (1/omega) sum_{k+l=-q} D_kl a_k a_l
        D_kl = -(S_{-k-l} - Gamma_{-k} Gamma_{-l}
                 - k sum_{r != 0} Gamma_{r-k} Gamma_{-r-l} / r)

    with a_n = I_n / 2 for n > 0, a_{-n} its conjugate, a_0 = I_0, and S the series of
    ppv^2.

    Args:
        injection: Peak phasors, [A], shape (M, N+1), column = order.

    Returns:
        F_q for q = 0 .. 2N, [rad/s], shape (M, 2N+1).

    Example:
        >>> from oscc.device import load_card
        >>> card = load_card("vo2-two-state-6k")
        >>> second_order_drift(card, np.zeros((1, 2), complex)).shape
        (1, 3)
    """
    degree = injection.shape[1] - 1
    orders = np.arange(-degree, degree + 1)
    half = 0.5 * injection[:, 1:]
    amplitude = np.concatenate(
        [np.conj(half[:, ::-1]), injection[:, :1].real + 0j, half], axis=1
    )
    weight = _pair_weights(card, orders)
    out = np.zeros((injection.shape[0], 2 * degree + 1), dtype=np.complex128)
    for row, k in enumerate(orders):
        for column, other in enumerate(orders):
            q = -(k + other)
            if q >= 0:
                pair = amplitude[:, row] * amplitude[:, column]
                out[:, q] += weight[row, column] * pair
    return np.asarray(out / omega(card), dtype=np.complex128)


def _pair_weights(card: Card, orders: IntArray) -> ComplexArray:
    """D_kl for all k and l; the sum over r falls as 1/r^4 in pairs of either sign."""
    r = np.concatenate([np.arange(-_TERMS, 0), np.arange(1, _TERMS + 1)])
    left = ppv_series(card, np.subtract.outer(-orders, -r))  # Gamma_{r-k}
    right = ppv_series(card, np.subtract.outer(-orders, r))  # Gamma_{-r-l}
    total = np.einsum("kr,lr,r->kl", left, right, 1.0 / r)
    gamma = ppv_series(card, -orders)
    square = ppv_square_series(card, -np.add.outer(orders, orders))
    weight = square - np.outer(gamma, gamma) - orders[:, None] * total
    return np.asarray(-weight, dtype=np.complex128)


def second_order_currents(card: Card, injection: ComplexArray) -> ComplexArray:
    """Injection with the currents that cancel its own second-order drift.

        conj(Gamma_q) I_q = -2 conj(F_q) for q > 0,   Gamma_0 I_0 = -F_0

    Args:
        injection: Peak phasors, [A], shape (M, N+1), column = order.

    Returns:
        Peak phasors, the given ones included, [A], shape (M, 2N+1).

    Source: docs/reference/physics.md, second-order averaging.

    Example:
        >>> from oscc.device import load_card
        >>> card = load_card("vo2-two-state-20k")
        >>> current = np.array([[0, 1e-6 + 0j]])
        >>> extra = second_order_currents(card, current)[0, 0].real
        >>> round(extra * 1e12)   # I_0 in pA for 1 uA
        455
    """
    drift = second_order_drift(card, injection)
    order = np.arange(drift.shape[1])
    out = np.zeros(drift.shape, dtype=np.complex128)
    out[:, : injection.shape[1]] = injection
    extra = -2.0 * np.conj(drift) / np.conj(ppv_series(card, order))
    out[:, 0] += 0.5 * extra[:, 0].real
    out[:, 1:] += extra[:, 1:]
    return out
