"""The table of all claims: what the paper prints, what we find, and both verdicts."""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass

from quadric.apps.paper.claims._list import Statement, statements
from quadric.apps.paper.claims._verdict import Claim, Verdict

COLUMNS = (
    "id",
    "section",
    "sentence",
    "claim",
    "the paper",
    "verdict on the paper",
    "ours",
    "verdict on ours",
    "method",
    "judged by",
)
NOT_RUN = "not run: "
CHAPTERS = {
    "I": "Abstract and introduction",
    "II": "Section II: quadratic logistic regression",
    "III": "Section III: networks of quadratic neurons",
    "IV": "Section IV: reduced parameters",
    "V": "Section V: complexity",
    "VI": "Section VI: results",
    "VII": "Section VII: conclusion",
}
# the chapters of places whose name does not begin with a section's number
ELSEWHERE = {
    "abstract": "I",
    "Algorithm 1": "III",
    "Algorithm 2": "IV",
    "Table I": "V",
    "Table II": "V",
    "Table III": "VI",
    "Table IV": "VI",
    "Table V": "VI",
}


@dataclass(frozen=True)
class Judged:
    """A row of claims.csv; the fields are its columns."""

    id: str
    section: str
    sentence: str
    claim: str
    paper: str
    paper_verdict: str
    ours: str
    verdict: str
    method: str
    judged_by: str

    @property
    def was_run(self) -> bool:
        """Whether the experiment that judges the claim was part of the run."""
        return not self.ours.startswith(NOT_RUN)

    def cells(self) -> tuple[str, ...]:
        """Return the values in the order of `COLUMNS`."""
        return astuple(self)


def judge(claims: Iterable[Claim]) -> list[Judged]:
    """Return a row for every statement of the list.

    Parameters
    ----------
    claims : iterable of Claim
        The verdicts of the experiments that were run.
    """
    by_id: dict[str, Claim] = {}
    for claim in claims:
        statement = statements()[claim.id]  # an unknown id is a mistake in an experiment
        if claim.id in by_id or not (statement.experiment or statement.study):
            raise ValueError(f"the claim {claim.id!r} is judged twice")
        by_id[claim.id] = claim
    return [_row(statement, by_id.get(name)) for name, statement in statements().items()]


def _row(statement: Statement, claim: Claim | None) -> Judged:
    if claim is None:
        claim = _without_a_run(statement)
    return Judged(
        statement.id,
        "; ".join(statement.sections),
        statement.sentences,
        statement.claim,
        claim.paper,
        claim.paper_verdict.value,
        claim.ours,
        claim.verdict.value,
        claim.method,
        statement.judged_by,
    )


def _without_a_run(statement: Statement) -> Claim:
    """Return the verdict from the list, or state which command judges the claim."""
    name, unknown = statement.id, Verdict.UNKNOWN
    if statement.experiment or statement.study:
        return Claim(name, "-", f"{NOT_RUN}{statement.judged_by}", unknown, unknown)
    if statement.reason:
        return Claim(name, "-", statement.reason, unknown, unknown)
    return Claim(
        name,
        statement.printed,
        statement.found,
        statement.verdict,
        statement.paper_verdict,
        statement.method,
    )


def read_rows(lines: Iterable[str]) -> list[Judged]:
    """Return the rows of a file claims.csv."""
    return [Judged(*(row[name] for name in COLUMNS)) for row in csv.DictReader(lines)]


def counts(rows: Iterable[Judged]) -> Mapping[Verdict, tuple[int, int]]:
    """Return how often each verdict is given, on the paper and on our numbers."""
    rows = list(rows)
    paper = Counter(row.paper_verdict for row in rows)
    ours = Counter(row.verdict for row in rows)
    return {verdict: (paper[verdict.value], ours[verdict.value]) for verdict in Verdict}


def by_chapter(rows: Iterable[Judged]) -> list[tuple[str, list[Judged]]]:
    """Return the title of each chapter with the claims that are first made in it."""
    chapters: dict[str, list[Judged]] = {number: [] for number in CHAPTERS}
    for row in rows:
        first = row.section.split("; ")[0]
        chapters[ELSEWHERE.get(first) or re.split("[-,]", first)[0]].append(row)
    return [(CHAPTERS[number], claims) for number, claims in chapters.items() if claims]
