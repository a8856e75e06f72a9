"""Report: one self-contained HTML page of a build."""

from oscc.pages.html import report_html

__all__ = ["report_html"]
