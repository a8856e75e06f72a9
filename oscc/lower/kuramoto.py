"""Lowering of Kuramoto attention: one route, one harmonic, no frustration.

    dphi_tj/dtau = g_tj sum_u A_tu sin(theta_uj - phi_tj)

The learned drift enters the score alone, which stays on the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oscc.ir.coupling import Coupling

if TYPE_CHECKING:
    from oscc.trace import LayerTrace


def couplings(layer: LayerTrace, successor: str = "dropped") -> tuple[Coupling, ...]:
    """The routes of one traced layer; there is no successor route."""
    return (
        Coupling(
            route="present",
            harmonics=layer.harmonics,
            weights=layer.weights,
            gamma=layer.present_gamma,
            alpha_rad=layer.present_alpha_rad,
        ),
    )
