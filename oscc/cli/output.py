"""Output: results on standard output, progress on standard error.

Tables are rich's on a terminal, plain text elsewhere. With `--json` the only thing on
standard output is the JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oscc.cli.streams import write
from oscc.config import environment
from oscc.files import dump_json

Row = Sequence[str]


def say(text: str = "") -> None:
    """One or more lines of the result."""
    write(f"{text}\n")


def emit_json(content: Any) -> None:
    """The content of a JSON file, strict, and nothing else."""
    write(dump_json(content))


def table(columns: Row, rows: Sequence[Row], *, right: Sequence[int] = ()) -> None:
    """A table; on a terminal its head is set off.

    Args:
        columns: Names of the columns.
        rows: Cells of every row, as text.
        right: Numbers of the columns that are set flush right.
    """
    if not sys.stdout.isatty() or environment().no_color:
        say(plain_table(columns, rows, right=right))
        return
    from rich.console import Console
    from rich.table import Table

    shown = Table(box=None, pad_edge=False, header_style="bold")
    for number, name in enumerate(columns):
        shown.add_column(name, justify="right" if number in right else "left")
    for row in rows:
        shown.add_row(*row)
    Console(highlight=False, markup=False).print(shown)


def plain_table(columns: Row, rows: Sequence[Row], *, right: Sequence[int] = ()) -> str:
    """A table as text, columns parted by two spaces.

    Example:
        >>> print(plain_table(("a", "n"), [("x", "10"), ("yy", "9")], right=(1,)))
        a    n
        x   10
        yy   9
    """
    every = [tuple(columns), *(tuple(row) for row in rows)]
    widths = [max(len(row[k]) for row in every) for k in range(len(columns))]
    lines = []
    for row in every:
        cells = [
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def wrote(path: Path) -> str:
    """Path of a result for a person: relative where that is shorter.

    Example:
        >>> wrote(Path.cwd() / "build")
        'build'
    """
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


class Progress:
    """One line on standard error that is written over; silent off a terminal."""

    def __init__(self, *, quiet: bool) -> None:
        self.shown = sys.stderr.isatty() and not quiet

    def __call__(self, text: str) -> None:
        """Show the text in place of the one before."""
        if self.shown:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()

    def close(self) -> None:
        """Take the line away."""
        self("")
