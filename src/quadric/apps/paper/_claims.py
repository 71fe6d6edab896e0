"""Every statement of the paper that can be true or false, and the verdicts on it.

`claims.toml` lists the statements, where they appear, and how each is judged. Experiments judge
statements by id (`Claim`); `judge` combines their verdicts with those of tests and derivations. The
file also lists the sentences of the paper that claim nothing, with the reason.
"""

import csv
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from quadric.apps.paper._experiment import Claim, Verdict, packaged

NOT_RUN = "not run: "
# The kinds of statements, and their headings. The last two are not claims of the paper's results.
KINDS = {
    "experiment": "Results of experiments",
    "mathematics": "Derivations and decision boundaries",
    "count": "Counts of multiplications, parameters and memory",
    "misprint": "Misprints and contradictions in the text",
    "question": "Questions of ours about the paper",
    "background": "Background, which is not judged",
}


@dataclass(frozen=True)
class Statement:
    """A statement of the paper in our words, where it appears, and how it is judged.

    Attributes
    ----------
    id : str
    kind : str
        One of `KINDS`.
    where : list of str
        Places such as 'II 13.1' (section II, paragraph 13, sentence 1) or 'Table IV'.
    claim : str
    experiment, study, test, docs, reason : str
        Exactly one of them is not empty: the name of an experiment or a study of `quadric
        reproduce`, a test, a heading of a page in docs/, or why the statement cannot be judged.
    finding : Claim
        What is found about it. Without a run: what the list states for a test or a derivation, the
        reason, or the command that judges the statement.
    recorded : Claim or None
        What the committed full run found, if this run cannot judge the statement.
    """

    id: str
    kind: str
    where: list[str]
    claim: str
    finding: Claim
    experiment: str = ""
    study: str = ""
    test: str = ""
    docs: str = ""
    reason: str = ""
    recorded: Claim | None = None

    @property
    def judged_by(self) -> str:
        """The command, test or page that judges the statement; '-' if none does."""
        name = self.experiment or self.study
        return f"quadric reproduce {name}" if name else self.test or self.docs or "-"

    @property
    def was_run(self) -> bool:
        """Whether the experiment that judges the statement was part of the run."""
        return not self.finding.ours.startswith(NOT_RUN)

    @property
    def sentences(self) -> str:
        """All places in words."""
        return in_words(self.where)

    def cells(self) -> tuple[str, ...]:
        """Return a row of claims.csv: the values of `COLUMNS`."""
        return (
            self.id,
            "; ".join(dict.fromkeys(section_of(place) for place in self.where)),
            self.sentences,
            self.claim,
            self.finding.paper,
            self.finding.paper_verdict,
            self.finding.ours,
            self.finding.verdict,
            self.finding.method,
            self.judged_by,
        )


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
    texts = {
        section: [
            f"paragraph {number}, sentence{'s' * (len(sentences) > 1)} {', '.join(sentences)}"
            for number, sentences in paragraphs.items()
        ]
        for section, paragraphs in sections.items()
    }
    return "; ".join(", ".join([section, *parts]) for section, parts in texts.items())


def document() -> dict[str, Any]:
    """Return the contents of `claims.toml`."""
    return tomllib.loads(packaged("claims.toml"))


# What an entry may say about itself: what is printed and found, and the verdicts on both.
LISTED = {
    "printed": "-",
    "found": "",
    "ours": Verdict.UNKNOWN,
    "paper": Verdict.UNKNOWN,
    "method": "",
}


def recorded() -> dict[str, Claim]:
    """Return what the committed full run found about each claim, by id."""
    return {
        row["id"]: Claim(row["id"], row["paper"], row["ours"], Verdict(row["verdict"]))
        for row in csv.DictReader(packaged("recorded.csv").splitlines())
    }


@cache
def statements() -> Mapping[str, Statement]:
    """Return all statements by id, in the order of the list."""
    by_id, full = {}, recorded()
    for entry in document()["claims"]:
        name = entry.get("experiment") or entry.get("study")
        printed, found, ours, paper, method = (
            entry.pop(key, default) for key, default in LISTED.items()
        )
        found = found or entry.get("reason") or f"{NOT_RUN}quadric reproduce {name}"
        by_id[entry["id"]] = Statement(
            **entry,
            finding=Claim(entry["id"], printed, found, Verdict(ours), Verdict(paper), method),
            recorded=full.get(entry["id"]) if name else None,
        )
    return by_id


def judge(claims: Iterable[Claim]) -> list[Statement]:
    """Return every statement of the list with what is found about it.

    Parameters
    ----------
    claims : iterable of Claim
        The verdicts of the experiments that were run.
    """
    judged = dict(statements())
    for claim in claims:
        statement = judged[claim.id]  # an unknown id is a mistake in an experiment
        if statement.was_run:  # also if the list judges it
            raise ValueError(f"the claim {claim.id!r} is judged twice")
        earlier = statement.recorded if claim.verdict is Verdict.UNKNOWN else None
        judged[claim.id] = replace(statement, finding=claim, recorded=earlier)
    return list(judged.values())
