"""Phase flow as torch functions with gradients, for training.

One harmonic uses the closed form. More use RK4 with a number of sub-steps from each
target's drive, and the exact gradient of those discrete steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from oscc.arrays import FloatArray
from oscc.models.flow import drive_strength
from oscc.models.flow_kernels import blocks, rk4_adjoint, rk4_forward

FEWEST_SUBSTEPS = 8
DRIVE_PER_SUBSTEP = 1.0
MOST_SUBSTEPS = 512  # a drive beyond is a diverged run: that target gives NaN


def flow_increment(
    a: torch.Tensor, b: torch.Tensor, gain: torch.Tensor
) -> torch.Tensor:
    """Increment of the flow, differentiable.

    Args:
        a: Im of conj(z)^n C_n, shape (N, ...).
        b: Re of conj(z)^n C_n, shape (N, ...).
        gain: Signed gain [rad], shape (...).

    Returns:
        Shape (...), [rad]; exact for N = 1, RK4 otherwise.

    Source: derived in docs/reference/models.md.

    Example:
        >>> one = torch.ones(1, 1)
        >>> round(float(flow_increment(one, 0 * one, torch.ones(1))), 4)
        0.8658
    """
    if a.shape[0] == 1:
        return _moebius(a[0], b[0], gain)
    scaled: torch.Tensor = _RungeKutta.apply(gain * a, gain * b)  # type: ignore[no-untyped-call]
    return scaled


def _moebius(a: torch.Tensor, b: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
    """2 atan2(u a, 1 + u b), u = tanh(g R / 2) / R, smooth at R = 0."""
    square = a * a + b * b
    x2 = gain * gain * square / 4
    small = x2 < 1e-4
    radius = torch.sqrt(torch.where(small, torch.ones_like(square), square))
    series = gain / 2 * (1 - x2 / 3 + 2 * x2 * x2 / 15)
    u = torch.where(small, series, torch.tanh(gain * radius / 2) / radius)
    return 2 * torch.atan2(u * a, 1 + u * b)


def _flat(x: torch.Tensor) -> FloatArray:
    flat = x.detach().reshape(len(x), -1).to(torch.float64)
    return np.ascontiguousarray(flat.cpu().numpy())


class _RungeKutta(torch.autograd.Function):
    """d(1) from A_n = g a_n and B_n = g b_n, with the adjoint of the steps taken."""

    @staticmethod
    def forward(ctx: Any, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        flat_a, flat_b = _flat(a), _flat(b)
        drive = drive_strength(flat_a, flat_b, np.ones(flat_a.shape[1]))
        ctx.lost, ctx.harmonics = ~(drive <= MOST_SUBSTEPS * DRIVE_PER_SUBSTEP), len(a)
        wanted = np.where(ctx.lost, 0.0, np.ceil(drive / DRIVE_PER_SUBSTEP))
        ctx.plan = blocks(np.maximum(FEWEST_SUBSTEPS, wanted).astype(np.int64))
        ctx.fields = (flat_a, flat_b)
        out = rk4_forward(flat_a, flat_b, *ctx.plan)
        out[ctx.lost] = np.nan
        return torch.from_numpy(out).to(a).reshape(a.shape[1:])

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        (grad,) = grads
        shape = (ctx.harmonics, *grad.shape)
        (flat,) = _flat(grad[None])
        parts = rk4_adjoint(*ctx.fields, *ctx.plan, flat)
        for part in parts:
            part[:, ctx.lost] = np.nan
        left, right = (torch.from_numpy(p).to(grad).reshape(shape) for p in parts)
        return left, right
