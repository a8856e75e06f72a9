"""Read-out of collective modes by oscillators: three readers for every mode.

    d phi / d tau = g Im[exp(-i n phi) Z],   Z = sum_j c_j exp(i n theta_j)

Readers are written a third of a turn of harmonic n apart, n phi(0) = s = 0, 2 pi/3,
4 pi/3, and pulled by the oscillators of their token for one dwell. With the increment
d = n (phi(1) - phi(0)) and w = Z / |Z| tanh(n g |Z| / 2) the flow of one harmonic is
tan(d / 2) = Im(w e^{-is}) / (1 + Re(w e^{-is})) (docs/reference/models.md), that is

    Im(w e^{-ib}) = sin(d / 2),   b = s + d / 2,

one linear equation for w a reader. Least squares give w, and Z = w / |w| (2 / (n g))
artanh |w|. Two readers would do but for those w that carry both to the same b, where
the flow is steep; three never meet (docs/decisions/0006-modes.md).

The gain of a mode follows from its coefficients alone: n g = 1 / rms |Z| for phases
drawn at random, which is the norm of c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from oscc.arrays import ComplexArray, FloatArray
from oscc.ir.edges import Edges
from oscc.ir.modes import Modes
from oscc.lower.modes import modes_of
from oscc.phases import TURN

if TYPE_CHECKING:
    from oscc.trace import ModesTrace

READERS = 3
# |w| of a read-out that errors push to 1 or beyond: n g |Z| = 12 at most.
_LEAST = 1e-9  # of the determinant, which is 9/16 for a mode of no size
_LARGEST = float(np.tanh(6.0))


def reader_gain(modes: Modes) -> FloatArray:
    """Gain of the readers of each mode, shape (M,), [rad]."""
    size = np.sqrt((modes.into_gamma**2).sum(axis=1))
    out: FloatArray = 1.0 / (modes.order * np.where(size > 0, size, 1.0))
    return out


def reader_starts(modes: Modes) -> FloatArray:
    """Phases at which the readers of each mode are written, shape (M, 3), [rad]."""
    turned = TURN * np.arange(READERS) / READERS
    out: FloatArray = turned / modes.order[:, None]
    return out


def after_flow(modes: Modes, sums: ComplexArray) -> FloatArray:
    """Phases of the readers after the exact flow, shape (T, M, 3), [rad].

    Args:
        modes: Coefficients.
        sums: The modes Z of every token, shape (T, M).
    """
    start, order = reader_starts(modes), modes.order[:, None]
    size = np.abs(sums)
    share = np.tanh(modes.order * reader_gain(modes) * size / 2)
    w = share * np.exp(1j * np.angle(sums))
    turned = w[:, :, None] * np.exp(-1j * order * start)
    moved = 2 * np.arctan2(turned.imag, 1 + turned.real)
    out: FloatArray = start + moved / order
    return out


def read_modes(modes: Modes, phases_rad: FloatArray) -> ComplexArray:
    """The modes Z of every token from the phases of their readers, shape (T, M).

    Args:
        modes: Coefficients.
        phases_rad: Read-outs, shape (T, 3 M): the readers of a mode side by side.

    Example:
        >>> one, zero = np.ones((1, 1)), np.zeros((1, 1))
        >>> alone = Modes(np.array([1]), one, zero, one, zero, zero, zero)
        >>> sums = np.array([[0.3 - 0.4j]])
        >>> found = read_modes(alone, after_flow(alone, sums).reshape(1, 3))
        >>> complex(found.round(12)[0, 0])
        (0.3-0.4j)
    """
    read = phases_rad.reshape(len(phases_rad), modes.order.size, READERS)
    half = modes.order[:, None] * (read - reader_starts(modes)) / 2
    angle = modes.order[:, None] * reader_starts(modes) + half
    sine, cosine, known = np.sin(angle), np.cos(angle), np.sin(half)
    ss, sc, cc = (
        (one * other).sum(axis=-1)
        for one, other in ((sine, sine), (sine, cosine), (cosine, cosine))
    )
    sy, cy = (sine * known).sum(axis=-1), (cosine * known).sum(axis=-1)
    whole = np.maximum(ss * cc - sc**2, _LEAST)
    w = ((sc * cy - cc * sy) + 1j * (ss * cy - sc * sy)) / whole
    size = np.minimum(np.abs(w), _LARGEST)
    modulus = 2 * np.arctanh(size) / (modes.order * reader_gain(modes))
    out: ComplexArray = modulus * np.exp(1j * np.angle(w))
    return out


def drive_fields(step: ModesTrace) -> dict[str, Any]:
    """Fields of the stage of the readers of a traced step.

    Args:
        step: Traced coupling to modes of T tokens and K coordinates.
    """
    modes = modes_of(step)
    tokens, width = step.theta_rad.shape
    columns = modes.order.size * READERS
    shape = (tokens, columns, width)
    start = np.broadcast_to(reader_starts(modes).ravel(), (tokens, columns))
    mode = np.repeat(np.arange(modes.order.size), READERS)
    target = np.arange(tokens * columns).reshape(tokens, columns, 1)
    source = width * np.arange(tokens)[:, None, None] + np.arange(width)
    each = (
        target,
        source,
        modes.order[mode][:, None],
        modes.into_gamma[mode],
        modes.into_alpha_rad[mode],
    )
    edges = Edges(*(np.broadcast_to(part, shape).ravel() for part in each))
    exact = after_flow(modes, modes.sums(step.theta_rad))
    return {
        "theta_rad": step.theta_rad.ravel(),
        "phi0_rad": start.ravel(),
        "gain_rad": np.broadcast_to(reader_gain(modes)[mode], start.shape).ravel(),
        "detuning_rad": np.zeros(start.size),
        "couplings": (edges,),
        "digital_rad": exact.ravel(),
        "index": _places(tokens, columns),
        "source_index": _places(tokens, width),
        "readers": READERS,
    }


def _places(tokens: int, columns: int) -> Any:
    place = np.unravel_index(np.arange(tokens * columns), (tokens, columns))
    return np.stack(place, axis=1)
