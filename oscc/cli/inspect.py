"""`oscc inspect`: look into a build, a checkpoint or the device cards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from oscc.cli import shared
from oscc.cli.checkpoint_text import show_checkpoint
from oscc.cli.options import Option, Run, verb_command
from oscc.cli.output import say, table
from oscc.cli.results import emit, model_section
from oscc.errors import RequestError

_SHOWN = 4  # coordinates, where none are asked for
_KINDS = {"build": "a build", "cards": "the list of device cards"}


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
    help="Every term of one pair: source token (of modes its number), target token, "
    "coordinate. Of pair cells: head, token, partner.",
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
    help="Which coordinates of a checkpoint to show and draw, or all; the first four.",
)
@shared.KEY
def command(
    run: Run,
    path: Path | None,
    *,
    cards: bool,
    pair: str | None,
    plot: Path | None,
    coordinates: str | None,
) -> None:
    """Print what was found."""
    from oscc.verbs.coupling_function import plot_coupling_functions, require_svg
    from oscc.verbs.inspect import inspect

    if plot is not None:
        require_svg(plot)
    found = inspect(
        path,
        pair=pair,
        cards=cards,
        key=run.config.compile.key,
        model_config=model_section(run),
    )
    chosen = _coordinates(found, plot, coordinates)
    if plot is not None:
        plot_coupling_functions(found["coupling"], plot, chosen)
    if emit(run, found, file="inspect.json"):
        return
    if found["kind"] == "checkpoint":
        show_checkpoint(found, chosen)
    else:
        {"cards": _cards, "build": _build}[found["kind"]](found)


def _coordinates(
    found: dict[str, Any], plot: Path | None, asked: str | None
) -> list[int]:
    """Coordinates to show: those asked for, else the first four that there are.

    Raises:
        RequestError: not numbers, not there, or asked of something else.
    """
    from oscc.verbs.coupling_function import require_coordinates

    if found["kind"] != "checkpoint":
        for flag, given in (("--plot", plot), ("--coordinates", asked)):
            if given is not None:
                raise RequestError(
                    f"{flag} shows the coupling functions of a checkpoint, but this "
                    f"is {_KINDS[found['kind']]}. Name a checkpoint."
                )
        return []
    layers = found["coupling"]
    if asked is None and plot is None and not layers:
        return []
    width = len(layers[0]["drift_rad"]) if layers else 0
    if asked is None or asked == "all":
        chosen = list(range(width if asked else min(width, _SHOWN)))
    else:
        parts = [part.strip() for part in asked.split(",")]
        if not all(part.isdecimal() for part in parts):
            raise RequestError(
                f"--coordinates must be numbers such as 0,5,12, or all, not {asked!r}."
            )
        chosen = [int(part) for part in parts]
    require_coordinates(layers, chosen)
    return chosen


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
    program = found["program"]
    say(
        f"{program['family']} · {_computed(program, 'cells' in found)} · device "
        f"{program['device']} · program {program['digest'][:8]}"
    )
    if "cells" in found:
        _cells(found["cells"])
    else:
        _stages(program["stages"])
    _coverage(found["coverage"])
    say(f"engines that have run: {', '.join(found['engines']) or 'none'}")
    for note in program["notes"]:
        say(f"note: {note}")
    for stage in found.get("pair", ()):
        (_cell if "cells" in found else _pair)(stage)


def _computed(program: dict[str, Any], of_cells: bool) -> str:
    """Which tokens are computed, and on what, where that is not all of them."""
    from oscc.units import counted

    count = counted(program["tokens"], "token")
    if program["mode"] == "prefill":
        return count
    held = "projections" if of_cells else "phases"
    last = program["tokens"] - 1
    return (
        f"decode: new token {last} alone, of {count}; {held} of the earlier ones held"
    )


def _stages(stages: list[dict[str, Any]]) -> None:
    from oscc.units import grouped

    rows = [
        (
            stage["name"],
            grouped(_targets(stage["targets"])),
            grouped(stage["coupled_pairs"]),
            grouped(stage["pair_terms"]),
            f"{stage['update']} ({stage['model_update']} model)",
            stage["scheme"],
            f"{stage['periods_in_all']} T",
        )
        for stage in stages
    ]
    columns = ("stage", "targets", "pairs", "pair terms", "update", "scheme", "dwell")
    table(columns, rows, right=(1, 2, 3, 6))


def _cells(stages: list[dict[str, Any]]) -> None:
    """Stages of pair cells; locked and slipping by the closed form."""
    from oscc.units import grouped

    counts = ("cells", "locked", "slipping", "undecided")
    rows = [
        (
            stage["stage"],
            *(grouped(stage[name]) for name in counts),
            f"{stage['largest_ratio']:.4g}",
            f"{stage['coupling']:.3g}",
            f"{stage['pull_rad']:.3g} rad",
            f"{stage['periods']} T",
        )
        for stage in stages
    ]
    columns = ("stage", *counts, "largest x", "K/w0", "pull", "dwell")
    table(columns, rows, right=tuple(range(1, 9)))


def _cell(stage: dict[str, Any]) -> None:
    """One pair of tokens in one stage."""
    where = (
        f"{stage['stage']}: head {stage['head']}, token {stage['token']} with "
        f"{stage['partner']}"
    )
    if stage["cell"] is None:
        say(f"{where}: no cell; proved unlocked by the closed form, coherence 0")
        return
    judged = "decided" if stage["decided"] else "undecided: too near its edge"
    say(
        f"{where}: x {stage['ratio']:.6g}, K r J {stage['strength']:.6g}, detuning "
        f"{stage['detuning_rad']:.6g} rad against a pull of {stage['pull_rad']:.6g} "
        f"rad; {judged}"
    )
    rows = [("digital", f"{stage['digital_coherence']:.6f}", "-", "-")]
    for engine, read in stage["read"].items():
        margin = "-" if read.get("margin") is None else f"{read['margin']:+.4f}"
        rows.append((engine, f"{read['coherence']:.6f}", read["locked"], margin))
    table(("read by", "coherence", "as", "margin"), rows, right=(1, 3))


def _coverage(coverage: dict[str, Any]) -> None:
    """Multiply-accumulates on oscillators and on the host, by layer and in all."""
    from oscc.units import grouped

    named = [
        ("outside" if part["layer"] < 0 else f"layer {part['layer']}", part)
        for part in coverage["layers"]
    ]
    rows = [
        (
            name,
            ", ".join(
                f"{stage.split('.')[-1]} {grouped(macs)}"
                for stage, macs in part.get("stages", {}).items()
            )
            or "-",
            grouped(part["oscillator_macs"]),
            grouped(part["host_macs"]),
            f"{100 * part['share_on_oscillators']:.1f} %",
        )
        for name, part in (*named, ("in all", coverage))
    ]
    columns = (
        "multiply-accumulates",
        "stages",
        "on oscillators",
        "on the host",
        "share",
    )
    table(columns, rows, right=(2, 3, 4))


def _targets(bank: dict[str, int]) -> int:
    """Targets of a grid of tokens and coordinates, or of a list of cells."""
    return bank.get("oscillators") or bank["tokens"] * bank["coordinates"]


def _pair(stage: dict[str, Any]) -> None:
    kind = stage["source_is"]
    word = "source" if kind == "token" else f"{kind} as source"
    say(
        f"{stage['stage']}: {word} at "
        f"{stage['source_theta_rad']:.6g} rad, target "
        f"starts at {stage['target_phi0_rad']:.6g} rad, "
        f"gain {stage['gain_rad']:.6g} rad"
    )
    ends = {"digital": stage["target_digital_rad"], **stage["target_read_rad"]}
    said = ", ".join(f"{name} {value:.6g} rad" for name, value in ends.items())
    say(f"  target ends at: {said}")
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
