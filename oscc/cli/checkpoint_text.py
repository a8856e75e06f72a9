"""A checkpoint as text for a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oscc.cli.output import say, table

_GAINS = ("p5", "p50", "p95")
_WHERE = {
    "oscillators": "on oscillators",
    "refused": "refused",
    "host": "on the host",
}


def show_checkpoint(found: dict[str, Any], coordinates: Sequence[int]) -> None:
    """Print a checkpoint: tensors, parts of the layers, coupling functions, notes.

    Args:
        found: What `inspect_checkpoint` returned.
        coordinates: Which coordinates of the coupling functions.
    """
    say(
        f"{found['family']} · update {found['update']} · {found['parameters']} "
        f"parameters · sha256 {found['digest'][:8]}"
    )
    largest = found["largest_tensor_value"]
    rows = [
        (name, " x ".join(map(str, shape)) or "scalar", f"{largest[name]:.4g}")
        for name, shape in found["tensors"].items()
    ]
    table(("tensor", "shape", "largest"), rows, right=(2,))
    _parts(found)
    for layer in found["coupling"]:
        _coupling(layer)
        _by_coordinate(layer, coordinates)
    if found["symbols_are"] == "byte":
        say("symbols: the 256 bytes")
    else:
        say(f"characters: {found['characters']!r}")
    for note in found["notes"]:
        say(f"note: {note}")
    say("can be lowered" if found["can_be_lowered"] else found["refusal"])


def _parts(found: dict[str, Any]) -> None:
    """Where every part of every layer runs, a line a layer."""
    named = [(f"layer {one['layer']}", one["parts"]) for one in found["layers"]]
    for name, parts in (*named, ("outside the layers", found["outside"])):
        shares = []
        for where, words in _WHERE.items():
            inside = [part["part"] for part in parts if part["where"] == where]
            shares += [f"{words} {', '.join(inside)}"] if inside else []
        say(f"{name}: {'; '.join(shares)}")


def _coupling(layer: dict[str, Any]) -> None:
    """One layer as a coupling function: ranges over the coordinates."""
    gates, gain = layer["gates"], layer["gain_rad"]
    say(
        f"layer {layer['layer']}: H = sum of gamma sin(n delta + alpha); drift "
        f"{_range(layer['drift_rad'])} rad a token, sharpness "
        f"{_range(layer['sharpness'])}; 5 to 95 % of the gates "
        f"{_span(gates['query'])} (query) and {_span(gates['key'])} (key)"
    )
    below = f"{100 * gain['negative_share']:.0f} % below zero"
    say(
        f"  on the sample, 5 to 95 %: gain {_span(gain)} rad, {below}; "
        f"drive {_span(layer['drive_rad'])} rad"
    )
    if "modes" in layer:
        modes = layer["modes"]
        say(
            f"  modes, 5 to 95 %: |c| {_span(modes['into_modulus'])}, |d| "
            f"{_span(modes['out_modulus'])}, |pin| {_span(modes['pin_modulus'])}, "
            f"drive {_span(modes['drive_rad'])} rad"
        )
    rows = [
        (route, str(n), _range(gamma), _range(alpha))
        for route, parts in layer["routes"].items()
        for n, gamma, alpha in zip(
            layer["harmonics"], parts["gamma"], parts["alpha_rad"], strict=True
        )
    ]
    table(("route", "harmonic", "gamma", "alpha (rad)"), rows)


def _range(values: list[float]) -> str:
    return f"{min(values):.3g} to {max(values):.3g}"


def _span(spread: dict[str, float]) -> str:
    """5 % and 95 % quantile."""
    return f"{spread['p5']:.3g} to {spread['p95']:.3g}"


def _by_coordinate(layer: dict[str, Any], coordinates: Sequence[int]) -> None:
    """Coefficients of the chosen coordinates, their gates and gains on the sample."""
    spreads = layer["by_coordinate"]
    gain = spreads["gain_rad"]
    kernels = [
        (f"{route} {n}", parts["gamma"][i], parts["alpha_rad"][i])
        for route, parts in layer["routes"].items()
        for i, n in enumerate(layer["harmonics"])
    ]
    rows = [
        (
            str(j),
            f"{layer['drift_rad'][j]:.3g}",
            *(f"{gamma[j]:.3g}, {alpha[j]:.3g}" for _, gamma, alpha in kernels),
            _span_of(spreads["query_gate"], j),
            _span_of(spreads["key_gate"], j),
            ", ".join(f"{gain[level][j]:.3g}" for level in _GAINS),
            f"{100 * gain['negative_share'][j]:.0f} %",
        )
        for j in coordinates
    ]
    heads = [f"{name}: gamma, alpha" for name, _, _ in kernels]
    gates = ("query gate", "key gate")
    gains = ("gain p5, p50, p95 (rad)", "below 0")
    table(("j", "drift", *heads, *gates, *gains), rows, right=(0, 1))


def _span_of(spread: dict[str, list[float]], j: int) -> str:
    return f"{spread['p5'][j]:.3g} to {spread['p95'][j]:.3g}"
