"""Explanations as text for the terminal and as HTML for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadric.explain._dependence_and_permutation import Dependence
from quadric.explain._terms_and_importances import signed
from quadric.utils import counted, notebook, visible

if TYPE_CHECKING:
    from quadric.explain._explanation import ClassExplanation, Explanation

MOST_INPUTS = 15  # in the table of importances
MOST_DEPENDENCES = 5  # tables of partial dependence
NEED_DATA = "Importances and partial dependence need data: explain(model, X)."


# --------------------------------------------------------------------------------- text


def importance_lines(found: Explanation) -> list[str]:
    """The table of importances."""
    shown = found.importances[: None if _lists_all(found) else MOST_INPUTS]
    width = max(len("Importance of inputs"), *(2 + len(visible(one.name)) for one in shown))
    columns = _importance_columns(found)
    header = "   total   linear  squared  interactions" if len(columns) > 1 else "   total"
    lines = [f"{'Importance of inputs':<{width}}{header}"]
    for one in shown:
        shares = (f"  {percent(getattr(one, name)):>{max(7, len(name))}}" for name in columns)
        lines.append(f"{'  ' + visible(one.name):<{width}}{''.join(shares)}")
    omitted = len(found.importances) - len(shown)
    if omitted:
        lines.append(f"  ({counted(omitted, 'less important input')}; top=None lists all)")
    return lines


def _importance_columns(found: Explanation) -> list[str]:
    """The total and, if there are terms, its parts."""
    return ["total"] if found.space == "hidden" else ["total", "linear", "squared", "interactions"]


def _lists_all(found: Explanation) -> bool:
    return all(len(item.terms) == item.n_terms for item in found.classes)


def percent(share: float) -> str:
    """A share as a percentage of seven characters; never '-0.0 %'."""
    return f"{round(100 * share, 1) + 0.0:5.1f} %"


def equation_lines(item: ClassExplanation, *, shows_kind: bool) -> list[str]:
    (constant, _), *terms = equation_parts(item)
    width = max([len(visible(text)) for text, _ in terms], default=0)
    chosen = [selected(term.frequency) for term in item.terms] + [""]  # the omitted terms
    rows = [
        f"  {visible(text):<{width}}  {percent(share)}{often}"
        for (text, share), often in zip(terms, chosen, strict=False)
    ]
    kind = [f"  The surface {item.symbol} = 0: {item.kind}."] if shows_kind else []
    return [f"{item.symbol} = {constant}", *rows, *kind]


def selected(frequency: float | None) -> str:
    """How often a term is selected on halves of the samples; empty if that is unknown."""
    return "" if frequency is None else f"  selected {100 * frequency:3.0f} %"


def equation_parts(
    item: ClassExplanation, hint: str = "; top=None lists all"
) -> list[tuple[str, float]]:
    """The constant, the terms and the omitted terms, each with its share."""
    constant = signed(item.constant, item.precision).removeprefix("+ ").replace("- ", "-")
    terms = [
        (f"{signed(term.coefficient, item.precision)} {term.monomial}", term.share)
        for term in item.terms
    ]
    if item.n_terms > len(item.terms):
        omitted = counted(item.n_terms - len(item.terms), "smaller term")
        terms.append((f"+ ({omitted}{hint})", item.omitted_share))
    return [(constant, 0.0), *terms]


def boundary_lines(found: Explanation) -> list[str]:
    """The kinds of the boundaries between classes."""
    lines = [
        "Where two classes tie:",
        *(f"  {i} and {j}: {kind}" for (i, j), kind in found.boundaries.items()),
    ]
    if found.n_pairs > len(found.boundaries):
        i, j = list(found.boundaries)[-1]
        lines.append(
            f"  ({len(found.boundaries)} of {found.n_pairs} pairs; omitted: those after {i} and "
            f"{j}, in the order of the classes; top=None lists all)"
        )
    return lines


def permutation_lines(found: Explanation) -> list[str]:
    """How much the score drops if an input is shuffled."""
    shown = found.permutation[: None if _lists_all(found) else MOST_INPUTS]
    width = max(len(visible(one.name)) for one in shown)
    lines = [f"{_shuffled(found)} ({counted(found.n_rows, 'row')})"]
    lines += [f"  {visible(one.name):<{width}}  {one.mean:8.4f} ± {one.std:.4f}" for one in shown]
    omitted = len(found.permutation) - len(shown)
    if omitted:
        lines.append(f"  ({counted(omitted, 'less important input')}; top=None lists all)")
    return lines


def _shuffled(found: Explanation) -> str:
    return f"Drop of the {found.metric} if an input is shuffled"


def dependence_lines(found: Explanation) -> list[str]:
    """The partial dependence on the most important inputs and on the strongest pair."""
    shown = found.dependences[: None if _lists_all(found) else MOST_DEPENDENCES]
    lines = ["", "Mean prediction if one input is set to a value (partial dependence)"]
    for one in shown:
        lines += [*_aligned(one.table()), ""]
    omitted = len(found.importances) - len(shown)
    if omitted:
        lines += [f"  ({counted(omitted, 'less important input')}; top=None lists all)", ""]
    for pair in found.pairs[:1]:
        lines += [_interacting(pair), *_aligned(pair.table()), ""]
    return lines[:-1]


def _interacting(pair: Dependence) -> str:
    return (
        f"Strongest interaction: mean {pair.outputs[pair.main_output]} if {pair.inputs[0]} (down) "
        f"and {pair.inputs[1]} (across) are set"
    )


def _aligned(lines: list[list[str]]) -> list[str]:
    """A table as text; the first column is on the left."""
    cells = [[visible(cell) for cell in line] for line in lines]
    first, *others = (max(map(len, column)) for column in zip(*cells, strict=True))
    return [
        f"  {line[0]:<{first}}"
        + "".join(f"  {cell:>{width}}" for cell, width in zip(line[1:], others, strict=True))
        for line in cells
    ]


# --------------------------------------------------------------------------------- HTML


def hidden_parts(found: Explanation) -> list[str]:
    """The permutation importances and the partial dependence as tables."""
    if not found.importances:
        return [notebook.paragraph(NEED_DATA)]
    parts = [notebook.paragraph(found.importance_note), importance_table(found)]
    drops = found.permutation[:MOST_INPUTS]
    rows = [[one.name, f"{one.mean:.4f}", f"{one.std:.4f}"] for one in drops]
    parts += [notebook.table([_shuffled(found), "mean", "±"], rows)] if rows else []
    parts += [notebook.paragraph("Mean prediction if one input is set to a value")]
    for one in found.dependences[:MOST_DEPENDENCES]:
        header, *lines = one.table()
        parts.append(notebook.table(header, lines))
    for pair in found.pairs[:1]:
        header, *lines = pair.table()
        parts += [notebook.paragraph(_interacting(pair)), notebook.table(header, lines)]
    return parts


def importance_table(found: Explanation) -> str:
    shown, columns = found.importances[:MOST_INPUTS], _importance_columns(found)
    rows = [[one.name, *(percent(getattr(one, name)) for name in columns)] for one in shown]
    shares = [one.total for one in shown]
    return notebook.table(["input", "importance", *columns[1:]], rows, shares)


def equation_table(item: ClassExplanation, *, shows_kind: bool) -> str:
    header, *lines = item.table()
    table = notebook.table(header, lines, [share for _, share in equation_parts(item)[1:]])
    kind = notebook.paragraph(f"The surface {item.symbol} = 0: {item.kind}.")
    return table + kind if shows_kind else table
