"""Picture of listed pairs: the sources of one token below, its coordinates above."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oscc.arrays import FloatArray, IntArray
from oscc.ir.stage import Stage
from oscc.pages.scene import sources_of
from oscc.pages.svg import BLUE, INK, ORANGE, svg_text
from oscc.phases import TURN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LINES_SHOWN = 300
_COLOURS = (BLUE, ORANGE)


def token_picture(stage: Stage, token: int) -> tuple[str, str]:
    """Coupling graph of one token, with the sentence that says what is drawn.

    A line from each source to each coordinate it pulls, thicker for stronger, blue for
    the lowest harmonic of the stage and orange for the others.

    Args:
        stage: A stage of listed pairs.
        token: Which token.

    Example:
        >>> from oscc.testing.flat import modes_stage
        >>> token_picture(modes_stage(), 1)[1]
        '8 of 8 lines of token 1'
    """
    rows, width = sources_of(stage, token), stage.grid[1]
    edges = stage.edges
    row = token - stage.begins
    mine = np.flatnonzero((edges.target // width == row) & (edges.gamma != 0))
    size = np.abs(edges.gamma[mine])
    shown = mine[np.argsort(-size, kind="stable")[:_LINES_SHOWN]][::-1]
    start = stage.on_grid(stage.phi0_rad)[row]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        _lines(axes, stage, shown, rows)
        _banks(figure, axes, stage.theta_rad[rows], start)

    note = f"{shown.size} of {mine.size} lines of token {token}"
    return svg_text(draw, (8.2, 3.6), "graph"), note


def _spread(count: int) -> FloatArray:
    """Places of the oscillators of a bank on a line from 0 to 1, shape (count,)."""
    return (np.arange(count) + 0.5) / count


def _lines(axes: Axes, stage: Stage, shown: IntArray, rows: IntArray) -> None:
    from matplotlib.collections import LineCollection

    edges, width = stage.edges, stage.grid[1]
    size = np.abs(edges.gamma[shown]) / np.abs(edges.gamma[shown]).max()
    below = _spread(rows.size)[np.searchsorted(rows, edges.source[shown])]
    above = _spread(width)[edges.target[shown] % width]
    zero = np.zeros(shown.size)
    first = stage.harmonics[0]
    colours = [_COLOURS[int(n != first)] for n in edges.harmonic[shown]]
    ends = np.stack([np.stack([below, zero], 1), np.stack([above, zero + 1], 1)], 1)
    axes.add_collection(
        LineCollection(
            list(ends),
            linewidths=0.4 + 2.0 * size,
            colors=colours,
            alpha=0.12 + 0.75 * size,
        )
    )


def _banks(figure: Figure, axes: Axes, theta: FloatArray, start: FloatArray) -> None:
    """Both banks on their lines, coloured by phase."""
    place = np.concatenate([_spread(theta.size), _spread(start.size)])
    shown = axes.scatter(
        place,
        np.repeat([0.0, 1.0], [theta.size, start.size]),
        c=np.mod(np.concatenate([theta, start]), TURN),
        cmap="twilight",
        vmin=0.0,
        vmax=TURN,
        s=min(42.0, 2600.0 / max(theta.size, start.size)),
        edgecolors=INK,
        linewidths=0.5,
        zorder=3,
    )
    axes.set(xlim=(0, 1), ylim=(-0.1, 1.1), xticks=[], yticks=[0, 1])
    axes.set_yticklabels(["sources", "targets"])
    axes.tick_params(axis="y", length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
    bar = figure.colorbar(shown, ax=axes, shrink=0.6, aspect=18, pad=0.01)
    bar.set_label("phase [rad]")
