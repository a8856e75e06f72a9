"""Attention on stacked phasors without the matrix of its weights.

    present_t   = sum_{u<=t} A_tu y_u
    successor_t = sum_{u<t}  A_tu y_{u+1} = sum_{u<=t} A_tu y_{u+1} - A_tt y_{t+1}

Both come from one call of scaled_dot_product_attention. So does A_tt: one more key,
placed before all others, scores for token t what t scores for itself, and its value is
an indicator. With p the weight it draws, A_tt = p / (1 - p), and every other sum is
1 / (1 - p) too small; p lies in (0, 1/2], so nothing cancels.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch.nn import functional

FUSED_FROM = 384  # tokens; below, the explicit weights are faster (benchmarks)


class RouteSums(NamedTuple):
    """Sums over the read tokens, (B, H, T, W) each, and A_tt, (B, H, T, 1)."""

    present: torch.Tensor
    successor: torch.Tensor | None
    own: torch.Tensor


def route_sums(
    query: torch.Tensor, key: torch.Tensor, values: torch.Tensor, *, successor: bool
) -> RouteSums:
    """Weighted sums of both routes from queries, keys and values.

    Args:
        query: Scaled queries, shape (B, H, T, w).
        key: Keys, shape (B, H, T, w).
        values: What is summed, shape (B, H, T, W).
        successor: Whether to sum over the successors too.

    Returns:
        `present`, `successor` (None if not asked for) and the weight A_tt.

    Source: derived above; tested against the explicit weights.

    Example:
        >>> one = torch.ones(1, 1, 2, 1)
        >>> route_sums(one, one, one, successor=True).own.flatten().round(decimals=4)
        tensor([1.0000, 0.5000])
    """
    following = torch.cat([values[:, :, 1:], torch.zeros_like(values[:, :, :1])], 2)
    stacked = torch.cat([values, following], -1) if successor else values
    wide, asked = stacked.shape[-1], query.shape[-1]
    size = max(wide, asked) + 1  # equal widths, which the fused kernels ask for
    own_score = (query * key).sum(-1, keepdim=True)
    queries = functional.pad(
        torch.cat([query, own_score], -1), (0, size - asked - 1, 1, 0)
    )
    keys = functional.pad(key, (0, size - asked, 1, 0)) + _sink(key, size, asked)
    padded = functional.pad(stacked, (0, size - wide, 1, 0))
    out = functional.scaled_dot_product_attention(
        queries, keys, padded + _sink(key, size, wide), is_causal=True, scale=1.0
    )[:, :, 1:]
    drawn = out[..., wide : wide + 1]
    sums, own = out[..., :wide] / (1 - drawn), drawn / (1 - drawn)
    if not successor:
        return RouteSums(sums, None, own)
    present, later = sums.chunk(2, -1)
    return RouteSums(present, later - own * following, own)


def _sink(key: torch.Tensor, size: int, place: int) -> torch.Tensor:
    """One at the given coordinate of the key placed first, else 0."""
    out = key.new_zeros(key.shape[2] + 1, size)
    out[0, place] = 1.0
    return out
