"""Write the pages under docs/ that are made from the command line itself."""

from __future__ import annotations

from pathlib import Path

from oscc.cli.pages import pages
from oscc.files import write_atomic

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Write every page."""
    for name, text in pages().items():
        write_atomic(ROOT / "docs" / name, text)


if __name__ == "__main__":
    main()
