"""What a trained model does, in the figures of the articles.

Copy depth, order parameters by layer, lock fraction of SSA, robustness to disturbances.
Windows are drawn from a stream named by the measure alone, so all models see the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import functional

from oscc.arrays import FloatArray, IntArray
from oscc.models.base import Advance, LayerState
from oscc.models.config import ModelConfig
from oscc.models.disturbance import Disturbance
from oscc.models.phase import PhaseModel, couple
from oscc.models.residual import ResidualModel
from oscc.models.training import batch_of, exact_advance
from oscc.seeds import stream

if TYPE_CHECKING:
    from oscc.corpus import Symbols

DEPTHS = (0, 2, 4, 8, 16, 24)
"""Lower ends of the bins of copy depth: 0-1, 2-3, 4-7, 8-15, 16-23, 24 and more."""
_ROWS = 16


def copy_depths(tokens: IntArray) -> IntArray:
    """Length of the longest text ending at a position that also ended before it.

    Args:
        tokens: Symbol numbers, shape (windows, T); a text is looked for in its window.

    Returns:
        Shape (windows, T).

    Example:
        >>> copy_depths(np.array([[1, 2, 3, 1, 2, 4]])).tolist()
        [[0, 0, 0, 1, 2, 0]]
    """
    depths = np.zeros(tokens.shape, np.int64)
    run = np.zeros(tokens.shape, np.int64)  # at j: common end of [..j] and [..i]
    for i in range(tokens.shape[1]):
        before = np.pad(run, ((0, 0), (1, 0)))[:, :-1]
        run = np.where(tokens == tokens[:, i : i + 1], before + 1, 0)
        if i:
            depths[:, i] = run[:, :i].max(axis=1)
    return depths


def bits_by_copy_depth(
    model: torch.nn.Module, config: ModelConfig, symbols: Symbols, batches: int
) -> list[dict[str, float]]:
    """Bits per character by the copy depth of the position read last.

    Args:
        model: A model of any family.
        config: Its configuration.
        symbols: Part of a corpus.
        batches: Windows by 16 of the model's context.

    Returns:
        For each bin its lower end `from_depth`, `events`, and mean `bits` with the
        standard error `se` over events (None for a bin without two events).
    """
    rows: list[tuple[IntArray, FloatArray]] = []
    for x, y in _batches(symbols, config, batches, "copy depth"):
        rows.append((copy_depths(x.numpy()), _bits(model, config, x, y)))
    depth = np.concatenate([d.ravel() for d, _ in rows])
    bits = np.concatenate([b.ravel() for _, b in rows])
    bins = np.searchsorted(DEPTHS, depth, side="right") - 1
    return [_bin(low, bits[bins == i]) for i, low in enumerate(DEPTHS)]


def _bin(low: int, bits: FloatArray) -> dict[str, Any]:
    enough = len(bits) > 1
    return {
        "from_depth": low,
        "events": len(bits),
        "bits": float(bits.mean()) if enough else None,
        "se": float(bits.std(ddof=1) / np.sqrt(len(bits))) if enough else None,
    }


def order_parameters(
    model: PhaseModel, config: ModelConfig, symbols: Symbols, batches: int
) -> list[dict[str, float]]:
    """How aligned tokens are, by layer, at its input.

        global      = mean |1/T sum_t z_t|
        local       = mean |sum_{u<=t} A_tu z_u|
        local_other = mean |sum_{u<t} A_tu z_u| / (1 - A_tt), t >= 1

    Means run over windows, tokens and coordinates.

    Args:
        model: A model whose layers couple phases.
        config: Its configuration.
        symbols: Part of a corpus.
        batches: Windows by 16 of the model's context.
    """
    kept: list[list[tuple[float, float, float]]] = []

    def watched(index: int, state: LayerState) -> torch.Tensor:
        if state.weights.numel():
            found.append(_alignment(state))
        return couple(config, state)

    with torch.no_grad():
        for x, _ in _batches(symbols, config, batches, "order parameters"):
            found: list[tuple[float, float, float]] = []
            model(x, watched)
            kept.append(found)
    names = ("global", "local", "local_other")
    means = np.array(kept).mean(axis=0)
    return [dict(zip(names, map(float, row), strict=True)) for row in means]


def _alignment(state: LayerState) -> tuple[float, float, float]:
    from oscc.models.kuramoto import weighted

    cosine, sine = state.theta.cos(), state.theta.sin()
    parts = cosine.mean(1).hypot(sine.mean(1)).mean()
    local = torch.hypot(*weighted(state.weights, cosine, sine)).mean()
    own = state.weights.diagonal(dim1=-2, dim2=-1)
    others = (state.weights - torch.diag_embed(own))[:, :, 1:]
    others = others / others.sum(-1, keepdim=True).clamp_min(1e-30)
    rest = torch.hypot(*weighted(others, cosine, sine)).mean()
    return float(parts), float(local), float(rest)


def lock_fractions(
    model: ResidualModel, config: ModelConfig, symbols: Symbols, batches: int
) -> list[list[float]]:
    """Share of the causal pairs that lock, by block and head of an SSA model.

    Args:
        model: An SSA model.
        config: Its configuration.
        symbols: Part of a corpus.
        batches: Windows by 16 of the model's context.
    """
    from oscc.models.ssa import OsnBlock

    kept = []
    causal = torch.ones(config.context, config.context, dtype=torch.bool).tril()
    with torch.no_grad():
        for x, _ in _batches(symbols, config, batches, "lock fractions"):
            vector, rows = model.embed(x), []
            for block in model.blocks:
                assert isinstance(block, OsnBlock)
                locked = block.attention.locking(block.attention_norm(vector)).locked
                rows.append(locked[:, :, causal].double().mean(dim=(0, 2)).tolist())
                vector = block(vector)
            kept.append(rows)
    out: list[list[float]] = np.array(kept).mean(axis=0).tolist()
    return out


def bits_under(
    disturbances: Sequence[Disturbance],
    model: PhaseModel,
    config: ModelConfig,
    symbols: Symbols,
    *,
    batches: int,
) -> list[float]:
    """Bits per character with each disturbance of every coupling step.

    The windows are the same for all; noise is drawn from a stream of its own. The flow
    runs as in training, which is what the disturbance acts on.
    """
    out = []
    for number, disturbance in enumerate(disturbances):
        total = []
        for i, (x, y) in enumerate(_batches(symbols, config, batches, "robustness")):
            rng = stream(0, "robustness noise", 1000 * number + i)
            total.append(_bits(model, config, x, y, disturbance.advance(model, rng)))
        out.append(float(np.mean(total)))
    return out


def _batches(
    symbols: Symbols, config: ModelConfig, batches: int, purpose: str
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for i in range(batches):
        yield batch_of(symbols, config.context, _ROWS, stream(0, purpose, i))


def _bits(
    model: torch.nn.Module,
    config: ModelConfig,
    x: torch.Tensor,
    y: torch.Tensor,
    advance: Advance | None = None,
) -> FloatArray:
    """Bits of every next symbol, the flow exact where nothing else is given."""
    with torch.no_grad():
        logits = model(x, exact_advance(config) if advance is None else advance)
        nats = functional.cross_entropy(logits.transpose(1, 2), y, reduction="none")
    return np.asarray(nats.double().numpy() / np.log(2))
