"""Lowering: a traced layer becomes oscillator stages, one file a family."""

from oscc.lower.program import LOWERINGS, lower, lower_layer

__all__ = ["LOWERINGS", "lower", "lower_layer"]
