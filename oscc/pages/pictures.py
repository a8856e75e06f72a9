"""Pictures of a scene: waveforms of a target with its sources, the coupling graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from oscc.arrays import FloatArray
from oscc.device import Card
from oscc.device.piecewise import omega, period_s, waveform_V
from oscc.ir.stage import Stage
from oscc.pages.scene import Scene
from oscc.pages.svg import BLUE, CYCLE, INK, MUTED, ORANGE, svg_file, svg_text
from oscc.phases import TURN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SOURCES_SHOWN = 4
_PERIODS_SHOWN = 6
_EDGES_SHOWN = 300
_WEAKEST_SHOWN = 0.02
_SIDES = {"present": (1.0, BLUE), "successor": (-1.0, ORANGE)}


def _source_panel(axes: Axes, scene: Scene, card: Card) -> None:
    """Waveforms of the strongest sources, one below the other."""
    time = scene.trace.time_s
    strongest = np.argsort(-scene.source, kind="stable")[:_SOURCES_SHOWN]
    strongest = strongest[scene.source[strongest] > 0]
    whole = float(scene.source.sum())
    spread = 1.3 * (card.v_imt_V - card.v_mit_V)
    ticks, labels = [], []
    for row, u in enumerate(strongest):
        phase = scene.theta_rad[u] + omega(card) * time
        centre = -row * spread
        wave = waveform_V(card, phase) - 0.5 * (card.v_imt_V + card.v_mit_V)
        share = float(scene.source[u]) / whole
        axes.plot(
            time / period_s(card),
            centre + wave,
            color=CYCLE[(row + 1) % len(CYCLE)],
            linewidth=0.8 + 1.2 * share,
        )
        ticks.append(centre)
        labels.append(f"{scene.source_names[u]}, {100 * share:.0f} %")
    axes.set_yticks(ticks, labels)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_title("held sources, by share of the coupling")


def _target_panel(axes: Axes, scene: Scene, card: Card) -> None:
    trace = scene.trace
    time = trace.time_s / period_s(card)
    axes.plot(time, trace.free_V, color=MUTED, linewidth=1.0, linestyle="--")
    axes.plot(time, trace.v_V, color=BLUE, linewidth=1.5)
    axes.set_ylabel("node [V]")
    axes.set_title("target (solid) and the same cell left alone (dashed)")
    axes.grid(visible=True)


def waveform_picture(scene: Scene, card: Card, *, alone: bool = False) -> str:
    """Sources, injected current and target over the last periods; phase over all.

    Args:
        scene: Target and dwell to show.
        card: Device card of the program.
        alone: The text of a file instead of an element for a page.
    """
    trace = scene.trace
    time = trace.time_s / period_s(card)
    last = float(time[-1])
    begin = max(0.0, last - _PERIODS_SHOWN)

    def draw(figure: Figure) -> None:
        grid = figure.subplots(4, 1, height_ratios=(1.35, 0.7, 1.1, 1.2))
        _source_panel(grid[0], scene, card)
        grid[1].plot(time, 1e6 * trace.injection_A, color=ORANGE, linewidth=1.2)
        grid[1].set_ylabel("[µA]")
        grid[1].locator_params(axis="y", nbins=4)
        grid[1].set_title("injected current: the sum over all sources")
        grid[1].grid(visible=True)
        _target_panel(grid[2], scene, card)
        for axes in grid[:3]:
            axes.set_xlim(begin, last)
        for axes in grid[:2]:
            axes.tick_params(axis="x", labelbottom=False)
        shown = f"the last {last - begin:.0f} of {last:.0f}"
        grid[2].set_xlabel(f"time in carrier periods ({shown} of this dwell)")
        _phase_panel(grid[3], scene, last)

    return (svg_file if alone else svg_text)(draw, (8.2, 7.4), "waveform")


def _phase_panel(axes: Axes, scene: Scene, last: float) -> None:
    trace = scene.trace
    time = np.linspace(0.0, last, trace.time_s.size)
    axes.plot(time, trace.lead_rad, color=BLUE, linewidth=1.0, label="circuit")
    axes.plot(
        scene.tau * last,
        scene.flow_rad,
        color=INK,
        linewidth=1.4,
        linestyle="--",
        label="what the model asks for",
    )
    axes.plot(last, trace.lead_rad[-1], "o", color=BLUE, markersize=5)
    axes.set_xlim(0, last * 1.01)
    axes.set_xlabel("time in carrier periods, gate open from 0")
    axes.set_ylabel("phase [rad]")
    axes.set_title("phase of the target against the free reference; read at the dot")
    axes.legend(loc="best")
    axes.grid(visible=True)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What one route put into the graph: arcs drawn, arcs there are, widest radius."""

    drawn: int
    existing: int
    reach: float


