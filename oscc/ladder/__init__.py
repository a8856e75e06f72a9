"""Ladder of realism: comparison of levels, gap by cause, verdict."""

from oscc.ladder.verdict import Verdict

__all__ = ["Verdict"]
