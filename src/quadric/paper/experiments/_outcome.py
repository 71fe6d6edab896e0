"""What an experiment returns: tables, claims with a verdict, and figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# called with (how much is done, of how much, what is being done)
Progress = Callable[[float, float, str], None]


def silent(done: float, total: float, text: str) -> None:
    """Progress that is shown to nobody."""


@dataclass(frozen=True)
class Table:
    """Rows of plain values under named columns.

    Attributes
    ----------
    name : str
        For the file: letters, digits and underscores.
    title : str
    columns : sequence of str
    rows : sequence of sequences
        Numbers, strings, booleans or None.
    note : str
        How to read it.
    formats : dict
        The format of a column's numbers, for example ``{"mean": ".2f"}``.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""
    formats: dict[str, str] = field(default_factory=dict)

    def text(self, column: int, value: Any) -> str:
        """A cell as it is shown."""
        if value is None:
            return "-"
        if isinstance(value, bool):
            return "yes" if value else "no"
        style = self.formats.get(self.columns[column])
        return format(value, style) if style and not isinstance(value, str) else str(value)


@dataclass(frozen=True)
class Claim:
    """Something the paper says, and whether it holds.

    Attributes
    ----------
    text : str
        The claim.
    paper, ours : str
        What the paper's own numbers say, and what ours say.
    holds : bool or None
        Whether ours hold it; None where there is nothing to judge.
    paper_holds : bool or None
        Whether the paper's own numbers hold it.
    erratum : bool
        Whether the claim is something printed that is suspected to be an error.
    """

    text: str
    paper: str
    ours: str
    holds: bool | None
    paper_holds: bool | None = None
    erratum: bool = False


@dataclass
class Outcome:
    """The result of one experiment.

    Attributes
    ----------
    name, title : str
    summary : str
        In a sentence or two, what was done and with what.
    tables : list of Table
    claims : list of Claim
    figures : dict of Figure
        By the name of their file.
    facts : dict
        Settings and measurements worth keeping: data, seeds, seconds.
    """

    name: str
    title: str
    summary: str
    tables: list[Table] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    figures: dict[str, Figure] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
