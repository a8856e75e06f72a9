"""Lowering: a traced layer becomes oscillator stages, one file a family.

Layers that are no family of ours join by stating their coupling (`PhaseCoupling`).
"""

from oscc.lower.decode import last_token
from oscc.lower.own import PhaseCoupling, stage_from
from oscc.lower.program import LOWERINGS, lower, lower_layer, lower_mode_drive
from oscc.lower.vectors import block_coefficients, vector_phases

__all__ = [
    "LOWERINGS",
    "PhaseCoupling",
    "block_coefficients",
    "last_token",
    "lower",
    "lower_layer",
    "lower_mode_drive",
    "stage_from",
    "vector_phases",
]
