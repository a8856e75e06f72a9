"""What the host does in a model, counted: for traces and for their programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oscc.models.config import ModelConfig

ONLY_HARDWARE = (
    *("bound", "mode_phases", "mode_weights"),
    *("mode_angles", "mode_equations", "mode_logarithms"),
)
"""Counts of a layer on oscillators that a digital one would not have."""

# Of a product of a complex coefficient and a phasor; a real weight takes two.
_COMPLEX = 4


def layer_operations(
    config: ModelConfig, tokens: int, first: int = 0
) -> dict[str, int]:
    """Counts of the host in one layer; multiply-accumulates but where said.

    The bound needs the direction at the start, so the host sums the whole field once:
    re and im of every harmonic and route, then its turn into the target's frame.

    Args:
        config: The model's configuration.
        tokens: Tokens that are read.
        first: First token that is computed; keys, cosines and sines of those before
            it are at hand from their own steps.
    """
    k, width = config.k, config.hidden
    pairs = (tokens * (tokens + 1) - first * (first + 1)) // 2
    tokens -= first
    routes = 1 if config.family == "kuramoto" else 2
    wide = 2 * k if config.feed_forward == "lift" else k
    gated = 2 * tokens * 2 * k * k if config.gates != "none" else 0
    fields = 2 * config.harmonics * (pairs * k * routes + 2 * tokens * k * (routes - 1))
    turned = 2 * config.harmonics * tokens * k
    feeds = config.feed_forward != "none" and config.family != "fsn-mf"
    fed = tokens if feeds else 0
    return {
        "score_gates": gated,
        "value_gate": tokens * 2 * k * k,
        "score": pairs * 2 * k,
        "softmax_exponentials": pairs * config.heads,
        "sine_cosine_pairs": 2 * tokens * k,
        "bound": 0 if config.bound == "B0" else fields + turned + 3 * tokens * k,
        "feed_forward": fed * (2 * wide * width + width + width * k),
        "feed_forward_bound": 0 if config.bound == "B0" else 2 * fed * k,
    }


def mode_operations(config: ModelConfig, tokens: int) -> dict[str, int]:
    """Counts of the host for the coupling to modes of one layer.

    `modes` forms the second power of every phasor and the sums Z; `mode_sizes` their
    moduli. `mode_phases` and `mode_weights` are there for the oscillators alone: the
    angle of every mode, which is written, and |d| times |Z| of every pair. The bound
    needs the whole field, as for attention.

    Args:
        config: The model's configuration.
        tokens: Tokens that are computed.
    """
    k, modes = config.k, config.modes
    pairs = tokens * k * modes
    size = 2 if config.mode_response == "linear" else 4
    turned = 2 * 2 * tokens * k
    return {
        "sine_cosine_pairs": tokens * k,
        "modes": _COMPLEX * (pairs + tokens * k),
        "mode_sizes": size * tokens * modes,
        "mode_phases": tokens * modes,
        "mode_weights": pairs,
        "bound": 0
        if config.bound == "B0"
        else _COMPLEX * pairs + turned + 3 * tokens * k,
    }


def reader_operations(counts: Mapping[str, int]) -> dict[str, int]:
    """Counts of a coupling to modes whose modes are read from three oscillators each.

    In the place of the sums stand, for each mode, sines and cosines of two angles a
    reader, the equations (15 products, and 8 to solve them), the modulus and a
    logarithm (`oscc.lower.mode_drive`).

    Args:
        counts: What `mode_operations` gave.
    """
    read = counts["mode_phases"]
    kept = {
        name: count
        for name, count in counts.items()
        if name not in ("modes", "mode_sizes")
    }
    return {
        "mode_angles": 2 * 3 * read,
        "mode_equations": (15 + 8) * read,
        "mode_sizes": counts["mode_sizes"],
        "mode_logarithms": read,
        **kept,
    }


def outer_operations(config: ModelConfig, tokens: int) -> dict[str, int]:
    """Counts of the host outside the layers.

    Args:
        config: The model's configuration.
        tokens: Tokens that are computed.
    """
    return {
        "embedding_reads": tokens * config.k,
        "sine_cosine_pairs": tokens * config.k,
        "read_out": tokens * config.symbols * 2 * config.k,
    }
