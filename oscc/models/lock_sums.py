"""Values mixed by locking strengths, a block of rows at a time.

    S_ij = sqrt(max(0, J_ij^2 - D_ij / p_i^2)),  J_ij^2 = exp(-2 a D_ij)
    D_ij = |w_i - w_j|^2 + t_|i-j|,  out_i = sum_j S_ij v_j / (sum_j S_ij + 1e-8)

The strengths are formed for one block of rows after the other, for the columns that the
rows can see, and formed again for the gradient: memory grows with T, not with T^2, and
what a causal mask hides is never computed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from oscc.models.fused import blocks

TINY = 1e-12  # below the root, whose slope at 0 is infinite
ROW = 1e-8  # in the divisor of a row in which nothing locks


class Pairs(NamedTuple):
    """Pairs of a block: D, J^2, what stands below the root, one by that root."""

    square: torch.Tensor
    strongest: torch.Tensor
    inside: torch.Tensor
    by_root: torch.Tensor


def lock_sums(
    frequency: torch.Tensor,
    decay: torch.Tensor,
    pull: torch.Tensor,
    by_distance: torch.Tensor | None,
    values: torch.Tensor,
    *,
    causal: bool,
) -> torch.Tensor:
    """Values mixed by the locking strengths of the pairs.

    Args:
        frequency: Natural frequencies w, shape (B, H, T, d).
        decay: a, shape (H,).
        pull: K r, shape (B, H, T, 1) or (B, H, 1, 1).
        by_distance: t_m of the distances 0 to T - 1 by head, shape (H, T), or None.
        values: v, shape (B, H, T, W).
        causal: Whether a token sees itself and earlier ones alone.

    Returns:
        Shape (B, H, T, W), differentiable once.

    Source: the forms of oscc.models.ssa, with the gradient derived by hand; tested
    against the explicit strengths.

    Example:
        >>> one = torch.ones(1, 1, 2, 1)
        >>> lock_sums(one, torch.ones(1), one, None, one, causal=False).flatten()
        tensor([1., 1.])
    """
    table = frequency.new_zeros(0) if by_distance is None else by_distance
    slope = pull.pow(-2).expand(*frequency.shape[:3], 1)
    mixed: torch.Tensor = _LockSums.apply(  # type: ignore[no-untyped-call]
        frequency, decay, slope, table, values, causal
    )
    return mixed


class _LockSums(torch.autograd.Function):
    """Mixed values, with a gradient that forms the strengths again."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> torch.Tensor:
        frequency, decay, slope, table, values, causal = inputs
        mixed, size = torch.empty_like(values), torch.empty_like(slope)
        for rows, seen in blocks(values.shape[2], causal=causal):
            pairs = _pairs(frequency, decay, slope, table, (rows, seen))
            strength = _strength(pairs, rows, causal=causal)
            size[:, :, rows] = strength.sum(-1, keepdim=True) + ROW
            mixed[:, :, rows] = strength @ values[:, :, seen] / size[:, :, rows]
        ctx.save_for_backward(frequency, decay, slope, table, values, mixed, size)
        ctx.causal = causal
        return mixed

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        frequency, decay, slope, table, values, mixed, size = ctx.saved_tensors
        by_mixed = grads[0] / size
        level = (by_mixed * mixed).sum(-1, keepdim=True)
        parts = (frequency, decay, slope, table, values)
        outs = tuple(torch.zeros_like(part) for part in parts)
        by_frequency, by_decay, by_slope, by_table, by_values = outs
        for rows, seen in blocks(values.shape[2], causal=ctx.causal):
            pairs = _pairs(frequency, decay, slope, table, (rows, seen))
            strength = _strength(pairs, rows, causal=ctx.causal)
            by_values[:, :, seen] += strength.mT @ by_mixed[:, :, rows]
            by_strength = by_mixed[:, :, rows] @ values[:, :, seen].mT
            by_strength -= level[:, :, rows]
            # d(x / root) / dx = (1 - x / (2 root^2)) / root; 0 where nothing locks
            share = pairs.inside * pairs.by_root.square()
            by_inside = by_strength.mul_(share.mul_(-0.5).add_(1).mul_(pairs.by_root))
            by_inside.masked_fill_(strength == 0, 0.0)
            by_slope[:, :, rows] = -(by_inside * pairs.square).sum(-1, keepdim=True)
            bent = by_inside * pairs.strongest
            by_decay -= 2 * (bent * pairs.square).sum((0, 2, 3))
            bent.mul_(-2 * decay[:, None, None]).addcmul_(
                by_inside, slope[:, :, rows], value=-1.0
            )
            if table.numel():
                _add_by_distance(by_table, bent.sum(0), rows.start)
            _diagonal(bent, rows).zero_()
            _add_square(by_frequency, frequency, bent, (rows, seen))
        return *outs, None


