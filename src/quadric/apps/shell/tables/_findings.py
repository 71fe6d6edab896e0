"""Findings: what the profiles of a table suggest that the user should check."""

import re
import shlex
from collections.abc import Iterator, Mapping

from quadric.apps.shell.tables._column_profile import ColumnProfile
from quadric.apps.shell.tables._schema import Finding
from quadric.utils import counted, listed

MOSTLY = 0.9  # above this share of numbers, the other values are considered mistakes, not text
ROWS_PER_CLASS = 5  # values that occur this often, on average, may be classes
MOST_INTEGER_CLASSES = 200
MOST_NAMED = 8
FEW_ROWS = 20  # fewer numbers may count up by chance
IDENTIFIER = re.compile(
    r"(^|[ _.-])(id|ids|uid|uuid|guid|idx|index|key|zip|zip_?code|post_?code|postal_?code|plz|"
    r"phone|row_?(nr|no|number)|serial|ssn|isbn|unnamed: ?\d+)$",
    re.IGNORECASE,
)
CAMEL_IDENTIFIER = re.compile(r"[a-z](Id|ID)$")  # such as customerId


def find(
    inputs: Mapping[str, ColumnProfile],
    kinds: Mapping[str, str],
    target: ColumnProfile | None,
) -> Iterator[Finding]:
    """Yield at most one finding of each kind.

    Parameters
    ----------
    inputs : mapping of str to ColumnProfile
        The profiles of the columns for which the user made no choice, except the target.
    kinds : mapping of str to str
        The kind of each column that the model uses.
    target : ColumnProfile or None
        The target, if its values suggest a regression and the user did not choose the task.
    """
    texts = {
        name: profile for name, profile in inputs.items() if kinds.get(name) in (None, "category")
    }
    decimal = [name for name, profile in texts.items() if _mark(profile) == "--decimal"]
    thousands = [name for name, profile in texts.items() if _mark(profile) == "--thousands"]
    if decimal:
        sentence = _commas(texts, decimal, "decimal commas")
        yield Finding("decimal comma", tuple(decimal), sentence)
    if thousands:
        sentence = _commas(texts, thousands, "commas between thousands")
        yield Finding("thousands", tuple(thousands), sentence)
    mixed = [
        name
        for name, profile in texts.items()
        if kinds.get(name) == "category" and _is_mixed(profile) and not _mark(profile)
    ]
    if mixed:
        examples = [f"{name!r} ({_exceptions(texts[name])})" for name in mixed]
        yield Finding(
            "mixed",
            tuple(mixed),
            f"Numbers with a few other values are used as categories: "
            f"{listed(examples, MOST_NAMED)}. Correct these values or leave them empty, so that "
            "the column is numeric.",
        )
    identifiers = [
        name
        for name, profile in inputs.items()
        if kinds.get(name) == "number" and _is_identifier(profile)
    ]
    if identifiers:
        drop = " ".join(f"--drop {shlex.quote(name)}" for name in identifiers[:MOST_NAMED])
        yield Finding(
            "identifier",
            tuple(identifiers),
            f"Used as numbers, but probably identifiers or codes: "
            f"{listed(map(repr, identifiers), MOST_NAMED)}. If so, use {drop}, or --categorical "
            "for a code with few values.",
        )
    if target is not None and _may_be_classes(target):
        distinct = len(target.values or ())
        yield Finding(
            "integer target",
            (target.name,),
            f"The target {target.name!r} has {distinct} distinct integers and is predicted as a "
            "number. If they are classes, use --task classification.",
        )


def how_to_read(profile: ColumnProfile) -> str:
    """Return the option that makes a column of text numeric, as a sentence; empty if none does."""
    option = _mark(profile)
    return f"Use {option} , to read such values as numbers." if option else ""


def _mark(profile: ColumnProfile) -> str:
    """Return the option for the commas in a column's numbers; empty if it has none."""
    commas = max(profile.commas, profile.grouped)
    if not commas or profile.numeric + commas <= MOSTLY * profile.present:
        return ""
    return "--decimal" if profile.commas > profile.grouped else "--thousands"


def _commas(profiles: Mapping[str, ColumnProfile], names: list[str], marks: str) -> str:
    examples = [f"{name!r} (such as {_first_odd(profiles[name])})" for name in names]
    return (
        f"Numbers with {marks} are read as text: {listed(examples, MOST_NAMED)}. "
        f"{how_to_read(profiles[names[0]])}"
    )


def _first_odd(profile: ColumnProfile) -> str:
    row, value = profile.odd or (0, "")
    return f"{value!r} in row {row}"


def _exceptions(profile: ColumnProfile) -> str:
    count = profile.present - profile.numeric
    which = "" if count == 1 else "the first is "
    return f"{counted(count, 'value')}; {which}{_first_odd(profile)}"


def _is_mixed(profile: ColumnProfile) -> bool:
    return MOSTLY * profile.present < profile.numeric < profile.present


def _is_identifier(profile: ColumnProfile) -> bool:
    """Whether the name is that of an identifier, or the numbers are row numbers."""
    named = IDENTIFIER.search(profile.name) or CAMEL_IDENTIFIER.search(profile.name)
    numbered = profile.counts_up and profile.numeric == profile.rows >= FEW_ROWS
    return profile.whole and bool(named or numbered)


def _may_be_classes(profile: ColumnProfile) -> bool:
    """Whether a target that is predicted as a number has integers that occur several times."""
    if profile.values is None or profile.numeric < profile.present or not profile.whole:
        return False
    distinct = len(profile.values)
    return distinct <= MOST_INTEGER_CLASSES and profile.present >= ROWS_PER_CLASS * distinct
