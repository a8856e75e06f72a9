"""What a model does on one input, in float64: phases, weights, gains by layer.

This is the contract between a digital model and its lowering. The coupling steps use
the model's own update; `flow` is solved exactly here, whatever training used.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from oscc import score_trace
from oscc.arrays import ComplexArray, FloatArray, IntArray, frozen
from oscc.checks import require_choice, require_shape
from oscc.errors import RequestError
from oscc.host_counts import layer_operations, mode_operations, outer_operations
from oscc.models.flow import exact_increment
from oscc.units import counted

if TYPE_CHECKING:
    import torch

    from oscc.models.base import Layer, LayerState, Model
    from oscc.models.config import ModelConfig
    from oscc.models.fsn_mf import FsnMfLayer


@dataclass(frozen=True, slots=True, eq=False)
class LayerTrace:
    """One coupling step on one input; T tokens, K coordinates, H heads, N harmonics.

    `layer`: index of the layer that the step is of.
    `theta_rad` [T,K]: unwrapped phases that enter, sources and targets alike.
    `weights` [H,T,T]: causal attention, row t reads column u.
    `gain_rad` [T,K]: signed gain over the dwell, value gate times bound; 0 for a
    target that starts at rest (`effective_gain`), where it makes no difference.
    `harmonics` [N]; `present_*`, `successor_*` [N,K]: strength and frustration of
    the pair coefficients of both routes (None without a successor route).
    `next_rad` [T,K]: unwrapped phases right after the step, by the model's update.
    `operations`: multiply-accumulates and other counts of the host in this layer, for
    all tokens but where a trace says otherwise.
    `query`, `key` [T,K]: complex, size the gate (the scale in the query's) and angle
    the phase with its drift; the score of a head is the real part of their product.
    """

    name: str
    layer: int
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
    query: ComplexArray | None = None
    key: ComplexArray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ModesTrace:
    """One coupling to the M collective modes of each token on one input.

    `orders` [M]: harmonic of each mode. `into` [M,K], `out` [K,M], `pin` [2,K]:
    complex coefficients, the scale k^-1/2 in `into`. `response`: `linear` or `square`.
    All else as in `LayerTrace`.
    """

    name: str
    layer: int
    theta_rad: FloatArray
    orders: IntArray
    into: ComplexArray
    out: ComplexArray
    pin: ComplexArray
    response: str
    gain_rad: FloatArray
    next_rad: FloatArray
    operations: Mapping[str, int]


Step = LayerTrace | ModesTrace
"""A coupling step: attention, or the coupling to modes."""


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """A model on one input: `tokens` [T], `layers`, `logits` [T,V].

    `layers` holds the coupling steps in the order they run: one a layer, two where a
    coupling to modes follows the attention.

    `successor` says what becomes of the weight that meets no successor (`dropped` or
    `renormalised`); `operations` counts the host outside the layers. `mode` says what
    all operations are counted for: the whole input (`prefill`), or its last token, the
    keys and phases of the others being at hand (`decode`). `read_out`: phasors [T,K],
    scaled prototypes [V,K], complex; logits are the real part of their product.
    """

    family: str
    update: str
    successor: str
    tokens: IntArray
    layers: tuple[Step, ...]
    logits: FloatArray
    operations: Mapping[str, int]
    config: Mapping[str, Any]
    mode: str = "prefill"
    read_out: tuple[ComplexArray, ComplexArray] | None = None


MODES = ("prefill", "decode")
"""What a program computes: every token of the input, or the last one alone."""

# A sum of 128 weighted phasors of size 1 is rounded by less than this many eps.
_ROUNDING = 64.0

Coupling = Callable[[int, Step], npt.NDArray[np.float64]]
"""Layer index and the step's trace on one window -> phases after the step, [T,K]."""


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
        >>> trace(model, [3, 1, 4]).layers[0].gain_rad.shape
        (3, 8)
    """
    kept: list[Step] = []

    def keep(index: int, layer: Step) -> FloatArray:
        kept.append(layer)
        return layer.next_rad

    require_choice("mode", mode, MODES)
    symbols = np.asarray(tokens, np.int64)
    require_shape("tokens", symbols, (-1,), axes="(tokens,)")
    logits, phases = _forward(model, symbols[None], keep)
    config = model.config
    first = 0 if mode == "prefill" else len(symbols) - 1
    attention = layer_operations(config, len(symbols), first)
    collective = mode_operations(config, len(symbols) - first)
    return Trace(
        config.family,
        config.update,
        config.successor,
        frozen(symbols, np.int64),
        tuple(
            replace(one, operations=attention)
            if isinstance(one, LayerTrace)
            else replace(one, operations=collective)
            for one in kept
        ),
        frozen(logits[0]),
        outer_operations(config, len(symbols) - first),
        dict(json.loads(config.to_json())),
        mode,
        score_trace.read_out(model, phases[0]),
    )


def forward_with(
    model: Model,
    tokens: npt.ArrayLike,
    coupling: Coupling | None = None,
    scoring: score_trace.Scoring | None = None,
) -> FloatArray:
    """Logits with every coupling step replaced by what the callable returns.

    The host operations run in float64 on the phases that come back, so that what one
    layer gets wrong is what the next one sees.

    Args:
        model: A model of any family.
        tokens: Symbol numbers, shape (B, T), 1 <= T <= context.
        coupling: Called once per coupling step and window, windows in order within a
            step; returns unwrapped phases [rad], shape (T, K). None: the exact step.
        scoring: Called once per layer and window; None: the exact score.

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
    return _forward(model, tokens, coupling, scoring)[0]


def _forward(
    model: Model,
    tokens: npt.ArrayLike,
    coupling: Coupling | None = None,
    scoring: score_trace.Scoring | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Logits, and the phases that are read out, (B, T, K)."""
    import torch

    from oscc.lower.program import require_lowering

    require_lowering(model.config.family, model.config.values)
    symbols = checked_tokens(model.config, tokens)
    double = cast("Any", copy.deepcopy(model)).double()
    places = [
        (number, part)
        for number, layer in enumerate(double.coupling_layers())
        for part in range(len(layer.stages()))
    ]

    def advance(index: int, state: LayerState) -> torch.Tensor:
        exact = exact_step(double.config, state)
        if coupling is None:
            return torch.from_numpy(exact)
        number, part = places[index]
        layer = double.coupling_layers()[number]
        traced = _mode_traces if part else _layer_traces
        rows = [
            _checked_phases(coupling(number, one), one)
            for one in traced(double.config, number, layer, state, exact)
        ]
        return torch.from_numpy(np.stack(rows))

    score_trace.put_in(double, scoring)
    with torch.no_grad():
        theta = double.run(double.embed(torch.from_numpy(symbols)), advance)
        if scoring is None:
            return _numpy(double.read_out(theta)), _numpy(theta)
        banks = [score_trace.read_out(double, one) for one in _numpy(theta)]
        return np.stack([scoring(-1, *both)[0] for both in banks]), _numpy(theta)


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
            f"the text has {counted(count, 'token')}, "
            f"the model's context is {config.context}. "
            f"Give --max-tokens {config.context} (first {config.context}) "
            "or a shorter text."
        )
    if symbols.min() < 0 or symbols.max() >= config.symbols:
        raise RequestError(
            f"Argument `tokens` must hold symbol numbers of 0 to {config.symbols - 1}."
        )
    return symbols


def _checked_phases(phases: npt.ArrayLike, layer: Step) -> FloatArray:
    out = np.asarray(phases, np.float64)
    require_shape(
        "phases", out, layer.theta_rad.shape, axes="(tokens, k)", where=layer.name
    )
    if not np.isfinite(out).all():
        raise RequestError(f"{layer.name}: the coupling step returned no finite phase.")
    return out


def _layer_traces(
    config: ModelConfig, index: int, layer: Layer, state: LayerState, exact: FloatArray
) -> Sequence[LayerTrace]:
    kernel = layer.coefficients()
    parts = [None if p is None else frozen(p.double().numpy()) for p in kernel[1:]]
    gamma, alpha, successor_gamma, successor_alpha = parts
    operations = layer_operations(config, exact.shape[1])
    harmonics = frozen(kernel.harmonics, np.int64)
    theta, weights = _numpy(state.theta), _numpy(state.weights)
    gain = effective_gain(state)
    query, key = score_trace.projections(layer, state)
    return [
        LayerTrace(
            f"layer.{index}.coupling",
            index,
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
            frozen(score_trace.phasors(query[i]), np.complex128),
            frozen(score_trace.phasors(key[i]), np.complex128),
        )
        for i in range(len(theta))
    ]


def _mode_traces(
    config: ModelConfig, index: int, layer: Layer, state: LayerState, exact: FloatArray
) -> Sequence[ModesTrace]:
    kernel = cast("FsnMfLayer", layer).mode_coefficients()
    into, out, pin = (frozen(part.numpy(), np.complex128) for part in kernel[1:])
    theta, gain = _numpy(state.theta), effective_gain(state)
    return [
        ModesTrace(
            f"layer.{index}.modes",
            index,
            frozen(theta[i]),
            frozen(kernel.orders, np.int64),
            into,
            out,
            pin,
            config.mode_response,
            frozen(gain[i]),
            frozen(exact[i]),
            mode_operations(config, exact.shape[1]),
        )
        for i in range(len(theta))
    ]
