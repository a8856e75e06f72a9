"""Plots of the report that are made from arrays and figures alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from oscc.arrays import FloatArray, IntArray
from oscc.pages.svg import BLUE, CYCLE, GREEN, INK, ORANGE, RED, svg_text
from oscc.units import si_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINTS = 1500
_FLOOR_RAD = 1e-12
_FLOOR_DRIVE = 1e-3
_BINS = 14

Points = tuple[str, FloatArray, FloatArray]
"""Name of a series, drive strengths [rad], absolute errors [rad], both (M,)."""


def thinned(drive: FloatArray, error: FloatArray, most: int = _POINTS) -> IntArray:
    """Numbers of the points to draw: the largest errors, evenly spread others.

    Args:
        drive: Shape (M,).
        error: Absolute errors, shape (M,).
        most: Points to keep.

    Returns:
        Ascending indices, at most `most`.

    Example:
        >>> thinned(np.arange(4.0), np.array([0.0, 9.0, 1.0, 2.0]), 2).size
        2
    """
    if error.size <= most:
        return np.arange(error.size)
    by_error = np.argsort(error, kind="stable")
    largest = by_error[-most // 4 :]
    rest = np.setdiff1d(np.argsort(drive, kind="stable"), largest, assume_unique=True)
    rest = rest[np.argsort(drive[rest], kind="stable")]
    spread = rest[np.linspace(0, rest.size - 1, most - largest.size).astype(np.int64)]
    return np.unique(np.concatenate([largest, spread]))


def _decades(axes: Axes, which: str, unit: str) -> None:
    """Logarithmic axis whose decades are written with an SI prefix."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    axis.set_major_formatter(FuncFormatter(lambda x, _: si_text(x, unit, digits=1)))
    axis.set_minor_formatter(NullFormatter())


def _log_errors(axes: Axes, series: Sequence[Points]) -> None:
    for number, (name, drive, error) in enumerate(series):
        keep = thinned(drive, error)
        axes.plot(
            np.maximum(drive[keep], _FLOOR_DRIVE),
            np.maximum(error[keep], _FLOOR_RAD),
            linestyle="none",
            marker="o",
            markersize=2.2,
            markeredgewidth=0,
            alpha=0.45,
            color=CYCLE[number % len(CYCLE)],
            label=name,
        )


