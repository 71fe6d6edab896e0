"""A verdict on a statement of the paper, and how an experiment reports it."""

from dataclasses import dataclass
from enum import StrEnum

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
