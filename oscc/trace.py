"""What a model does on one input, in float64: phases, weights, gains by layer.

This is the contract between a digital model and its lowering. The coupling steps use
the model's own update; `flow` is solved exactly here, whatever training used.
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
from oscc.models.flow import exact_increment

if TYPE_CHECKING:
    import torch

    from oscc.models.base import Layer, LayerState, Model
    from oscc.models.config import ModelConfig


@dataclass(frozen=True, slots=True, eq=False)
class LayerTrace:
    """One coupling step on one input; T tokens, K coordinates, H heads, N harmonics.

    `theta_rad` [T,K]: unwrapped phases that enter, sources and targets alike.
    `weights` [H,T,T]: causal attention, row t reads column u.
    `gain_rad` [T,K]: signed gain over the dwell, value gate times bound; 0 for a
    target that starts at rest (`effective_gain`), where it makes no difference.
    `harmonics` [N]; `present_*`, `successor_*` [N,K]: strength and frustration of
    the pair coefficients of both routes (None without a successor route).
    `next_rad` [T,K]: unwrapped phases right after the step, by the model's update.
    `operations`: multiply-accumulates and other counts of the host in this layer, for
    all tokens but where a trace says otherwise.
    """

    name: str
    theta_rad: FloatArray
    weights: FloatArray
    gain_rad: FloatArray
    harmonics: IntArray
    present_gamma: FloatArray
    present_alpha_rad: FloatArray
    successor_gamma: FloatArray | None
    successor_alpha_rad: FloatArray | None
    next_rad: FloatArray
    operations: Mapping[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """A model on one input: `tokens` [T], `layers`, `logits` [T,V].

    `successor` says what becomes of the weight that meets no successor (`dropped` or
    `renormalised`); `operations` counts the host outside the layers. `mode` says what
    all operations are counted for: the whole input (`prefill`), or its last token, the
    keys and phases of the others being at hand (`decode`).
    """

    family: str
    update: str
    successor: str
    tokens: IntArray
    layers: tuple[LayerTrace, ...]
    logits: FloatArray
    operations: Mapping[str, int]
    config: Mapping[str, Any]
    mode: str = "prefill"


MODES = ("prefill", "decode")
"""What a program computes: every token of the input, or the last one alone."""

# A sum of 128 weighted phasors of size 1 is rounded by less than this many eps.
_ROUNDING = 64.0

Coupling = Callable[[int, LayerTrace], npt.NDArray[np.float64]]
"""Layer index and the layer's trace on one window -> phases after the step, [T,K]."""


def trace(model: Model, tokens: npt.ArrayLike, *, mode: str = "prefill") -> Trace:
    """Run a model on one input in float64 and keep every coupling step.

    Args:
        model: A model of any family.
        tokens: Symbol numbers, shape (T,), 1 <= T <= context.
        mode: What the operations of the host are counted for: all tokens, or with
            `decode` the last one alone. The phases are those of all tokens in both.

    Returns:
        Read-only arrays.

    Raises:
        RequestError: the input is empty, too long, or has an unknown symbol; the
            family has no lowering, or the mode is not known.

    Example:
        >>> from oscc.models.base import build_model
        >>> from oscc.models.config import ModelConfig
        >>> model = build_model(ModelConfig("fsn", k=8, layers=1, heads=2, hidden=8))
        >>> trace(model, [3, 1, 4]).layers[0].weights.shape
        (2, 3, 3)
    """
    kept: list[LayerTrace] = []

    def keep(index: int, layer: LayerTrace) -> FloatArray:
        kept.append(layer)
        return layer.next_rad

    require_choice("mode", mode, MODES)
    symbols = np.asarray(tokens, np.int64)
    require_shape("tokens", symbols, (-1,), axes="(tokens,)")
    logits = forward_with(model, symbols[None], keep)[0]
    config = model.config
    first = 0 if mode == "prefill" else len(symbols) - 1
    counted = _layer_operations(config, len(symbols), first)
    return Trace(
        config.family,
        config.update,
        config.successor,
        frozen(symbols, np.int64),
        tuple(replace(layer, operations=counted) for layer in kept),
        frozen(logits),
        _outer_operations(config, len(symbols) - first),
        _as_mapping(config),
        mode,
    )


def forward_with(
    model: Model, tokens: npt.ArrayLike, coupling: Coupling | None = None
) -> FloatArray:
    """Logits with every layer's coupling step replaced by what the callable returns.

    The host operations run in float64 on the phases that come back, so that what one
    layer gets wrong is what the next one sees.

    Args:
        model: A model of any family.
        tokens: Symbol numbers, shape (B, T), 1 <= T <= context.
        coupling: Called once per layer and window, windows in order within a layer;
            returns unwrapped phases [rad], shape (T, K). None: the exact step.

    Returns:
        Logits, shape (B, T, V).

    Raises:
        RequestError: an input is empty, too long, or has an unknown symbol; phases
            of another shape, or not finite, came back; the family has no lowering.

    Example:
        >>> from oscc.models.base import build_model
        >>> from oscc.models.config import ModelConfig
        >>> model = build_model(ModelConfig("fsn", k=8, layers=1, heads=2, hidden=8))
        >>> forward_with(model, [[3, 1]], lambda i, layer: layer.next_rad).shape
        (1, 2, 98)
    """
    import torch

    from oscc.lower.program import require_lowering

    require_lowering(model.config.family, model.config.values)
    symbols = checked_tokens(model.config, tokens)
    double = cast("Any", copy.deepcopy(model)).double()
    layers = double.coupling_layers()

    def advance(index: int, state: LayerState) -> torch.Tensor:
        exact = exact_step(double.config, state)
        if coupling is None:
            return torch.from_numpy(exact)
        rows = [
            _checked_phases(coupling(index, one), one)
            for one in _layer_traces(double.config, index, layers[index], state, exact)
        ]
        return torch.from_numpy(np.stack(rows))

    with torch.no_grad():
        return _numpy(double(torch.from_numpy(symbols), advance))


