"""Lowering of the coupling to collective modes of FSN-MF: modes pull their token.

    C'_nj = pin_nj + sum_{m: n_m = n} d_jm f(|Z_m|) Z_m,    Z_m = sum_j c_mj z_j^{n_m}

The host forms Z, or reads it from oscillators (`oscc.lower.mode_drive`), writes one
oscillator for each mode at arg(Z_m) / n_m, and sets the weights; the oscillators form
the sum over the modes. Both coefficients, c and d, stand in the stage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from oscc.arrays import ComplexArray
from oscc.ir.modes import Modes, held

if TYPE_CHECKING:
    from oscc.trace import ModesTrace


def modes_of(step: ModesTrace) -> Modes:
    """The coefficients of a traced step as strengths and offsets."""
    return Modes(
        order=step.orders,
        into_gamma=np.abs(step.into),
        into_alpha_rad=np.angle(step.into),
        out_gamma=np.abs(step.out),
        out_alpha_rad=np.angle(step.out),
        pin_gamma=np.abs(step.pin),
        pin_alpha_rad=np.angle(step.pin),
        response=step.response,
    )


def fields(step: ModesTrace, sums: ComplexArray | None = None) -> dict[str, Any]:
    """Fields of the stage of a traced step: flat banks, sources, pairs.

    Args:
        step: Traced coupling to modes of T tokens and K coordinates.
        sums: The modes Z as they were read, shape (T, M); exact without it.
    """
    modes = modes_of(step)
    sources = held(modes, step.theta_rad, sums)
    shape = step.theta_rad.shape
    place = np.unravel_index(np.arange(step.theta_rad.size), shape)
    return {
        "theta_rad": sources.theta_rad,
        "phi0_rad": step.theta_rad.ravel(),
        "gain_rad": step.gain_rad.ravel(),
        "detuning_rad": np.zeros(step.theta_rad.size),
        "couplings": (sources.edges,),
        "digital_rad": step.next_rad.ravel(),
        "index": np.stack(place, axis=1),
        "source_index": sources.source_index,
        "modes": modes,
    }
