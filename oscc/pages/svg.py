"""Figures as SVG text that can stand inside a page: no request, equal bytes."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, MUTED, GRID = "#1d2733", "#667687", "#dfe5eb"
BLUE, ORANGE, GREEN, RED, VIOLET, TEAL = (
    "#2a66a8",
    "#d9822b",
    "#3a8f5c",
    "#c0392b",
    "#7b5ea7",
    "#2b8c8c",
)
CYCLE = (BLUE, ORANGE, GREEN, VIOLET, TEAL, RED)

_STYLE: Any = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 7.5,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlesize": 7.8,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 7.2,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}


def svg_text(
    draw: Callable[[Figure], None], size: tuple[float, float], name: str
) -> str:
    """Draw a figure and return its `<svg>` element.

    Args:
        draw: Fills an empty figure.
        size: Width and height, [inch].
        name: Of the figure; it salts the identifiers, which must differ within a page.

    Returns:
        Text from `<svg` to `</svg>`, without prologue, metadata or outside names.
    """
    return _inlined(svg_file(draw, size, name), name)


def svg_file(
    draw: Callable[[Figure], None], size: tuple[float, float], name: str
) -> str:
    """Draw a figure and return the text of a file; equal figures are equal bytes.

    Args:
        draw: Fills an empty figure.
        size: Width and height, [inch].
        name: Of the figure; it salts the identifiers.
    """
    from matplotlib import rc_context, rcdefaults, rcParams
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with rc_context():
        # A user's own matplotlibrc must not change the bytes.
        rcdefaults()
        rcParams.update(_STYLE | {"svg.hashsalt": f"oscc {name}"})
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()


def _inlined(text: str, name: str) -> str:
    body = text[text.index("<svg") :]
    body = re.sub(r"\s*<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    # A style sheet inside one figure would hold for the whole page.
    body = re.sub(r"\s*<defs>\s*<style.*?</style>\s*</defs>", "", body, flags=re.DOTALL)
    # Axes and patches are numbered anew in every figure: keep them apart in the page.
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = body.replace('"#', f'"#{name}-').replace("url(#", f"url(#{name}-")
    # The width of the page decides, the view box keeps the proportions; inside HTML
    # the namespaces are known without their names.
    head, rest = body.split(">", 1)
    head = re.sub(r' (?:width|height|xmlns|xmlns:xlink)="[^"]*"', "", head)
    return f'{head} role="img">{rest}'.strip()
