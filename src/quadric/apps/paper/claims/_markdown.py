"""The claims as a Markdown page, docs/claims.md."""

from collections.abc import Iterable, Sequence

from quadric.apps.paper.claims._list import in_words, paper_text
from quadric.apps.paper.claims._table import Judged, by_chapter, counts

INTRODUCTION = """\
# The paper's claims

Every statement of the paper that can be true or false, in our words, with a verdict on what the
paper prints (its numbers, figures and derivations) and a verdict on what we find. This page is
generated from [results/claims.csv](../results/claims.csv).
[Reproducing the paper](reproduce.md#how-claims-are-judged) describes how claims are judged.

A place such as "II, paragraph 13, sentence 1" counts blocks of running text: a displayed equation,
table, figure, algorithm or heading ends a paragraph, and an equation belongs to the text before it.
m is the number of neurons of a layer, and n is the number of its inputs.
"""


def markdown_page(rows: Sequence[Judged]) -> str:
    """Return the page: counts of verdicts, the claims by section, and sentences without a claim."""
    parts = [
        INTRODUCTION,
        _table(
            ("verdict", "on the paper", "on our results"),
            [(str(verdict), *map(str, numbers)) for verdict, numbers in counts(rows).items()],
        ),
        f"{len(rows)} claims.\n",
    ]
    for title, claims in by_chapter(rows):
        parts += [f"## {title}\n", _table(("claim", "the paper", "ours"), map(_cells, claims))]
    parts += [
        "## Sentences without a claim\n",
        "Together with the places above, these are all sentences of the paper.\n",
        "\n".join(
            f"- *{reason}*: {in_words(places)}"
            for reason, places in paper_text().without_claim.items()
        )
        + "\n",
    ]
    return "\n".join(parts)


def _cells(row: Judged) -> tuple[str, str, str]:
    judged = f" `{row.judged_by}`" if row.was_run and row.judged_by != "-" else ""
    method = f" *{row.method}.*" if row.method else ""
    return (
        f"{row.claim}<br>`{row.id}`: {row.sentence}",
        f"**{row.paper_verdict}**: {row.paper}" if row.paper != "-" else "-",
        f"**{row.verdict}**: {row.ours}{method}{judged}",
    )


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(_escaped(cell) for cell in line)} |" for line in lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
