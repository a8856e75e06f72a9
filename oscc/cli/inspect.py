"""`oscc inspect`: look into a build, a checkpoint or the device cards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from oscc.cli.options import Option, Run, verb_command
from oscc.cli.output import say, table
from oscc.cli.results import emit


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
def command(run: Run, path: Path | None, cards: bool, pair: str | None) -> None:
    """Print what was found."""
    from oscc.verbs.inspect import inspect

    found = inspect(path, pair=pair, cards=cards)
    if emit(run, found, file="inspect.json"):
        return
    {"cards": _cards, "build": _build, "checkpoint": _checkpoint}[found["kind"]](found)


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
    say(f"characters: {found['characters']!r}")
    for note in found["notes"]:
        say(f"note: {note}")
    say("can be lowered" if found["can_be_lowered"] else "cannot be lowered yet")
