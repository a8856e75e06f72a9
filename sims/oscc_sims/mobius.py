"""One harmonic in closed form: the Mobius map of a clamped target.

    w = drive exp(-i phi0),  r = |w|,  t = tanh(r / 2) / r
    phi(1) - phi0 = 2 atan2(t Im w, 1 + t Re w)

Source: dphi/dtau = Im[exp(-i phi) drive] is a Riccati equation in exp(i phi)
(Watanabe and Strogatz 1994); derived in docs/reference/physics.md.
"""

from __future__ import annotations

import numpy as np

from oscc.arrays import ComplexArray, FloatArray


def increment(phi0: FloatArray, drive: ComplexArray) -> FloatArray:
    """Exact phase increment over one dwell, inside (-pi, pi).

    Args:
        phi0: Start phases, shape (M,) [rad].
        drive: g C_1 of each target, shape (M,) [rad].

    Returns:
        phi(1) - phi0, shape (M,) [rad].

    Example:
        >>> float(increment(np.zeros(1), np.zeros(1, complex))[0])
        0.0
    """
    pulled = drive * np.exp(-1j * phi0)
    size = np.abs(pulled)
    safe = np.where(size > 0, size, 1.0)
    factor = np.where(size > 0, np.tanh(0.5 * safe) / safe, 0.5)
    out: FloatArray = 2.0 * np.arctan2(factor * pulled.imag, 1.0 + factor * pulled.real)
    return out
