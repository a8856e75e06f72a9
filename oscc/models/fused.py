"""Causal attention on stacked phasors, a block of rows at a time.

    sums_t = sum_{u<=t} A_tu y_u,   A = softmax over u <= t of query_t . key_u

The weights are formed for one block of rows after the other, for the columns that the
rows can see. Those of long windows are formed again for the gradient, so that memory
grows with T, not with T^2; those of short ones are kept, which is faster.
Coupling to the successor needs the sum over u < t with y_{u+1} for y_u, and A_tt beside
it: the own key may not bring in what comes after the token, not even its rounding.
"""

from __future__ import annotations

from typing import Any

import torch

KEPT_TO = 256  # tokens
ROWS = 32  # of a block: few masked columns, and not too many calls (measured)


def causal_sums(
    query: torch.Tensor,
    key: torch.Tensor,
    values: torch.Tensor,
    *,
    own_too: bool = True,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Weighted sums of the values, and the weight of the own key.

    Args:
        query: Scaled queries, shape (B, H, T, w).
        key: Keys, shape (B, H, T, w).
        values: What is summed, shape (B, H, T, W).
        own_too: Whether the own key takes part in the sum, or the earlier ones alone.

    Returns:
        Sums (B, H, T, W) and A_tt (B, H, T, 1), differentiable once.

    Source: Dao et al., arXiv 2205.14135 (recomputing the weights for the gradient, and
    the row sums of P dP as those of out dout); tested against the explicit weights.

    Example:
        >>> one = torch.ones(1, 1, 2, 1)
        >>> causal_sums(one, one, one)[1].flatten()
        tensor([1.0000, 0.5000])
    """
    found: tuple[torch.Tensor, torch.Tensor] = _CausalSums.apply(  # type: ignore[no-untyped-call]
        query, key, values, own_too
    )
    return found


class _CausalSums(torch.autograd.Function):
    """Sums and own weights, with a gradient that forms the weights again."""

    @staticmethod
    def forward(
        ctx: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        values: torch.Tensor,
        own_too: bool,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        q, k, v = (part.flatten(0, 1) for part in (query, key, values))
        sums, own = torch.empty_like(v), q.new_empty(*q.shape[:2], 1)
        kept: list[torch.Tensor] = []
        for rows, seen in blocks(q.shape[1]):
            weights = _weights(q[:, rows], k[:, seen])
            own[:, rows, 0] = _diagonal(weights)
            if not own_too:
                _diagonal(weights).zero_()
            sums[:, rows] = torch.bmm(weights, v[:, seen])
            if q.shape[1] <= KEPT_TO:
                kept.append(weights)
        ctx.save_for_backward(q, k, v, sums, own, *kept)
        ctx.lead, ctx.own_too = query.shape[:2], own_too
        return sums.view(values.shape), own.view(*ctx.lead, -1, 1)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        q, k, v, sums, own, *kept = ctx.saved_tensors
        by_sums, by_own = (part.flatten(0, 1) for part in grads)
        level = (by_sums * sums).sum(-1, keepdim=True) + by_own * own
        by_q, by_k, by_v = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
        alone = by_own - level  # what the own weight is worth outside of the sum
        for i, (rows, seen) in enumerate(blocks(q.shape[1])):
            weights = kept[i] if kept else _weights(q[:, rows], k[:, seen])
            by_score = torch.bmm(by_sums[:, rows], v[:, seen].mT)
            if ctx.own_too:
                _diagonal(by_score).add_(by_own[:, rows, 0])
            else:
                _diagonal(weights).zero_()
            by_score.sub_(level[:, rows]).mul_(weights)
            if not ctx.own_too:
                _diagonal(by_score).copy_((own * alone)[:, rows, 0])
            by_v[:, seen].baddbmm_(weights.mT, by_sums[:, rows])
            by_q[:, rows] = torch.bmm(by_score, k[:, seen])
            by_k[:, seen].baddbmm_(by_score.mT, q[:, rows])
        return *(x.view(*ctx.lead, *x.shape[1:]) for x in (by_q, by_k, by_v)), None


def blocks(tokens: int, *, causal: bool = True) -> list[tuple[slice, slice]]:
    """Rows of each block, and the columns that they see.

    Example:
        >>> blocks(ROWS + 1)[1] == (slice(ROWS, ROWS + 1), slice(0, ROWS + 1))
        True
    """
    out = []
    for first in range(0, tokens, ROWS):
        last = min(first + ROWS, tokens)
        out.append((slice(first, last), slice(0, last if causal else tokens)))
    return out


def _weights(query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """Softmax over the columns up to the own one; the rows are the last columns."""
    scores = torch.bmm(query, key.mT)
    rows = query.shape[1]
    future = query.new_full((rows, rows), -torch.inf).triu_(1)
    scores[:, :, -rows:] += future
    return torch.softmax(scores, -1)


def _diagonal(weights: torch.Tensor) -> torch.Tensor:
    """Entries of each row with itself; the rows are the last columns."""
    return weights[:, :, -weights.shape[1] :].diagonal(dim1=-2, dim2=-1)
