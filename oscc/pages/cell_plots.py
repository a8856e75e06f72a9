"""Pictures of pair cells: the lock law, two cells at work, which pairs have one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from oscc.arrays import FloatArray, IntArray
from oscc.device.lock_law import phase_difference_rad
from oscc.pages.cells import FAR, HIDDEN, LOCKS, OPEN, SELF, SLIPS, CellScene
from oscc.pages.plots import thinned
from oscc.pages.svg import BLUE, GREEN, INK, MUTED, ORANGE, RED, VIOLET, svg_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINTS = 700  # of an engine
_PERIODS_SHOWN = 4
_MARKS = {"phase": (GREEN, ".", 3.0), "circuit": (BLUE, "o", 2.4)}
_SIMULATORS = ((ORANGE, "x"), (VIOLET, "+"))
_KINDS = {
    LOCKS: ("cell, locked", BLUE),
    SLIPS: ("cell, slipping", ORANGE),
    OPEN: ("cell, undecided", RED),
    FAR: ("no cell, proved unlocked", "#d3dbe3"),
    SELF: ("a token and itself, no cell", INK),
    HIDDEN: ("not asked", "#ffffff"),
}

Points = tuple[str, FloatArray, FloatArray]
"""Engine, x and coherence of its cells, both (M,)."""


def ideal(ratio: FloatArray) -> FloatArray:
    """The closed form sqrt(1 - x^2), 0 above the edge.

    Example:
        >>> ideal(np.array([0.6, 2.0])).tolist()
        [0.8, 0.0]
    """
    x = np.minimum(ratio, 1.0)
    return np.asarray(np.sqrt((1.0 - x) * (1.0 + x)))


def coherence_picture(series: Sequence[Points], edges: tuple[float, float]) -> str:
    """Coherence of every cell against x, and its difference to the closed form.

    Args:
        series: One an engine.
        edges: x up to which a dwell has settled, and from which it has seen a slip.
    """
    last = max((float(x.max()) for _, x, _ in series), default=1.2)
    last = max(last, edges[1]) + 0.02

    def draw(figure: Figure) -> None:
        upper, lower = figure.subplots(2, 1, height_ratios=(1.5, 1.0), sharex=True)
        grid = np.unique(np.concatenate([np.linspace(0, last, 400), [1.0]]))
        upper.plot(grid, ideal(grid), color=INK, linewidth=1.2, label="√(1 − x²)")
        for axes in (upper, lower):
            axes.axvspan(*edges, color=RED, alpha=0.12, linewidth=0)
            axes.grid(visible=True)
        _engines(upper, lower, series)
        lower.axhline(0.0, color=INK, linewidth=0.8)
        upper.set_ylabel("coherence")
        lower.set_ylabel("less √(1 − x²)")
        lower.set(xlim=(0, last), xlabel="x = Δ / (K r J), detuning over lock range")
        upper.plot([], [], color=RED, alpha=0.25, linewidth=6, label="undecided")
        upper.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), markerscale=2)

    return svg_text(draw, (8.2, 4.4), "coherence")


def _engines(upper: Axes, lower: Axes, series: Sequence[Points]) -> None:
    others = 0
    for engine, x, coherence in series:
        error = coherence - ideal(x)
        keep = thinned(x, np.abs(error), _POINTS)
        if engine in _MARKS:
            colour, mark, size = _MARKS[engine]
        else:
            colour, mark = _SIMULATORS[others % len(_SIMULATORS)]
            size, others = 5.0, others + 1
        for axes, values in ((upper, coherence), (lower, error)):
            axes.plot(
                x[keep],
                values[keep],
                linestyle="none",
                marker=mark,
                markersize=size,
                markeredgewidth=1.0 if mark in "x+" else 0,
                alpha=0.6,
                color=colour,
                label=engine,
            )


def cells_picture(scenes: Sequence[CellScene]) -> str:
    """Both node voltages at the start and the end of the dwell, and psi along it.

    Args:
        scenes: A column each.
    """

    def draw(figure: Figure) -> None:
        grid = figure.subplots(3, len(scenes), squeeze=False)
        for column, scene in enumerate(scenes):
            shown = min(_PERIODS_SHOWN, scene.periods)
            _nodes(grid[0, column], scene, (0.0, float(shown)))
            last = float(scene.periods)
            _nodes(grid[1, column], scene, (last - shown, last))
            _psi(grid[2, column], scene)
            grid[0, column].set_title(f"{scene.kind}, x = {scene.ratio:.3f}: start")
            grid[1, column].set_title("end of the dwell")
            grid[2, column].set_title("phase difference at every crossing")
        for axes in grid[:2, 0]:
            axes.set_ylabel("nodes [V]")
        grid[2, 0].set_ylabel("ψ [rad]")
        grid[2, 0].legend(loc="best")

    return svg_text(draw, (8.2, 5.4), "cells")


def _nodes(axes: Axes, scene: CellScene, span: tuple[float, float]) -> None:
    trace = scene.trace
    inside = (trace.time >= span[0]) & (trace.time <= span[1])
    for one, (colour, style) in enumerate(((BLUE, "-"), (ORANGE, "--"))):
        axes.plot(
            trace.time[inside],
            trace.v_V[one, inside],
            color=colour,
            linestyle=style,
            linewidth=1.2,
        )
    axes.set_xlim(*span)
    axes.grid(visible=True)


def _psi(axes: Axes, scene: CellScene) -> None:
    time = np.linspace(0.0, scene.periods, 400)
    law = phase_difference_rad(scene.ratio, scene.pull_rad * time / scene.periods)
    trace = scene.trace
    axes.plot(
        trace.psi_time,
        trace.psi_rad,
        color=BLUE,
        linewidth=0,
        marker="o",
        markersize=1.8,
        markeredgewidth=0,
        label="circuit, from crossings",
    )
    axes.plot(time, law, color=INK, linewidth=0.9, linestyle="--", label="law")
    flag = np.copysign(0.5 * np.pi, scene.ratio)
    axes.axhline(flag, color=MUTED, linewidth=0.8, linestyle=":", label="π/2")
    axes.set(xlim=(0, scene.periods), xlabel="time in free periods")
    axes.grid(visible=True)


def pairs_picture(kinds: IntArray) -> str:
    """Which pairs of tokens have a cell, and what it does: rows are tokens.

    Args:
        kinds: `oscc.pages.cells.pair_map` of a head, shape (T, T).
    """
    order = list(_KINDS)

    def draw(figure: Figure) -> None:
        from matplotlib.colors import ListedColormap
        from matplotlib.patches import Patch

        axes = figure.subplots()
        place = np.argsort(order)[kinds]
        colours = ListedColormap([colour for _, colour in _KINDS.values()])
        axes.imshow(
            place, cmap=colours, vmin=-0.5, vmax=len(order) - 0.5, interpolation="none"
        )
        axes.set(xlabel="partner", ylabel="token")
        present = [k for k in order if (kinds == k).any() and k != HIDDEN]
        patches = [
            Patch(
                color=_KINDS[k][1], label=f"{_KINDS[k][0]} ({int((kinds == k).sum())})"
            )
            for k in present
        ]
        axes.legend(handles=patches, loc="center left", bbox_to_anchor=(1.02, 0.5))

    return svg_text(draw, (8.2, 4.4), "pairs")