def _pairs(
    frequency: torch.Tensor,
    decay: torch.Tensor,
    slope: torch.Tensor,
    table: torch.Tensor,
    place: tuple[slice, slice],
) -> Pairs:
    """What a block of rows and the columns that it sees need."""
    rows, seen = place
    own = frequency.square().sum(-1)
    square = frequency[:, :, rows] @ frequency[:, :, seen].mT
    square.mul_(-2).add_(own[:, :, rows, None]).add_(own[:, :, None, seen]).relu_()
    _diagonal(square, rows).zero_()  # rounding apart, a token is itself
    if table.numel():
        square += _distances(table, rows, seen)
    strongest = torch.exp(square * (-2 * decay[:, None, None]))
    inside = (strongest - square * slope[:, :, rows]).relu_()
    return Pairs(square, strongest, inside, (inside + TINY).rsqrt_())


def _strength(pairs: Pairs, rows: slice, *, causal: bool) -> torch.Tensor:
    """S, 0 where a pair does not lock or is hidden."""
    strength = pairs.inside * pairs.by_root
    if causal:
        strength[..., rows].tril_()
    return strength


def _diagonal(pairs: torch.Tensor, rows: slice) -> torch.Tensor:
    """Entries of each row of the block with itself."""
    return pairs[..., rows].diagonal(dim1=-2, dim2=-1)


def _distances(table: torch.Tensor, rows: slice, seen: slice) -> torch.Tensor:
    """t_|i-j| of the rows and columns, shape (H, R, C)."""
    tokens = table.shape[-1]
    both = torch.cat([table.flip(-1), table[:, 1:]], -1)  # of the offsets j - i
    windows = both.unfold(-1, seen.stop, 1)
    return windows[:, tokens - rows.stop : tokens - rows.start].flip(1)


def _add_by_distance(out: torch.Tensor, pairs: torch.Tensor, first: int) -> None:
    """Add the sums along the diagonals, by distance; `first` is the first row."""
    heads, rows, columns = pairs.shape
    padded = torch.nn.functional.pad(pairs, (rows - 1, rows - 1))
    wide = padded.shape[-1]
    skewed = padded.as_strided(
        (heads, rows, columns + rows - 1), (rows * wide, wide + 1, 1)
    )
    offset = torch.arange(1 - rows, columns, device=out.device)
    out.index_add_(-1, (first - offset).abs(), skewed.sum(1))


def _add_square(
    out: torch.Tensor,
    frequency: torch.Tensor,
    by_square: torch.Tensor,
    place: tuple[slice, slice],
) -> None:
    """Add the gradient by |w_i - w_j|^2 to that by the frequencies."""
    rows, seen = place
    one, other = frequency[:, :, rows], frequency[:, :, seen]
    out[:, :, rows] += 2 * (one * by_square.sum(-1, keepdim=True) - by_square @ other)
    out[:, :, seen] += 2 * (other * by_square.sum(-2)[..., None] - by_square.mT @ one)
