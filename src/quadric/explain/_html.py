"""An explanation as HTML for notebooks: a table for each equation, with shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadric.explain._text import (
    MOST_INPUTS,
    boundary_lines,
    dependence_lines,
    equation_parts,
    percent,
)
from quadric.utils import notebook

if TYPE_CHECKING:
    from quadric.explain._explanation import ClassExplanation, Explanation


def as_html(found: Explanation) -> str:
    """The whole explanation."""
    parts = [notebook.paragraph(found.title, strong=True), notebook.paragraph(found.note)]
    if found.space == "hidden":
        return "".join([*parts, notebook.paragraph(*dependence_lines(found))])
    shares = f"Shares of the variance, for {found.ranked_by}. A negative share offsets others."
    parts += [notebook.paragraph(found.score, shares), _importances(found)]
    parts += [_equation(item, shows_kind=found.shows_kinds) for item in found.classes]
    if found.boundaries:
        parts.append(notebook.paragraph(*boundary_lines(found)))
    return "".join(parts)


def _importances(found: Explanation) -> str:
    shown = found.importances[:MOST_INPUTS]
    rows = [
        [one.name, *map(percent, (one.total, one.linear, one.squared, one.interactions))]
        for one in shown
    ]
    header = ["input", "importance", "linear", "squared", "interactions"]
    return notebook.table(header, rows, [one.total for one in shown])


def _equation(item: ClassExplanation, *, shows_kind: bool) -> str:
    (constant, _), *terms = equation_parts(item, "; top=None lists all")
    rows = [[text, percent(share)] for text, share in terms]
    table = notebook.table(
        [f"{item.symbol} = {constant}", "share"], rows, [share for _, share in terms]
    )
    kind = f"The surface {item.symbol} = 0: {item.kind}."
    return table + (notebook.paragraph(kind) if shows_kind else "")
