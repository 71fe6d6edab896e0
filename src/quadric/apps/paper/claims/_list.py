"""The list of the paper's statements, read from `claims.toml`."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from quadric.apps.paper.claims._verdict import Verdict

# How a statement is judged: by an experiment or a study, by a test, by a derivation in docs/, or
# not at all, for a reason.
JUDGES = ("experiment", "study", "test", "docs", "reason")


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


@dataclass(frozen=True)
class PaperText:
    """The number of sentences of each paragraph by section, and sentences without a claim.

    Attributes
    ----------
    paragraphs : dict of list of int
    numbered : list of str
        Tables, figures, algorithms and the list of contributions, which count as one place each.
    without_claim : dict of list of str
        Places by the reason why they state nothing that can be true or false.
    """

    paragraphs: Mapping[str, list[int]]
    numbered: list[str]
    without_claim: Mapping[str, list[str]]

    def places(self) -> list[str]:
        """Return every sentence, table, figure and algorithm of the paper."""
        return [
            f"{section} {paragraph}.{sentence}"
            for section, counts in self.paragraphs.items()
            for paragraph, count in enumerate(counts, start=1)
            for sentence in range(1, count + 1)
        ] + list(self.numbered)


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


def _document() -> dict[str, Any]:
    text = resources.files(__package__).joinpath("claims.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def statements() -> Mapping[str, Statement]:
    """Return all statements by id, in the order of the list."""
    by_id = {}
    for entry in _document()["claims"]:
        for key, name in (("paper", "paper_verdict"), ("ours", "verdict")):
            entry[name] = Verdict(entry.pop(key, Verdict.UNKNOWN))
        by_id[entry["id"]] = Statement(**entry)
    return by_id


def paper_text() -> PaperText:
    """Return the structure of the paper's text, from `claims.toml`."""
    text = _document()["text"]
    return PaperText(text["paragraphs"], text["numbered"], text["without_claim"])
