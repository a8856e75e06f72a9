"""Read a trained layer as a coupling function between two oscillators.

    H_j(delta) = sum_n gamma_nj sin(n delta + alpha_nj)

delta is the phase of the source minus that of the target; each route has its own
function. Strengths and offsets are parameters; gates and gains depend on the input and
are read on a fixed sample of text.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from oscc.arrays import FloatArray
from oscc.errors import RequestError

if TYPE_CHECKING:
    import torch
    from matplotlib.figure import Figure

    from oscc.checkpoint import LoadedCheckpoint
    from oscc.models.base import LayerState
    from oscc.models.phase import PhaseLayer, PhaseModel

_SAMPLE_WINDOWS = 4
_QUANTILES = {"min": 0.0, "p5": 0.05, "p50": 0.5, "p95": 0.95, "max": 1.0}


def coupling_layers(loaded: LoadedCheckpoint) -> list[dict[str, Any]]:
    """Every layer of a checkpoint as a coupling function, with its gates and gains.

    Args:
        loaded: What `oscc.load` returned.

    Returns:
        For each layer: `harmonics` [N]; `routes`, name to `gamma` and `alpha_rad`
        [N][k]; `drift_rad` per token [k]; `sharpness` [H]; on the sample, quantiles
        of both `gates`, of `gain_rad` with the share below zero, and of the drive
        |g| sum_n |C_n|; `by_coordinate`, the same quantiles [k] of each coordinate;
        for FSN-MF the same of its `modes`. Empty without phases.

    Example:
        >>> from oscc.testing.tiny import tiny_checkpoint
        >>> (layer,) = coupling_layers(tiny_checkpoint("fsn"))
        >>> sorted(layer["routes"])
        ['present', 'successor']
    """
    from oscc.models.phase import PhaseModel

    if not isinstance(loaded.model, PhaseModel):
        return []
    states = _states(loaded.model, sample(loaded))
    out = []
    for number, layer in enumerate(loaded.model.coupling_layers()):
        steps = len(layer.stages())
        mine = states[number * steps : (number + 1) * steps]
        content = _layer(number, layer, mine[0])
        if steps > 1:
            content["modes"] = _modes(layer, mine[1])
        out.append(content)
    return out


# Tokens of a window: memory grows with their square.
_LONGEST_SAMPLE = 256


def sample(loaded: LoadedCheckpoint) -> torch.Tensor:
    """Fixed windows of symbols: this module's own text in the model's characters.

    Its first 1024 characters fill the windows of a model that knows them all: while
    they stay as they are, so do the numbers on the sample.

    Returns:
        Symbol numbers, shape (windows, context), of 256 at most.
    """
    import torch

    known = set(loaded.vocabulary.characters)
    text = "".join(c for c in Path(__file__).read_text("utf-8") if c in known)
    context = min(loaded.config.context, _LONGEST_SAMPLE)
    symbols = loaded.vocabulary.encode(text or loaded.vocabulary.characters)
    whole = np.resize(symbols, _SAMPLE_WINDOWS * context).astype(np.int64)
    return torch.from_numpy(whole.reshape(_SAMPLE_WINDOWS, context))


def coupling_function(
    gamma: FloatArray, alpha_rad: FloatArray, delta_rad: FloatArray
) -> FloatArray:
    """H(delta) = sum_n gamma_n sin(n delta + alpha_n).

    Args:
        gamma: Strengths of harmonics 1..N, shape (N,).
        alpha_rad: Offsets, shape (N,).
        delta_rad: Source minus target phase, any shape.

    Returns:
        Shape of `delta_rad`.

    Example:
        >>> one, zero = np.ones(1), np.zeros(1)
        >>> float(coupling_function(one, zero, np.array(np.pi / 2)))
        1.0
    """
    order = np.arange(1, len(gamma) + 1)
    angle = np.multiply.outer(delta_rad, order) + alpha_rad
    return np.asarray(np.sin(angle) @ gamma)


def plot_coupling_functions(
    layers: Sequence[dict[str, Any]], path: Path, coordinates: Sequence[int]
) -> None:
    """Draw the coupling functions of some coordinates, a row a layer, a column a route.

    Args:
        layers: What `coupling_layers` returned.
        path: Picture to write, SVG.
        coordinates: Which coordinates.

    Raises:
        RequestError: no layer couples phases, a coordinate does not exist, or the
            file's name does not end in .svg.
    """
    from oscc.files import write_atomic
    from oscc.pages.svg import svg_file

    require_svg(path)
    require_coordinates(layers, coordinates)
    size = 3.6 * len(layers[0]["routes"]), 2.4 * len(layers)
    text = svg_file(lambda f: _draw(f, layers, coordinates), size, "coupling")
    write_atomic(path, text)


def require_svg(path: Path) -> None:
    """Refuse a picture's name that promises another format than it would hold.

    Raises:
        RequestError: the name does not end in .svg.
    """
    if path.suffix.lower() != ".svg":
        raise RequestError(
            f"--plot writes SVG, but `{path}` does not end in .svg. "
            "Choose a name that does."
        )


def require_coordinates(
    layers: Sequence[dict[str, Any]], coordinates: Sequence[int]
) -> None:
    """Refuse coordinates that the layers do not have.

    Args:
        layers: What `coupling_layers` returned.
        coordinates: Which coordinates.

    Raises:
        RequestError: no layer couples phases, or a coordinate does not exist.
    """
    if not layers:
        raise RequestError(
            "This family has no coupling functions. Leave out --plot and --coordinates."
        )
    width = len(layers[0]["drift_rad"])
    for j in coordinates:
        if not 0 <= j < width:
            raise RequestError(
                f"Coordinate {j} does not exist; there are {width}, 0 to {width - 1}."
            )


def _draw(
    figure: Figure, layers: Sequence[dict[str, Any]], coordinates: Sequence[int]
) -> None:
    routes = list(layers[0]["routes"])
    grid = figure.subplots(len(layers), len(routes), squeeze=False, sharex=True)
    delta = np.linspace(-np.pi, np.pi, 241)
    for row, layer in zip(grid, layers, strict=True):
        for axes, route in zip(row, routes, strict=True):
            parts = layer["routes"][route]
            gamma, alpha = np.array(parts["gamma"]), np.array(parts["alpha_rad"])
            for j in coordinates:
                curve = coupling_function(gamma[:, j], alpha[:, j], delta)
                axes.plot(delta, curve, label=f"j = {j}", lw=1.2)
            axes.axhline(0, color="0.7", lw=0.6)
            axes.set(title=f"layer {layer['layer']}, {route}", ylabel="H")
    for axes in grid[-1]:
        axes.set_xlabel("source minus target phase (rad)")
    grid[0, 0].legend()


def _states(model: PhaseModel, tokens: torch.Tensor) -> list[LayerState]:
    """State of every coupling step on the sample, as the digital model runs."""
    import torch

    from oscc.models.phase import couple

    kept: list[LayerState] = []

    def keep(index: int, state: LayerState) -> torch.Tensor:
        kept.append(state)
        return couple(model.config, state)

    with torch.no_grad():
        model(tokens, keep)
    return kept


def _layer(number: int, layer: PhaseLayer, state: LayerState) -> dict[str, Any]:
    import torch

    from oscc.models.host import lift

    kernel = layer.coefficients()
    routes = {"present": (kernel.present_gamma, kernel.present_alpha)}
    if kernel.successor_gamma is not None and kernel.successor_alpha is not None:
        routes["successor"] = (kernel.successor_gamma, kernel.successor_alpha)
    with torch.no_grad():
        reading, read = layer.score.gates(lift(state.theta))
    return {
        "layer": number,
        "harmonics": list(kernel.harmonics),
        "routes": {
            name: {"gamma": gamma.tolist(), "alpha_rad": alpha.tolist()}
            for name, (gamma, alpha) in routes.items()
        },
        "drift_rad": layer.score.drift.tolist(),
        "sharpness": layer.score.sharpness.tolist(),
        "gates": {"query": _spread(reading), "key": _spread(read)},
        **_strengths(state),
        "by_coordinate": {
            "query_gate": _spread_by_coordinate(reading),
            "key_gate": _spread_by_coordinate(read),
            **_strengths_by_coordinate(state),
        },
    }


def _modes(layer: PhaseLayer, state: LayerState) -> dict[str, Any]:
    into, out, pin = layer.mode_in, layer.mode_out, layer.pin
    return {
        "into_modulus": _spread(into[0].hypot(into[1])),  # type: ignore[index]
        "out_modulus": _spread(out[0].hypot(out[1])),  # type: ignore[index]
        "pin_modulus": _spread(pin[0].hypot(pin[1])),  # type: ignore[index]
        **_strengths(state),
        "by_coordinate": _strengths_by_coordinate(state),
    }


def _strengths(state: LayerState) -> dict[str, Any]:
    negative = float((state.gain < 0).double().mean())
    return {
        "gain_rad": {**_spread(state.gain), "negative_share": negative},
        "drive_rad": _spread(_drive(state)),
    }


def _strengths_by_coordinate(state: LayerState) -> dict[str, Any]:
    negative = (state.gain < 0).double().flatten(0, -2).mean(0).tolist()
    return {
        "gain_rad": {**_spread_by_coordinate(state.gain), "negative_share": negative},
        "drive_rad": _spread_by_coordinate(_drive(state)),
    }


def _drive(state: LayerState) -> torch.Tensor:
    return state.gain.abs() * state.a.hypot(state.b).sum(0)


def _spread(values: torch.Tensor) -> dict[str, float]:
    flat = values.detach().double().numpy().ravel()
    levels = np.quantile(flat, list(_QUANTILES.values()))
    return dict(zip(_QUANTILES, (float(x) for x in levels), strict=True))


def _spread_by_coordinate(values: torch.Tensor) -> dict[str, list[float]]:
    """Quantiles over all but the last axis, which are the coordinates."""
    rows = values.detach().double().flatten(0, -2).numpy()
    levels = np.quantile(rows, list(_QUANTILES.values()), axis=0)
    return dict(zip(_QUANTILES, levels.tolist(), strict=True))