def _arcs(
    strength: FloatArray, first: int, side: float, colour: str, axes: Axes
) -> _Drawn:
    """Half circles from source to target on one side of the line of tokens.

    Args:
        first: Token of the first row of targets.
    """
    from matplotlib.collections import LineCollection

    row, source = np.nonzero(strength)
    size, target = strength[row, source] / strength.max(), row + first
    order = np.argsort(-size, kind="stable")[:_EDGES_SHOWN]
    order = order[size[order] >= _WEAKEST_SHOWN][::-1]
    angle = np.linspace(0.0, np.pi, 29)
    radius = np.maximum(0.5 * np.abs(target - source)[order], 0.35)
    middle = 0.5 * (target + source)[order]
    x = middle[:, None] + radius[:, None] * np.cos(angle)
    y = side * radius[:, None] * np.sin(angle)
    axes.add_collection(
        LineCollection(
            list(np.stack([x, y], axis=2)),
            linewidths=0.4 + 2.0 * size[order],
            colors=colour,
            alpha=0.12 + 0.75 * size[order],
        )
    )
    return _Drawn(order.size, size.size, float(radius.max()))


def graph_picture(stage: Stage, coordinate: int) -> tuple[str, str]:
    """Coupling graph of one coordinate, with the sentence that says what is drawn.

    Tokens on a line, an arc from each source to each target: above for the route
    `present`, below for `successor`, thicker for stronger.
    """
    found: dict[str, _Drawn] = {}

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for coupling in stage.factored:
            head = coupling.head_of_coordinate[coordinate]
            size = float(np.abs(coupling.gamma[:, coordinate]).sum())
            strength = size * np.abs(coupling.weights[head])
            side, colour = _SIDES[coupling.route]
            if strength.any():
                found[coupling.route] = _arcs(
                    strength, stage.begins, side, colour, axes
                )
        _tokens(figure, axes, stage.theta_rad[:, coordinate], found)

    picture = svg_text(draw, (8.2, 3.6), "graph")
    notes = [
        f"{route} {entry.drawn} of {entry.existing} arcs"
        for route, entry in found.items()
    ]
    return picture, "; ".join(notes) or "this coordinate is not coupled"


def _tokens(
    figure: Figure, axes: Axes, theta: FloatArray, found: Mapping[str, _Drawn]
) -> None:
    """Tokens on their line, coloured by phase, and room for the arcs."""
    shown = axes.scatter(
        np.arange(theta.size),
        np.zeros(theta.size),
        c=np.mod(theta, TURN),
        cmap="twilight",
        vmin=0.0,
        vmax=TURN,
        s=min(42.0, 2600.0 / theta.size),
        edgecolors=INK,
        linewidths=0.5,
        zorder=3,
    )
    reach = {
        side: max(
            (e.reach for r, e in found.items() if _SIDES[r][0] == side), default=0
        )
        for side in (1.0, -1.0)
    }
    pad = 0.03 * theta.size + 0.2
    axes.set(xlim=(-1, theta.size), xlabel="token", yticks=[])
    axes.set_ylim(-reach[-1.0] - pad, reach[1.0] + pad)
    axes.spines[["left", "bottom"]].set_visible(False)
    bar = figure.colorbar(shown, ax=axes, shrink=0.6, aspect=18, pad=0.01)
    bar.set_label("source phase [rad]")
