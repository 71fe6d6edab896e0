"""Every statement of the paper that can be true or false, and the verdicts on it.

`claims.toml` lists the statements, where they appear, and how each is judged. Experiments judge
statements by id (`Claim`); `judge` combines their verdicts with those of tests and derivations. The
file also lists the sentences of the paper that claim nothing, with the reason.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any

NEEDS_FULL = "not judged: needs --full"  # the note of a quick run on a claim it cannot decide


class Verdict(StrEnum):
    """Whether a statement holds."""

    HOLDS = "holds"
    CONDITIONALLY = "holds with a condition"
    FAILS = "does not hold"
    UNKNOWN = "cannot be judged"

    @classmethod
    def of(cls, holds: bool | None) -> "Verdict":
        """Return HOLDS or FAILS, and UNKNOWN for None."""
        return cls.UNKNOWN if holds is None else cls.HOLDS if holds else cls.FAILS


@dataclass(frozen=True)
class Claim:
    """What an experiment finds about a statement of the paper.

    Attributes
    ----------
    id : str
        The statement in `claims.toml`.
    paper, ours : str
        What the paper prints, and what we find. Names the condition or the reason where the
        verdict needs one.
    verdict : Verdict
        The verdict on our numbers.
    paper_verdict : Verdict
        The verdict on the paper's own numbers, figures or derivation.
    method : str
        How our verdict was reached, for example 'Welch's test, Holm over 60 rows'.
    """

    id: str
    paper: str
    ours: str
    verdict: Verdict
    paper_verdict: Verdict = Verdict.UNKNOWN
    method: str = ""


@dataclass(frozen=True)
class Statement:
    """A statement of the paper in our words, where it appears, and how it is judged.

    Attributes
    ----------
    id : str
    where : list of str
        Places such as 'II 13.1' (section II, paragraph 13, sentence 1) or 'Table IV'.
    claim : str
    experiment, study, test, docs, reason : str
        Exactly one of them is not empty: the name of an experiment or a study of `quadric
        reproduce`, a test, a heading of a page in docs/, or why the statement cannot be judged.
    printed, found : str
        What the paper prints and what we find, for statements judged by a test or a derivation.
    paper_verdict, verdict : Verdict
        The verdicts on these two.
    method : str
        How our verdict was reached.
    """

    id: str
    where: list[str]
    claim: str
    experiment: str = ""
    study: str = ""
    test: str = ""
    docs: str = ""
    reason: str = ""
    printed: str = ""
    found: str = ""
    paper_verdict: Verdict = Verdict.UNKNOWN
    verdict: Verdict = Verdict.UNKNOWN
    method: str = ""

    @property
    def judged_by(self) -> str:
        """The command, test or page that judges the statement; '-' if none does."""
        if name := self.experiment or self.study:
            return f"quadric reproduce {name}"
        return self.test or self.docs or "-"

    @property
    def sections(self) -> list[str]:
        """The sections in which the statement appears, without repetitions."""
        return list(dict.fromkeys(section_of(place) for place in self.where))

    @property
    def sentences(self) -> str:
        """All places in words."""
        return in_words(self.where)


def section_of(place: str) -> str:
    """Return the section, table, figure or algorithm of a place.

    >>> section_of("VI-A 1.9"), section_of("Table IV")
    ('VI-A', 'Table IV')
    """
    return re.sub(r" \d+\.\d+$", "", place)


def in_words(places: Iterable[str]) -> str:
    """Return places as they are printed; a section is named once.

    >>> in_words(["II 13.1", "II 18.1", "II 18.2", "II 18.3", "Table I"])
    'II, paragraph 13, sentence 1, paragraph 18, sentences 1, 2, 3; Table I'
    """
    sections: dict[str, dict[str, list[str]]] = {}  # the sentences of each paragraph
    for place in places:
        section = section_of(place)
        paragraph, _, sentence = place.removeprefix(section).strip().partition(".")
        paragraphs = sections.setdefault(section, {})
        if paragraph:
            paragraphs.setdefault(paragraph, []).append(sentence)
    texts = []
    for section, paragraphs in sections.items():
        parts = [section]
        for paragraph, sentences in paragraphs.items():
            plural = "s" if len(sentences) > 1 else ""
            parts.append(f"paragraph {paragraph}, sentence{plural} {', '.join(sentences)}")
        texts.append(", ".join(parts))
    return "; ".join(texts)


def document() -> dict[str, Any]:
    """Return the contents of `claims.toml`."""
    text = resources.files(__package__).joinpath("claims.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def statements() -> Mapping[str, Statement]:
    """Return all statements by id, in the order of the list."""
    by_id = {}
    for entry in document()["claims"]:
        for key, name in (("paper", "paper_verdict"), ("ours", "verdict")):
            entry[name] = Verdict(entry.pop(key, Verdict.UNKNOWN))
        by_id[entry["id"]] = Statement(**entry)
    return by_id


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
