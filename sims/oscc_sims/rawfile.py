"""Reader of SPICE raw files, binary or ASCII, with one or more plots.

A raw header is written before the run ends: it may say `No. Points: 0` with data after
it, or promise more than there is. Both are failures, never short results.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from oscc.arrays import ComplexArray, FloatArray
from oscc.errors import ToolError


@dataclass(frozen=True, slots=True, eq=False)
class Plot:
    """One plot of a raw file.

    Args:
        name: Such as `Transient Analysis`.
        variables: Lower-case names in order; the first is the scale.
        values: Shape (points, variables), real or complex.
    """

    name: str
    variables: tuple[str, ...]
    values: FloatArray | ComplexArray

    def column(self, name: str) -> FloatArray:
        """One variable, shape (points,).

        Raises:
            ToolError: the plot does not hold it.
        """
        if name not in self.variables:
            raise ToolError(
                f"The simulator did not return `{name}`; "
                f"it returned {', '.join(self.variables)}."
            )
        return np.asarray(self.values[:, self.variables.index(name)], dtype=np.float64)


def read_plots(data: bytes) -> tuple[Plot, ...]:
    """Every plot of a raw file.

    Raises:
        ToolError: no plot, a cut-off plot, or an aborted run's header.
    """
    plots = []
    rest = data
    while rest.strip():
        plot, rest = _read_plot(rest)
        plots.append(plot)
    if not plots:
        raise ToolError("The simulator's raw file is empty.")
    return tuple(plots)


def transient(data: bytes) -> Plot:
    """The transient plot of a raw file, chosen by its name; times never fall.

    Raises:
        ToolError: none or two of them, no points, values that are not finite, or
            times that fall.
    """
    found = [p for p in read_plots(data) if "transient" in p.name.lower()]
    if len(found) != 1:
        raise ToolError(f"The raw file holds {len(found)} transient plots, not one.")
    plot = found[0]
    if np.iscomplexobj(plot.values) or not np.isfinite(plot.values).all():
        raise ToolError("The transient plot holds values that are not finite numbers.")
    time = plot.column("time")
    if (np.diff(time) < 0).any():
        place = int(np.argmax(np.diff(time) < 0))
        raise ToolError(f"Time falls after {time[place]:.6g} s in the transient plot.")
    return plot


def _read_plot(data: bytes) -> tuple[Plot, bytes]:
    found = re.search(rb"^(Binary|Values):[ \t]*\r?\n", data, re.MULTILINE)
    if found is None:
        raise ToolError("The simulator's raw file is cut off before its data.")
    header = data[: found.start()].decode("latin-1")
    body = data[found.end() :]
    count = _whole(header, "No. Variables")
    points = _whole(header, "No. Points")
    names = _names(header, count)
    if points == 0:
        raise ToolError("The run was aborted: its raw header says 0 points.")
    is_complex = "complex" in _field(header, "Flags").lower()
    read = _read_binary if found[1] == b"Binary" else _read_text
    values, rest = read(body, points, count, is_complex)
    return Plot(_field(header, "Plotname"), names, values), rest


def _field(header: str, name: str) -> str:
    found = re.search(rf"^{re.escape(name)}:[ \t]*(.*)$", header, re.MULTILINE)
    if found is None:
        raise ToolError(f"The simulator's raw file has no `{name}`.")
    return found[1].strip()


def _whole(header: str, name: str) -> int:
    text = _field(header, name)
    if not text.isdigit():
        raise ToolError(f"The simulator's raw file has `{name}: {text}`.")
    return int(text)


def _names(header: str, count: int) -> tuple[str, ...]:
    _, _, tail = header.partition("\nVariables:")
    rows = [line.split() for line in tail.splitlines() if line.strip()]
    names = tuple(row[1].lower() for row in rows if len(row) >= 2)
    if len(names) != count:
        raise ToolError(
            f"The raw file announces {count} variables, but names {len(names)}."
        )
    return names


def _read_binary(
    body: bytes, points: int, count: int, is_complex: bool
) -> tuple[FloatArray | ComplexArray, bytes]:
    size = points * count * (16 if is_complex else 8)
    if len(body) < size:
        raise ToolError(
            f"The raw file announces {points} points, but holds {len(body)} of "
            f"{size} bytes: the run was aborted."
        )
    kind = "<c16" if is_complex else "<f8"
    values = np.frombuffer(body[:size], dtype=kind).reshape(points, count)
    return values, body[size:]


def _read_text(
    body: bytes, points: int, count: int, is_complex: bool
) -> tuple[FloatArray | ComplexArray, bytes]:
    text = body.decode("latin-1")
    next_plot = text.find("\nTitle:")
    words = (text if next_plot < 0 else text[:next_plot]).split()
    step = count + 1
    if len(words) != points * step:
        raise ToolError(
            f"The raw file announces {points} points of {count} values, "
            f"but holds {len(words)} words: the run was aborted."
        )
    table = [words[k * step + 1 : (k + 1) * step] for k in range(points)]
    rest = b"" if next_plot < 0 else text[next_plot:].encode("latin-1")
    try:
        if is_complex:
            pairs = [[complex(*map(float, w.split(","))) for w in row] for row in table]
            return np.array(pairs, dtype=np.complex128), rest
        return np.array(table, dtype=np.float64), rest
    except (ValueError, TypeError) as error:
        raise ToolError(f"The raw file holds a word that is no number: {error}.") from (
            error
        )
