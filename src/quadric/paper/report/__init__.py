"""The report of a reproduction: a self-contained HTML page, and CSV and PNG files beside it.

Imports `experiments` for the type of their outcomes. Start with `_page.py`.
"""

from quadric.paper.report._page import about_this_run, write_report

__all__ = ["about_this_run", "write_report"]
