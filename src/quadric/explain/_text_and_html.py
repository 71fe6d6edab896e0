"""An explanation as text, one line per term, and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from quadric.explain._terms import signed, written
from quadric.utils import counted, notebook, visible

if TYPE_CHECKING:
    from quadric.explain._explanation import ClassExplanation, Explanation
    from quadric.explain._importances import PermutationImportance

MOST_INPUTS = 15  # in the table of importances


def equation(item: ClassExplanation) -> str:
    """The equation of one output on one line."""
    parts = [text for text, _ in equation_parts(item, "")]
    return f"{item.symbol} = {' '.join(parts)}"


def as_text(found: Explanation) -> str:
    """The whole explanation."""
    lines = [found.title, found.note]
    if found.space == "hidden":
        lines += [*([""] if found.dependences else []), *dependence_lines(found)]
        return "\n".join(map(visible, lines))
    lines += [
        found.score,
        f"Percentages: shares of the variance, for {found.ranked_by}. All shares add up to 100 %; "
        "a negative share means that the term offsets others.",
        "",
        *importance_lines(found),
    ]
    for item in found.classes:
        lines += ["", *_equation_lines(item)]
        if found.shows_kinds:
            lines.append(f"  The surface {item.symbol} = 0: {item.kind}.")
    if found.boundaries:
        lines += ["", *boundary_lines(found)]
    return "\n".join(map(visible, lines))


def importance_lines(found: Explanation) -> list[str]:
    """The table of importances."""
    shown = found.importances
    omitted = 0
    if any(len(item.terms) < item.n_terms for item in found.classes):
        shown, omitted = shown[:MOST_INPUTS], max(0, len(shown) - MOST_INPUTS)
    width = max(len("Importance of inputs"), *(2 + len(visible(one.name)) for one in shown))
    lines = [f"{'Importance of inputs':<{width}}   total   linear  squared  interactions"]
    for one in shown:
        lines.append(
            f"{'  ' + visible(one.name):<{width}}  {percent(one.total)}  {percent(one.linear)}  "
            f"{percent(one.squared)}  {percent(one.interactions):>12}"
        )
    if omitted:
        lines.append(f"  ({counted(omitted, 'less important input')}; --all or top=None lists all)")
    return lines


def permutation_lines(
    found: Iterable[PermutationImportance], score: str, count: int, whole: bool
) -> list[str]:
    """The table of permutation importances; `score` names the score that drops."""
    found = list(found)
    shown = found if whole else found[:MOST_INPUTS]
    width = max(2 + len(visible(one.name)) for one in shown)
    lines = [f"Drop of the {score} if an input is shuffled ({counted(count, 'row')})"]
    for one in shown:
        lines.append(f"{'  ' + visible(one.name):<{width}}  {one.mean:8.4f} ± {one.std:.4f}")
    if len(found) > len(shown):
        lines.append(f"  ({counted(len(found) - len(shown), 'less important input')}; use --all)")
    return lines


def percent(share: float) -> str:
    """A share as a percentage of seven characters; never '-0.0 %'."""
    return f"{round(100 * share, 1) + 0.0:5.1f} %"


def _equation_lines(item: ClassExplanation) -> list[str]:
    head, *rest = equation_parts(item)
    width = max([len(visible(text)) for text, _ in rest], default=0)
    lines = [f"{item.symbol} = {head[0]}"]
    lines += [f"  {visible(text):<{width}}  {percent(share)}" for text, share in rest]
    return lines


def equation_parts(
    item: ClassExplanation, hint: str = "; --all or top=None lists all"
) -> list[tuple[str, float]]:
    """The constant, the terms and the omitted terms, each with its share."""
    precision = item.precision
    constant = signed(item.constant, precision).removeprefix("+ ").replace("- ", "-")
    parts = [(constant, 0.0)]
    parts += [(written(term, precision), term.share) for term in item.terms]
    if item.n_terms > len(item.terms):
        omitted = counted(item.n_terms - len(item.terms), "smaller term")
        parts.append((f"+ ({omitted}{hint})", item.omitted_share))
    return parts


def boundary_lines(found: Explanation) -> list[str]:
    """The kinds of the boundaries between classes."""
    if not found.boundaries:
        return []
    lines = ["Where two classes tie:"]
    lines += [f"  {i} and {j}: {kind}" for (i, j), kind in found.boundaries.items()]
    omitted = found.n_pairs - len(found.boundaries)
    if omitted:
        i, j = list(found.boundaries)[-1]
        lines.append(
            f"  ({len(found.boundaries)} of {found.n_pairs} pairs; omitted: those after {i} and "
            f"{j}, in the order of the classes. --all or top=None lists all)"
        )
    return lines


def dependence_lines(found: Explanation) -> list[str]:
    """The partial dependence on each input."""
    if not found.dependences:
        return ["Give data to see how the predictions depend on each input."]
    shown = found.dependences[:MOST_INPUTS]
    lines = ["Mean prediction if one input is set to a value (partial dependence):"]
    lines += [f"  {one}" for one in shown]
    if len(found.dependences) > len(shown):
        lines.append(f"  ({counted(len(found.dependences) - len(shown), 'weaker input')} omitted)")
    return lines


# --------------------------------------------------------------------------------- HTML


def as_html(found: Explanation) -> str:
    """The whole explanation."""
    parts = [notebook.paragraph(found.title, strong=True), notebook.paragraph(found.note)]
    if found.space == "hidden":
        return "".join([*parts, notebook.paragraph(*dependence_lines(found))])
    shares = f"Shares of the variance, for {found.ranked_by}. A negative share offsets others."
    parts += [notebook.paragraph(found.score, shares), _importance_table(found)]
    parts += [_equation_table(item, shows_kind=found.shows_kinds) for item in found.classes]
    if found.boundaries:
        parts.append(notebook.paragraph(*boundary_lines(found)))
    return "".join(parts)


def _importance_table(found: Explanation) -> str:
    shown = found.importances[:MOST_INPUTS]
    rows = [
        [one.name, *map(percent, (one.total, one.linear, one.squared, one.interactions))]
        for one in shown
    ]
    header = ["input", "importance", "linear", "squared", "interactions"]
    return notebook.table(header, rows, [one.total for one in shown])


def _equation_table(item: ClassExplanation, *, shows_kind: bool) -> str:
    (constant, _), *terms = equation_parts(item, "; top=None lists all")
    rows = [[text, percent(share)] for text, share in terms]
    table = notebook.table(
        [f"{item.symbol} = {constant}", "share"], rows, [share for _, share in terms]
    )
    kind = f"The surface {item.symbol} = 0: {item.kind}."
    return table + (notebook.paragraph(kind) if shows_kind else "")
