"""Every statement of the paper that can be true or false, and the verdicts on it.

`claims.toml` lists the statements, where they appear, and how each is judged. Experiments judge
statements by id (`Claim`); `judge` combines their verdicts with those of tests and derivations.
"""

from quadric.apps.paper.claims._list import Statement, statements
from quadric.apps.paper.claims._markdown import markdown_page
from quadric.apps.paper.claims._table import COLUMNS, Judged, by_chapter, counts, judge, read_rows
from quadric.apps.paper.claims._verdict import NEEDS_FULL, Claim, Verdict

__all__ = [
    "COLUMNS",
    "NEEDS_FULL",
    "Claim",
    "Judged",
    "Statement",
    "Verdict",
    "by_chapter",
    "counts",
    "judge",
    "markdown_page",
    "read_rows",
    "statements",
]
