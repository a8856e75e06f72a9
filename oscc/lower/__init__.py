"""Lowering: a traced layer becomes oscillator stages, one file a family."""

from oscc.lower.decode import last_token
from oscc.lower.program import LOWERINGS, lower, lower_layer

__all__ = ["LOWERINGS", "last_token", "lower", "lower_layer"]