def _quantile_lines(axes: Axes, series: Sequence[Points]) -> None:
    drive = np.maximum(np.concatenate([p[1] for p in series]), _FLOOR_DRIVE)
    error = np.maximum(np.concatenate([p[2] for p in series]), _FLOOR_RAD)
    edges = np.quantile(drive, np.linspace(0, 1, min(_BINS, drive.size // 8 + 1) + 1))
    middle, median, high = [], [], []
    for low, up in pairwise(edges):
        inside = (drive >= low) & (drive <= up)
        if inside.any():
            middle.append(float(np.median(drive[inside])))
            median.append(float(np.median(error[inside])))
            high.append(float(np.quantile(error[inside], 0.99)))
    axes.plot(middle, median, color=INK, linewidth=1.4, label="median")
    axes.plot(middle, high, color=INK, linewidth=1.1, linestyle="--", label="99 %")


def error_against_drive(
    series: Sequence[Points], *, tolerance_rad: float | None = None
) -> str:
    """Scatter of the absolute phase error against drive strength, both logarithmic.

    Args:
        series: One a stage. More points than can be seen are thinned, the largest
            errors kept; the lines use all of them.
        tolerance_rad: Wanted rms error, drawn as a line.
    """

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        _log_errors(axes, series)
        _quantile_lines(axes, series)
        if tolerance_rad is not None:
            axes.axhline(tolerance_rad, color=RED, linewidth=1.0)
            axes.annotate(
                f"{1e3 * tolerance_rad:g} mrad asked (rms)",
                (0.01, tolerance_rad),
                xycoords=("axes fraction", "data"),
                xytext=(0, 3),
                textcoords="offset points",
                color=RED,
            )
        _decades(axes, "x", "rad")
        _decades(axes, "y", "rad")
        axes.set(xlabel="drive strength |g C| of the target", ylabel="phase error")
        axes.grid(visible=True)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), markerscale=2.5)

    return svg_text(draw, (8.2, 3.6), "drive")


def _bars(
    axes: Axes, names: Sequence[str], values: Sequence[float], texts: Sequence[str]
) -> None:
    """Names of horizontal bars, first on top, with a text behind each."""
    place = np.arange(len(names))
    axes.set_yticks(place, list(names))
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    for at, value, text in zip(place, values, texts, strict=True):
        axes.annotate(
            text,
            (value, at),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
        )


def gap_bars(causes: Mapping[str, Mapping[str, float | None]]) -> str:
    """Size of every cause of the gap, largest first; rms a bar, peak a mark.

    In the coherence where the causes are of pair cells. A cause without a decided cell
    is left out.
    """
    cells = any("rms_coherence" in size for size in causes.values())
    unit, key = ("", "coherence") if cells else ("rad", "rad")
    sizes = {
        name: (size[f"rms_{key}"] or 0.0, size[f"max_{key}"] or 0.0)
        for name, size in causes.items()
        if size.get(f"rms_{key}") is not None
    }
    order = sorted(sizes, key=lambda name: -sizes[name][0])
    rms, peak = [sizes[n][0] for n in order], [sizes[n][1] for n in order]
    some = [value for value in (*rms, *peak) if value > 0] or [_FLOOR_RAD]
    low, high = max(min(some), 1e-6 * max(some)) / 3.0, 2.0 * max(some)
    texts = [
        f"{_sized(r, unit)} rms, {_sized(p, unit)} at most"
        for r, p in zip(rms, peak, strict=True)
    ]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        place = np.arange(len(order))
        if cells:
            axes.set_xscale("log")
        else:
            _decades(axes, "x", "rad")
        axes.set_xlim(low, high)
        # A cause below the axis has no bar; its figure stands beside it all the same.
        widths = [max(value, low) - low for value in rms]
        axes.barh(place, widths, left=low, height=0.52, color=BLUE)
        axes.plot(peak, place, "|", color=ORANGE, markersize=11, markeredgewidth=1.6)
        names = [n.replace("_", " ") for n in order]
        _bars(axes, names, [high] * len(order), texts)
        axes.set_xlabel("error of the coherence" if cells else "phase error")
        axes.grid(visible=True, axis="x")

    return svg_text(draw, (8.2, 0.75 + 0.33 * len(order)), "gap")


def _sized(value: float, unit: str) -> str:
    return si_text(value, unit) if unit else f"{value:.3g}"


def energy_bars(energy: Mapping[str, Any]) -> str:
    """Energy by cause with its share and its size per coupled pair."""
    causes, total, pairs = energy["causes_J"], energy["total_J"], energy["pairs"]
    order = sorted(causes, key=lambda name: -causes[name])
    values = [causes[n] for n in order]
    texts = []
    for value in values:
        share = f"{si_text(value, 'J')} ({100 * value / total:.1f} %)"
        each = f", {si_text(value / pairs, 'J')} a pair" if pairs else ""
        texts.append(share + each)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.barh(np.arange(len(order)), values, height=0.58, color=BLUE)
        _bars(axes, [n.replace("_", " ") for n in order], values, texts)
        axes.set_xlim(0, max(values) * 1.5)
        axes.xaxis.set_major_formatter(lambda x, _: si_text(x, "J", digits=2))
        axes.grid(visible=True, axis="x")

    return svg_text(draw, (8.2, 0.55 + 0.33 * len(order)), "energy")


def rival_bars(energy: Mapping[str, Any]) -> str:
    """Energy of a coupled pair on hardware and as multiply-accumulates, logarithmic."""
    pair, pairs = energy["per_pair_J"], energy["pairs"]
    rows = [
        ("hardware, all in", pair["all_in"], BLUE),
        ("hardware without host", pair["without_host"], BLUE),
        ("marginal: coupler and weight", pair["marginal"], BLUE),
        *(
            (f"digital {name}, arithmetic", value / pairs, GREEN)
            for name, value in sorted(
                energy["digital_J"].items(), key=lambda item: -item[1]
            )
        ),
    ]
    values = [float(value) for _, value, _ in rows]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        low = 10.0 ** np.floor(np.log10(min(values)) - 0.2)
        place = np.arange(len(rows))
        axes.barh(place, values, height=0.58, color=[colour for *_, colour in rows])
        texts = [si_text(value, "J") for value in values]
        _bars(axes, [name for name, *_ in rows], values, texts)
        _decades(axes, "x", "J")
        axes.set_xlim(low, max(values) * 12)
        axes.set_xlabel("energy per coupled pair")
        axes.grid(visible=True, axis="x")

    return svg_text(draw, (8.2, 0.75 + 0.33 * len(rows)), "rivals")
