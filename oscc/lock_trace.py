"""What an SSA model does on one input, in float64: pairs, lock ratios, factors.

The contract between the digital model and lock stages. The guard below the root of the
layer (1e-12) is left out here: what a pair of a cell reads is sqrt(1 - x^2) itself.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from oscc.arrays import FloatArray, IntArray, frozen
from oscc.checks import require_choice, require_shape
from oscc.errors import RequestError

if TYPE_CHECKING:
    import torch

    from oscc.models.config import ModelConfig
    from oscc.models.ssa import LockState, SsaModel


@dataclass(frozen=True, slots=True, eq=False)
class LockTrace:
    """The locking of one block on one input; H heads, T tokens.

    `ratio` [H,T,T]: x = Delta / (K r J), row i and its partner j; infinite where J
    vanishes or the mask hides the pair. `factor` [H,T,T]: J. `strength` [H,T,T]: K r J.
    `frequency` [H,T,d]: natural frequencies of the tokens, d the width of a head.
    `causal`: whether a token sees itself and earlier ones alone.
    `operations`: multiply-accumulates and other counts of the host in this block.
    """

    name: str
    ratio: FloatArray
    factor: FloatArray
    strength: FloatArray
    frequency: FloatArray
    causal: bool
    operations: Mapping[str, int]

    @property
    def coherence(self) -> FloatArray:
        """Cosine of the phase difference at lock, sqrt(1 - x^2), else 0, [H,T,T].

        Source: Hays, arXiv 2602.14445.
        """
        return locked_coherence(self.ratio)


@dataclass(frozen=True, slots=True, eq=False)
class LockedTrace:
    """An SSA model on one input: `tokens` [T], `layers`, `logits` [T,V].

    `mode` says what the operations are counted for, as in `oscc.trace.Trace`.
    """

    family: str
    tokens: IntArray
    layers: tuple[LockTrace, ...]
    logits: FloatArray
    operations: Mapping[str, int]
    config: Mapping[str, Any]
    mode: str = "prefill"


LockCoupling = Callable[[int, LockTrace], npt.NDArray[np.float64]]
"""Block index and its trace on one window -> coherence of every pair, [H,T,T]."""


def locked_coherence(ratio: FloatArray) -> FloatArray:
    """Cosine at lock of a pair detuned by x times its strength: sqrt(1 - x^2), else 0.

    Example:
        >>> locked_coherence(np.array([0.0, 0.6, 1.0, 7.0, np.inf])).tolist()
        [1.0, 0.8, 0.0, 0.0, 0.0]
    """
    x = np.minimum(np.abs(ratio), 1.0)
    out: FloatArray = np.sqrt((1.0 - x) * (1.0 + x))
    return out


def trace_locks(
    model: SsaModel, tokens: npt.ArrayLike, *, mode: str = "prefill"
) -> LockedTrace:
    """Run an SSA model on one input in float64 and keep the locking of every block.

    Args:
        model: A model of family ssa.
        tokens: Symbol numbers, shape (T,), 1 <= T <= context.
        mode: What the operations of the host are counted for: all tokens, or with
            `decode` the last one alone, the projections of the others being at hand.

    Raises:
        RequestError: the input is empty, too long, or has an unknown symbol; or the
            mode is not known, or cannot be without a causal mask.

    Example:
        >>> from oscc.models.base import build_model
        >>> from oscc.models.config import ModelConfig
        >>> config = ModelConfig("ssa", k=8, layers=1, heads=2, hidden=8)
        >>> trace_locks(build_model(config), [3, 1, 4]).layers[0].ratio.shape
        (2, 3, 3)
    """
    kept: list[LockTrace] = []

    def keep(index: int, layer: LockTrace) -> FloatArray:
        kept.append(layer)
        return layer.coherence

    from oscc.trace import MODES

    require_choice("mode", mode, MODES)
    if mode == "decode" and model.config.mask != "causal":
        raise RequestError(
            "Mode `decode` needs a causal mask: without one a new token changes what "
            "all earlier ones are."
        )
    symbols = np.asarray(tokens, np.int64)
    require_shape("tokens", symbols, (-1,), axes="(tokens,)")
    logits = forward_with_locks(model, symbols[None], keep)[0]
    config = model.config
    first = 0 if mode == "prefill" else len(symbols) - 1
    counted = _layer_operations(config, len(symbols), first)
    return LockedTrace(
        config.family,
        frozen(symbols, np.int64),
        tuple(replace(layer, operations=counted) for layer in kept),
        frozen(logits),
        _outer_operations(config, len(symbols) - first),
        _as_mapping(config),
        mode,
    )


def forward_with_locks(
    model: SsaModel, tokens: npt.ArrayLike, coupling: LockCoupling | None = None
) -> FloatArray:
    """Logits with the coherence of every pair replaced by what the callable returns.

    Args:
        model: A model of family ssa.
        tokens: Symbol numbers, shape (B, T), 1 <= T <= context.
        coupling: Called once per block and window; returns cos of every pair, shape
            (H, T, T). None: the layer's own.

    Returns:
        Logits, shape (B, T, V).

    Raises:
        RequestError: an input cannot be used, or a coherence of another shape, or not
            finite, came back.
    """
    import torch

    from oscc.trace import checked_tokens

    symbols = torch.from_numpy(checked_tokens(model.config, tokens))
    double = cast("Any", copy.deepcopy(model)).double()

    def step(index: int, state: LockState) -> torch.Tensor:
        rows = [
            _checked(
                layer.coherence if coupling is None else coupling(index, layer), layer
            )
            for layer in _layers(double.config, index, state)
        ]
        return torch.from_numpy(np.stack(rows))

    with torch.no_grad():
        vectors = double.run_locked(double.embed(symbols), step)
        return np.asarray(double.read_out(vectors).numpy())


def _layers(config: ModelConfig, index: int, state: LockState) -> list[LockTrace]:
    ratio, factor, strength, frequency = (np.asarray(part.numpy()) for part in state)
    operations = _layer_operations(config, ratio.shape[-1])
    return [
        LockTrace(
            name=f"layer.{index}.locks",
            ratio=frozen(ratio[i]),
            factor=frozen(factor[i]),
            strength=frozen(strength[i]),
            frequency=frozen(frequency[i]),
            causal=config.mask == "causal",
            operations=operations,
        )
        for i in range(len(ratio))
    ]


def _checked(coherence: npt.ArrayLike, layer: LockTrace) -> FloatArray:
    out = np.asarray(coherence, np.float64)
    require_shape(
        "coherence", out, layer.ratio.shape, axes="(heads, T, T)", where=layer.name
    )
    if not np.isfinite(out).all():
        raise RequestError(f"{layer.name}: a cell returned no finite coherence.")
    return out


def _layer_operations(
    config: ModelConfig, tokens: int, first: int = 0
) -> dict[str, int]:
    """Counts of the host in one block; multiply-accumulates but where said.

    Args:
        tokens: Tokens that are read.
        first: First token that is computed; projections, and sums of the order
            parameter, of those before it are at hand from their own steps.
    """
    k, heads = config.k, config.heads
    pairs = (tokens * (tokens + 1) - first * (first + 1)) // 2
    if config.mask != "causal":
        pairs = tokens**2
    tokens -= first
    positions = heads * tokens * config_rates(config)
    return {
        "projections": 4 * tokens * k * k,
        "distances": pairs * k + positions,
        "lock_factors_exponentials": pairs * heads,
        "lock_ratios": 3 * pairs * heads,
        "sine_cosine_pairs": tokens * k,
        "order_parameter": 2 * tokens * k,
        "normalisation": 2 * pairs * heads,
        "values": pairs * k,
        "feed_forward": 2 * tokens * k * config.hidden,
        "norms": 4 * tokens * k,
    }


def config_rates(config: ModelConfig) -> int:
    """Rates of the position term; the published arm has none."""
    from oscc.models.ssa import POSITION_RATES

    return POSITION_RATES if config.arm == "trainable" else 0


def _outer_operations(config: ModelConfig, tokens: int) -> dict[str, int]:
    return {
        "embedding_reads": tokens * config.k,
        "norms": 2 * tokens * config.k,
        "read_out": tokens * config.symbols * config.k,
    }


def _as_mapping(config: ModelConfig) -> dict[str, Any]:
    import json

    return dict(json.loads(config.to_json()))