def exact_step(config: ModelConfig, state: LayerState) -> FloatArray:
    """Phases after the coupling step by the model's update, the flow solved exactly.

    Args:
        config: The model's configuration; its `update` is used.
        state: Attention, fields and gain of the step.

    Returns:
        Unwrapped phases [rad], shape (B, T, K).

    Raises:
        RequestError: a field or gain is not finite.
    """
    theta, a, gain = _numpy(state.theta), _numpy(state.a), _numpy(state.gain)
    if config.update == "euler":
        return np.asarray(theta + gain * a.sum(axis=0))
    return np.asarray(theta + exact_increment(a, _numpy(state.b), gain))


def effective_gain(state: LayerState) -> FloatArray:
    """Gain of every target, 0 where the target starts at rest.

    A target whose direction is zero stays where it is whatever its gain, by either
    update. Zero is meant to the rounding of the sum that gives the direction: a token
    that reads itself alone, or only tokens of its own symbol, has sources of one phase.
    Without this rule such targets of Kuramoto attention would rest on a repelling phase
    wherever their gain is negative, and hardware would leave it at the first
    disturbance.

    Args:
        state: Attention, fields and gain of the step.

    Returns:
        Signed gain [rad], shape (B, T, K).
    """
    import torch

    a, b = _numpy(state.a), _numpy(state.b)
    step = torch.finfo(state.a.dtype).eps
    rounding = _ROUNDING * step * np.hypot(a, b).sum(axis=0)
    at_rest = np.abs(a.sum(axis=0)) <= rounding
    return np.where(at_rest, 0.0, _numpy(state.gain))


def _numpy(tensor: torch.Tensor) -> FloatArray:
    return np.asarray(tensor.detach().double().numpy())


def checked_tokens(config: ModelConfig, tokens: npt.ArrayLike) -> IntArray:
    """Symbol numbers of windows, shape (B, T), refused where the model has no such.

    Raises:
        RequestError: empty, longer than the context, or an unknown symbol.
    """
    symbols = np.array(tokens, np.int64)
    require_shape("tokens", symbols, (-1, -1), axes="(windows, tokens)")
    count = symbols.shape[1]
    if not symbols.size:
        raise RequestError("The text is empty. Give a text of one token or more.")
    if count > config.context:
        raise RequestError(
            f"the text has {count} tokens, the model's context is {config.context}. "
            f"Give --max-tokens {config.context} (first {config.context}) "
            "or a shorter text."
        )
    if symbols.min() < 0 or symbols.max() >= config.symbols:
        raise RequestError(
            f"Argument `tokens` must hold symbol numbers of 0 to {config.symbols - 1}."
        )
    return symbols


def _checked_phases(phases: npt.ArrayLike, layer: LayerTrace) -> FloatArray:
    out = np.asarray(phases, np.float64)
    require_shape(
        "phases", out, layer.theta_rad.shape, axes="(tokens, k)", where=layer.name
    )
    if not np.isfinite(out).all():
        raise RequestError(f"{layer.name}: the coupling step returned no finite phase.")
    return out


def _layer_traces(
    config: ModelConfig, index: int, layer: Layer, state: LayerState, exact: FloatArray
) -> list[LayerTrace]:
    kernel = layer.coefficients()
    parts = [None if p is None else frozen(p.double().numpy()) for p in kernel[1:]]
    gamma, alpha, successor_gamma, successor_alpha = parts
    operations = _layer_operations(config, exact.shape[1])
    harmonics = frozen(kernel.harmonics, np.int64)
    theta, weights = _numpy(state.theta), _numpy(state.weights)
    gain = effective_gain(state)
    return [
        LayerTrace(
            f"layer.{index}.coupling",
            frozen(theta[i]),
            frozen(weights[i]),
            frozen(gain[i]),
            harmonics,
            cast("FloatArray", gamma),
            cast("FloatArray", alpha),
            successor_gamma,
            successor_alpha,
            frozen(exact[i]),
            operations,
        )
        for i in range(len(theta))
    ]


def _layer_operations(
    config: ModelConfig, tokens: int, first: int = 0
) -> dict[str, int]:
    """Counts of the host in one layer; multiply-accumulates but where said.

    The bound needs the direction at the start, so the host sums the whole field once:
    re and im of every harmonic and route, then its turn into the target's frame.

    Args:
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
    fed = 0 if config.feed_forward == "none" else tokens
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


def _outer_operations(config: ModelConfig, tokens: int) -> dict[str, int]:
    return {
        "embedding_reads": tokens * config.k,
        "sine_cosine_pairs": tokens * config.k,
        "read_out": tokens * config.symbols * 2 * config.k,
    }


def _as_mapping(config: ModelConfig) -> dict[str, Any]:
    import json

    return dict(json.loads(config.to_json()))
