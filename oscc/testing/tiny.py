"""Tiny programs, models and checkpoints: small enough to run in every test.

Their parameters are drawn anew from a seed, frustration offsets and gains of both
signs included, so that no term of an equation is zero by chance.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from oscc.arrays import FloatArray
from oscc.device import card_to_mapping, load_card
from oscc.ir import Coupling, HostOperation, Program, Stage
from oscc.seeds import stream

if TYPE_CHECKING:
    import torch

    from oscc.checkpoint import LoadedCheckpoint
    from oscc.models.phase import PhaseModel

TEXT = "import os\nx = 1"
"""Input of 15 tokens that every vocabulary of ours holds."""


def attention(
    random: np.random.Generator, heads: int, tokens: int, spread: float = 1.0
) -> FloatArray:
    """Causal attention whose rows sum to 1, not symmetric, shape (H, T, T).

    Example:
        >>> attention(np.random.default_rng(0), 1, 1).tolist()
        [[[1.0]]]
    """
    scores = spread * random.standard_normal((heads, tokens, tokens))
    weights = np.tril(np.exp(scores))
    out: FloatArray = weights / weights.sum(axis=2, keepdims=True)
    return out


def tiny_stage(
    seed: int = 0,
    *,
    tokens: int = 4,
    coordinates: int = 4,
    heads: int = 2,
    harmonics: tuple[int, ...] = (1, 2),
    gain_rad: float = 2.0,
    routes: tuple[str, ...] = ("present", "successor"),
    **changes: Any,
) -> Stage:
    """A causal stage with random weights, offsets, and gains of both signs.

    Args:
        seed: Seed of all draws.
        tokens: T, targets and sources alike.
        coordinates: K, a multiple of the heads.
        heads: H.
        harmonics: Orders of every route.
        gain_rad: Largest gain, reached by no target; signs are random.
        routes: Routes of the stage.
        changes: Fields of the stage, such as `scheme`.

    Example:
        >>> tiny_stage(tokens=3).targets
        12
    """
    random = stream(seed, "tiny stage")
    orders = np.array(harmonics)
    shape = (tokens, coordinates)
    # tokens lie near each other, as trained ones do, so that fields do not cancel
    theta = random.uniform(-np.pi, np.pi, coordinates) + random.normal(0, 0.6, shape)
    theta += 2.0 * np.pi * random.integers(-2, 3, shape)
    each = (len(harmonics), coordinates)
    couplings = [
        Coupling(
            route=route,
            harmonics=orders,
            weights=attention(random, heads, tokens),
            gamma=_strengths(random, each) / orders[:, None] ** 2,
            alpha_rad=random.uniform(-np.pi, np.pi, each),
        )
        for route in routes
    ]
    values: dict[str, Any] = {
        "name": "layer.0.coupling",
        "theta_rad": theta,
        "phi0_rad": theta,
        "gain_rad": random.uniform(-gain_rad, gain_rad, shape),
        "detuning_rad": np.zeros(shape),
        "couplings": tuple(couplings),
        "digital_rad": theta,
    }
    return Stage(**(values | changes))


def _strengths(random: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Strengths of .3 to 1 of either sign."""
    signs = random.choice([-1.0, 1.0], shape)
    return np.asarray(signs * random.uniform(0.3, 1.0, shape))


def tiny_program(*stages: Stage, **changes: Any) -> Program:
    """Program of the stages given, or of one `tiny_stage`, on the default card.

    Level ir passes on it: the phases of the digital layer are those of the
    interpreter.

    Example:
        >>> tiny_program().stages[0].targets
        16
    """
    from oscc.ir.interpret import interpret

    chosen = stages or (tiny_stage(),)
    known = [_with_digital(stage, interpret(stage)) for stage in chosen]
    values: dict[str, Any] = {
        "family": "fsn",
        "stages": tuple(known),
        "host_operations": (
            HostOperation("score", 0, 96),
            HostOperation("softmax_exponentials", 0, 20, "exp"),
        ),
        "device": card_to_mapping(load_card("vo2-two-state-6k")),
        "tokens": np.arange(chosen[0].phi0_rad.shape[0]),
    }
    return Program(**(values | changes))


def _with_digital(stage: Stage, phases: FloatArray) -> Stage:
    from dataclasses import replace

    return replace(stage, digital_rad=phases)


def tiny_model(
    family: str = "fsn",
    update: str = "flow",
    *,
    seed: int = 0,
    gain_rad: float = 2.0,
    **sizes: Any,
) -> PhaseModel:
    """Model of random parameters, with 1 layer, k = 4, 2 heads, context 16.

    The value gate has gains of both signs up to `gain_rad`; strengths and offsets of
    every harmonic and route are drawn.

    Example:
        >>> tiny_model("kuramoto").config.k
        4
    """
    from oscc.models.base import build_model
    from oscc.models.config import ModelConfig
    from oscc.models.fsn import FsnLayer
    from oscc.models.fsn_mf import FsnMfLayer
    from oscc.models.phase import PhaseModel

    small: dict[str, Any] = {
        "k": 4,
        "layers": 1,
        "heads": 2,
        "hidden": 8,
        "context": 16,
        "modes": 6,
    }
    model = build_model(ModelConfig(family, update, **(small | sizes)), seed)
    assert isinstance(model, PhaseModel)
    random = stream(seed, "tiny model")
    for layer in model.coupling_layers():
        k, wide = layer.value.weight.shape
        sign = (-1.0) ** (np.arange(k) + random.integers(2))
        _put(layer.value.bias, gain_rad * sign * random.uniform(0.1, 0.8, k))
        _put(layer.value.weight, gain_rad * random.uniform(-0.2, 0.2, (k, wide)) / k)
        if isinstance(layer, FsnLayer):
            shape = tuple(layer.gamma.shape)
            weak = np.arange(1, shape[0] + 1)[:, None, None] ** 2
            _put(layer.gamma, _strengths(random, shape) / weak)
            if layer.alpha.requires_grad:
                _put(layer.alpha, random.uniform(-np.pi, np.pi, shape))
        if isinstance(layer, FsnMfLayer):
            _put(layer.pin, random.normal(0.0, 0.3, tuple(layer.pin.shape)))
    return model


def _put(parameter: torch.nn.Parameter, values: FloatArray) -> None:
    import torch

    parameter.data.copy_(torch.from_numpy(values))


def write_checkpoint(
    path: Path, family: str = "fsn", update: str = "flow", **settings: Any
) -> Path:
    """Write a `tiny_model` as a checkpoint of ours, and return its path."""
    from oscc.checkpoint import save_checkpoint
    from oscc.corpus import ASCII

    model = tiny_model(family, update, **settings)
    save_checkpoint(path, model, model.config, ASCII)
    return path


def tiny_checkpoint(
    family: str = "fsn", update: str = "flow", **settings: Any
) -> LoadedCheckpoint:
    """A `tiny_model` as `oscc.load` would return it.

    Example:
        >>> tiny_checkpoint().vocabulary.size
        98
    """
    from oscc.checkpoint import LoadedCheckpoint
    from oscc.corpus import ASCII
    from oscc.files import sha256_bytes

    model = tiny_model(family, update, **settings)
    digest = sha256_bytes(f"{family} {update} {sorted(settings.items())}".encode())
    return LoadedCheckpoint(model, ASCII, digest)
