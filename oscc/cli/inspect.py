"""`oscc inspect`: look into a build, a checkpoint or the device cards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from oscc.cli.options import Option, Run, verb_command
from oscc.cli.output import say, table
from oscc.cli.results import emit, model_section
from oscc.errors import RequestError


@verb_command(
    "inspect",
    text="Look into a BUILD folder, a CHECKPOINT, or the shipped device cards.",
    example="oscc inspect --cards",
)
@click.argument("path", type=click.Path(path_type=Path), required=False)
@click.option("--cards", is_flag=True, cls=Option, group="Input", help="List cards.")
@click.option(
    "--pair",
    cls=Option,
    group="Input",
    metavar="U,T,J",
    help="Every term of one pair: source token, target token, coordinate.",
)
@click.option(
    "--plot",
    cls=Option,
    group="Run",
    type=click.Path(path_type=Path),
    metavar="FILE.svg",
    help="Draw the coupling functions of a checkpoint.",
)
@click.option(
    "--coordinates",
    cls=Option,
    group="Run",
    metavar="J,J,...",
    default="0,1,2,3",
    help="Which coordinates --plot draws; the first four by default.",
)
def command(
    run: Run,
    path: Path | None,
    *,
    cards: bool,
    pair: str | None,
    plot: Path | None,
    coordinates: str,
) -> None:
    """Print what was found."""
    from oscc.verbs.inspect import inspect

    found = inspect(
        path,
        pair=pair,
        cards=cards,
        key=run.config.compile.key,
        model_config=model_section(run),
    )
    if plot is not None:
        _plot(found, plot, coordinates)
    if emit(run, found, file="inspect.json"):
        return
    {"cards": _cards, "build": _build, "checkpoint": _checkpoint}[found["kind"]](found)


def _plot(found: dict[str, Any], plot: Path, coordinates: str) -> None:
    from oscc.verbs.coupling_function import plot_coupling_functions

    if found["kind"] != "checkpoint":
        raise RequestError("--plot draws the coupling functions of a checkpoint.")
    parts = [part.strip() for part in coordinates.split(",")]
    if not all(part.isdigit() for part in parts):
        raise RequestError(
            f"--coordinates must be numbers such as 0,5,12, not {coordinates!r}."
        )
    plot_coupling_functions(found["coupling"], plot, [int(part) for part in parts])


def _cards(found: dict[str, Any]) -> None:
    from oscc.units import si_text

    rows = [
        (
            card["name"],
            si_text(card["period_s"], "s"),
            f"{card['duty']:.3f}",
            si_text(card["energy_per_period_J"], "J"),
            card["description"],
        )
        for card in found["cards"]
    ]
    columns = ("card", "period", "duty", "energy a period", "what it is")
    table(columns, rows, right=(1, 2, 3))


def _build(found: dict[str, Any]) -> None:
    from oscc.units import grouped

    program = found["program"]
    say(
        f"{program['family']} · {program['tokens']} tokens · device "
        f"{program['device']} · program {program['digest'][:8]}"
    )
    rows = [
        (
            stage["name"],
            grouped(stage["targets"]["tokens"] * stage["targets"]["coordinates"]),
            grouped(stage["coupled_pairs"]),
            grouped(stage["pair_terms"]),
            f"{stage['update']} ({stage['model_update']} model)",
            stage["scheme"],
            f"{stage['periods_in_all']} T",
        )
        for stage in program["stages"]
    ]
    columns = ("stage", "targets", "pairs", "pair terms", "update", "scheme", "dwell")
    table(columns, rows, right=(1, 2, 3, 6))
    share = 100 * found["coverage"]["share_on_oscillators"]
    say(
        f"on oscillators {share:.0f} % of multiply-accumulates; engines that have run: "
        f"{', '.join(found['engines']) or 'none'}"
    )
    for note in program["notes"]:
        say(f"note: {note}")
    for stage in found.get("pair", ()):
        _pair(stage)


def _pair(stage: dict[str, Any]) -> None:
    say(
        f"{stage['stage']}: source at {stage['source_theta_rad']:.6g} rad, target "
        f"starts at {stage['target_phi0_rad']:.6g} rad, "
        f"gain {stage['gain_rad']:.6g} rad"
    )
    rows = [
        (
            term["route"],
            str(term["harmonic"]),
            f"{term['strength']:.6g}",
            f"{term['frustration_rad']:.6g}",
        )
        for term in stage["terms"]
    ]
    if rows:
        table(("route", "harmonic", "strength", "frustration (rad)"), rows)
    else:
        say("  no term: these two are not coupled")


def _checkpoint(found: dict[str, Any]) -> None:
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
    for layer in found["coupling"]:
        _coupling(layer)
    if found["symbols_are"] == "byte":
        say("symbols: the 256 bytes")
    else:
        say(f"characters: {found['characters']!r}")
    for note in found["notes"]:
        say(f"note: {note}")
    say("can be lowered" if found["can_be_lowered"] else "cannot be lowered yet")


def _coupling(layer: dict[str, Any]) -> None:
    """One layer as a coupling function: ranges over the coordinates."""
    gates, gain = layer["gates"], layer["gain_rad"]
    say(
        f"layer {layer['layer']}: H = sum of gamma sin(n delta + alpha); drift "
        f"{_range(layer['drift_rad'])} rad a token, sharpness "
        f"{_range(layer['sharpness'])}, gates {_span(gates['query'])} (query) and "
        f"{_span(gates['key'])} (key)"
    )
    below = f"{100 * gain['negative_share']:.0f} % below zero"
    say(
        f"  on the sample: gain {_span(gain)} rad, {below}; "
        f"drive {_span(layer['drive_rad'])} rad"
    )
    if "modes" in layer:
        modes = layer["modes"]
        say(
            f"  modes: |c| {_span(modes['into_modulus'])}, |d| "
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
