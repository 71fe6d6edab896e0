"""The report of a model: one self-contained HTML page with scores, figures and equations.

`_content.py` collects the facts, `_figures.py` draws, and `_page.py` fills in the template.
"""

from quadric.apps.shell.report._page import report_page

__all__ = ["report_page"]
