"""The report of a reproduction: a self-contained HTML page, with CSV and PNG files next to it.

The package imports `experiments` for the type of an outcome. Start with `_page.py`.
"""

from quadric.apps.paper.report._page import about_this_run, write_report

__all__ = ["about_this_run", "write_report"]
