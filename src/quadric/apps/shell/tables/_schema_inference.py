"""Schema inference: profile the columns, and decide which ones a model uses, and how.

Profiles are counts, moments and distinct values, collected batch by batch. Findings are what they
suggest that the user should check.
"""

import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import polars as pl

from quadric.apps.shell.tables._options import (
    DECIMAL_COMMA,
    GROUPS_OF_THREE,
    ColumnOptions,
    check_columns,
    refuse,
)
from quadric.apps.shell.tables._schema import (
    LARGEST,
    TRUTH,
    Check,
    Column,
    Finding,
    Schema,
    check_fields,
    check_size,
    clean,
    expect,
    in_range,
    is_count,
    one_of,
    to_numbers,
    to_text,
)
from quadric.checks import Array
from quadric.errors import TableError
from quadric.utils import counted, first_applying, listed

DATE = r"^(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})([T ].*)?$"
MOST_CLASSES = 100_000
MANY_CLASSES = 200  # more distinct texts than this are classes only if they occur several times
LONGEST_CATEGORY = 100_000  # characters; model files store all categories
FEW_INTEGERS = 20  # a target with at most this many distinct integers is treated as classes
WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.0*)?")
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


@dataclass
class ColumnProfile:
    """The profile of one column, to which `profile_batch` adds rows.

    Attributes
    ----------
    name : str
    most_values : int
        The maximum number of distinct values to count.
    type : {'text', 'number', 'boolean', 'other'}
        Every column of a CSV file is text.
    rows, missing : int
        The number of rows, and the number of rows without a value.
    numeric, booleans, dates : int
        The number of values that can be read as numbers, booleans and dates.
    mean, m2 : float
        The mean of the numbers and the sum of their squared deviations from it.
    varies : bool
        Whether there are at least two different numbers.
    first : float or None
        The first number.
    whole : bool
        Whether every number is an integer.
    counts_up : bool
        Whether every number is the previous one plus 1, as in a column of row numbers.
    last : float or None
        The last number.
    commas, grouped : int
        The number of values that look like numbers with a decimal comma, such as '5,1', and with
        commas between thousands, such as '1,234,567'. A value such as '1,234' counts as both.
    values : dict or None
        The count of each distinct value; None if there are more than `most_values`.
    odd : (int, str) or None
        The row and the text of the first value that is not a number.
    """

    name: str
    most_values: int
    type: str = "text"
    rows: int = 0
    missing: int = 0
    numeric: int = 0
    booleans: int = 0
    dates: int = 0
    mean: float = 0.0
    m2: float = 0.0
    varies: bool = False
    first: float | None = None
    whole: bool = True
    counts_up: bool = True
    last: float | None = None
    commas: int = 0
    grouped: int = 0
    values: dict[str, int] | None = field(default_factory=dict)
    odd: tuple[int, str] | None = None

    @property
    def present(self) -> int:
        """The number of values that are not missing."""
        return self.rows - self.missing

    @property
    def std(self) -> float:
        """The standard deviation of the numbers, with divisor n."""
        return (self.m2 / self.numeric) ** 0.5 if self.numeric else 0.0

    @property
    def longest(self) -> int:
        """The number of characters of the longest distinct value."""
        return max(map(len, self.values or ()), default=0)

    @property
    def first_odd(self) -> str:
        """A description of the first value that is not a number."""
        row, value = self.odd or (0, "")
        return f"{value!r} in row {row}"

    @classmethod
    def from_dict(cls, state: Any) -> Self:
        """Return a profile from its attributes; raise ValueError if they are inconsistent."""
        check_fields(state, PROFILE_FIELDS, "a column's profile")
        profile = cls(**state)
        values, present = profile.values, profile.present
        consistent = (
            max(0, profile.numeric, profile.booleans, profile.dates) <= present
            and (profile.first is None) == (profile.numeric == 0) == (profile.last is None)
            and max(profile.commas, profile.grouped) <= present
            and len(values or ()) <= profile.most_values
            and (values is None or profile.type == "other" or sum(values.values()) == present)
            and (profile.odd is None or 1 <= profile.odd[0] <= profile.rows)
        )
        expect({f"the profile of {profile.name[:80]!r}": consistent})
        return profile

    def add(self, column: pl.Series, numbers: pl.Series) -> None:
        """Add the cleaned values of a batch; `numbers` holds them converted to numbers."""
        dtype, present = column.dtype, len(column) - column.null_count()
        self.type = {pl.String: "text", pl.Boolean: "boolean"}.get(dtype, "number")  # type: ignore[call-overload]
        values = numbers.to_numpy()  # NaN where the value is not a number
        check_size(self.name, values, self.rows)
        values = values[~np.isnan(values)]
        if len(values):
            self._add_to_moments(values)
            self.first = float(values[0]) if self.first is None else self.first
            self.varies = self.varies or bool((values != self.first).any())
            self.whole = self.whole and bool((values == np.floor(values)).all())
            before = values[:1] - 1 if self.last is None else np.array([self.last])
            steps = np.diff(np.concatenate([before, values])) if self.counts_up else None
            self.counts_up = steps is not None and bool((steps == 1).all())
            self.last = float(values[-1])
        if dtype == pl.Boolean:
            self.booleans += present
        elif dtype == pl.String and present and set(values[:2]) <= {0.0, 1.0}:
            self.booleans += int(column.str.to_lowercase().is_in(list(TRUTH)).sum())
        if len(values) < present:
            odd = numbers.is_null() & column.is_not_null()
            texts = column.filter(odd)
            self.dates += int(texts.str.contains(DATE).sum())
            self.commas += int(texts.str.contains(DECIMAL_COMMA).sum())
            self.grouped += int(texts.str.contains(GROUPS_OF_THREE).sum())
            row = int(odd.arg_max() or 0)
            self.odd = self.odd or (self.rows + row + 1, column[row])
        self._count_values(column.drop_nulls())

    def _add_to_moments(self, values: Array) -> None:
        """Update the mean and m2 with Chan's formula."""
        n, mean = len(values), float(values.mean())
        total, difference = self.numeric + n, mean - self.mean
        self.m2 += float(((values - mean) ** 2).sum()) + difference**2 * self.numeric * n / total
        self.mean += difference * n / total
        self.numeric = total

    def _count_values(self, column: pl.Series) -> None:
        if self.values is not None and column.n_unique() <= self.most_values:
            counts = column.value_counts(name="how many")
            for text, count in zip(to_text(counts[self.name]), counts["how many"], strict=True):
                self.values[text] = self.values.get(text, 0) + count
            if len(self.values) <= self.most_values:
                return
        self.values = None


PROFILE_FIELDS: dict[str, Check] = {
    "name": str,
    "type": one_of("text", "number", "boolean", "other"),
    **dict.fromkeys(("most_values", "rows", "missing", "numeric", "booleans", "dates"), is_count),
    **dict.fromkeys(("commas", "grouped"), is_count),
    "mean": in_range(-LARGEST, LARGEST),
    "m2": in_range(0, sys.float_info.max),
    **dict.fromkeys(
        ("first", "last"), lambda value: value is None or in_range(-LARGEST, LARGEST)(value)
    ),
    **dict.fromkeys(("varies", "whole", "counts_up"), bool),
    "values": lambda value: (
        value is None
        or (isinstance(value, dict) and all(is_count(n) and n > 0 for n in value.values()))
    ),
    "odd": lambda value: (
        value is None
        or (isinstance(value, list) and list(map(type, value)) == [int, str] and is_count(value[0]))
    ),
}


def profile_batch(profiles: Iterable[ColumnProfile], frame: pl.DataFrame) -> None:
    """Add the rows of a frame to the profiles."""
    cleaned = clean(frame)
    numbers = to_numbers(cleaned)
    columns = {column.name: column for column in cleaned}
    for profile in profiles:
        if profile.name in numbers:
            profile.add(columns[profile.name], numbers[profile.name])
        else:
            profile.type = "other"
        profile.rows += len(frame)
        profile.missing += columns[profile.name].null_count()


def new_profiles(options: ColumnOptions, columns: Sequence[str]) -> list[ColumnProfile]:
    """Return empty profiles for a table's columns; raise TableError for an unknown name."""
    check_columns((options.target, *options.drop, *options.categorical), columns)
    if options.target in options.drop:
        raise TableError(f"{options.target!r} is the target and cannot be dropped.")
    return [
        ColumnProfile(name, MOST_CLASSES if name == options.target else options.most_categories)
        for name in columns
    ]


def infer_schema(
    profiles: Sequence[ColumnProfile], options: ColumnOptions, unnamed: Sequence[str] = ()
) -> Schema:
    """Determine the inputs, their kinds and the task from the profiles."""
    by_name = {profile.name: profile for profile in profiles}
    target = by_name.pop(options.target)
    if not target.rows:
        raise TableError("the table has column names but no rows.")
    task, counts = _task_and_classes(target, options.task)
    found = {name: _column_or_reason(one, options, unnamed) for name, one in by_name.items()}
    left_out = {name: why for name, why in found.items() if isinstance(why, str)}
    columns = tuple(column for column in found.values() if isinstance(column, Column))
    if not columns:
        reasons = "; ".join(f"{name!r}: {why}" for name, why in list(left_out.items())[:5])
        reasons = reasons or f"the table has only the target {options.target!r}"
        advice = next(filter(None, map(_how_to_read, map(_mark, by_name.values()))), "")
        raise TableError(f"no column is left to learn from ({reasons}). {advice}".strip())
    chosen = {*options.drop, *options.categorical, *unnamed}
    findings = _findings(
        {name: profile for name, profile in by_name.items() if name not in chosen},
        {column.name: column.kind for column in columns},
        target,
        is_open=options.task is None and task == "regression",
    )
    return Schema(
        columns,
        target.name,
        task,
        tuple(sorted(counts)),
        tuple(counts[label] for label in sorted(counts)),
        left_out,
        target.rows,
        target.missing,
        *((target.mean, target.std) if task == "regression" else (0.0, 1.0)),
        order=tuple(by_name),
        findings=findings,
    )


def _column_or_reason(
    profile: ColumnProfile, options: ColumnOptions, unnamed: Sequence[str]
) -> Column | str:
    """Return an input, or the reason why the column is not used."""
    name, present, values = profile.name, profile.present, profile.values
    forced = name in options.categorical
    numeric = profile.numeric == present and not forced
    constant = not profile.varies if numeric else len(values or ()) == 1 and not profile.missing
    longest = 0 if numeric else profile.longest
    too_many = (
        f"it is text with more than {profile.most_values} distinct values; --max-categories raises "
        "the limit"
    )
    reason = first_applying(
        {
            "it has no name": name in unnamed,
            "dropped on request": name in options.drop,
            "all its values are missing": not present,
            "it contains dates (convert them to numbers of days)": profile.dates > MOSTLY * present,
            "its values are neither numbers nor text": profile.type == "other",
            "it has only one value": constant,
            f"it contains text of {longest:,} characters": longest > LONGEST_CATEGORY,
            too_many: not numeric and values is None,
        }
    )
    if reason == too_many and profile.numeric > MOSTLY * present and not forced:
        raise TableError(
            f"column {name!r} contains numbers except for "
            f"{counted(present - profile.numeric, 'value')}; the first is {profile.first_odd}. "
            f"{_how_to_read(_mark(profile)) or 'Correct them, or drop the column with --drop.'}"
        )
    if reason:
        return reason
    kind = first_applying(
        {"category": not numeric, "boolean": profile.booleans == present, "number": True}
    )
    categories = () if numeric else tuple(sorted(values or ()))
    return Column(name, kind, categories, profile.missing, profile.mean, profile.std)


def _task_and_classes(profile: ColumnProfile, task: str | None) -> tuple[str, dict[Any, int]]:
    """Return the task and the number of rows in each class; `task` is None if not given."""
    target, present = f"the target {profile.name!r}", profile.present
    refuse(
        {
            f"all values of {target} are missing.": not present,
            f"{target} contains neither numbers nor text.": profile.type == "other",
        }
    )
    numeric = profile.numeric == present and profile.booleans < present
    counts: dict[Any, int] | None = profile.values
    # labels such as 007, and integers too large for a float, remain strings
    plain = all(WHOLE.fullmatch(text) and abs(float(text)) < 2**53 for text in counts or ())
    if counts is not None and numeric and profile.whole and plain:
        texts, counts = counts, Counter()
        for text, count in texts.items():
            counts[int(float(text))] += count
    few = counts is not None and len(counts) <= FEW_INTEGERS and profile.whole
    if task == "regression" or (task is None and numeric and not few):
        refuse(
            {
                f"regression needs a numeric target, but {profile.name!r} contains "
                f"{profile.first_odd}. {_how_to_read(_mark(profile))}".strip(): (
                    profile.numeric < present
                ),
                f"{target} has only one value, so there is nothing to learn.": not profile.varies,
            }
        )
        return "regression", {}
    _check_classes(profile, counts, inferred=task is None)
    return "classification", counts or {}


def _check_classes(profile: ColumnProfile, counts: dict[Any, int] | None, inferred: bool) -> None:
    """Raise TableError for a target that is not suitable as a class.

    If the task is `inferred`, numbers with commas and too many different texts are also refused.
    """
    target, advice = f"the target {profile.name!r}", _how_to_read(_mark(profile))
    _, value = profile.odd or (0, "")
    classes = list(counts or ())
    many = len(classes) > MANY_CLASSES and profile.present < ROWS_PER_CLASS * len(classes)
    refuse(
        {
            f"{target} contains numbers with commas, such as {value!r}. {advice}": (
                inferred and advice
            ),
            f"{target} has more than {MOST_CLASSES:,} distinct values. Check that it is the right "
            "column; for numbers, use --task regression.": counts is None,
            f"{target} is text with {len(classes):,} distinct values in {profile.present:,} rows. "
            "Check that it is the right column. If it is, use --task classification.": (
                inferred and many
            ),
            f"{target} has a class of {profile.longest:,} characters. Check that it is the right "
            "column, or use shorter names.": profile.longest > LONGEST_CATEGORY,
            f"{target} has only one class, {next(iter(classes), '')!r}, so there is nothing to "
            "learn.": len(classes) == 1,
        }
    )


def _findings(
    inputs: Mapping[str, ColumnProfile],
    kinds: Mapping[str, str],
    target: ColumnProfile,
    *,
    is_open: bool,
) -> tuple[Finding, ...]:
    """Return at most one finding of each kind.

    Parameters
    ----------
    inputs : mapping of str to ColumnProfile
        The profiles of the columns for which the user made no choice, except the target.
    kinds : mapping of str to str
        The kind of each column that the model uses.
    target : ColumnProfile
    is_open : bool
        Whether the target's values suggest a regression and the user did not choose the task.
    """
    texts = {
        name: profile for name, profile in inputs.items() if kinds.get(name) in (None, "category")
    }
    mixed = {
        name: f"{name!r} ({_exceptions(profile)})"
        for name, profile in texts.items()
        if name in kinds
        and MOSTLY * profile.present < profile.numeric < profile.present
        and not _mark(profile)
    }
    identifiers = [
        name
        for name, profile in inputs.items()
        if kinds.get(name) == "number" and _is_identifier(profile)
    ]
    drop = " ".join(f"--drop {shlex.quote(name)}" for name in identifiers[:MOST_NAMED])
    classes = (target.name,) if is_open and _may_be_classes(target) else ()
    found = [
        _commas("decimal comma", texts, "--decimal", "decimal commas"),
        _commas("thousands", texts, "--thousands", "commas between thousands"),
        Finding(
            "mixed",
            tuple(mixed),
            f"Numbers with a few other values are used as categories: "
            f"{listed(mixed.values(), MOST_NAMED)}. Correct these values or leave them empty, so "
            "that the column is numeric.",
        ),
        Finding(
            "identifier",
            tuple(identifiers),
            f"Used as numbers, but probably identifiers or codes: "
            f"{listed(map(repr, identifiers), MOST_NAMED)}. If so, use {drop}, or --categorical "
            "for a code with few values.",
        ),
        Finding(
            "integer target",
            classes,
            f"The target {target.name!r} has {len(target.values or ())} distinct integers and is "
            "predicted as a number. If they are classes, use --task classification.",
        ),
    ]
    return tuple(finding for finding in found if finding.columns)


def _commas(kind: str, texts: Mapping[str, ColumnProfile], option: str, marks: str) -> Finding:
    """Return the finding about columns of text that an option would make numeric."""
    found = {name: profile for name, profile in texts.items() if _mark(profile) == option}
    examples = [f"{name!r} (such as {profile.first_odd})" for name, profile in found.items()]
    return Finding(
        kind,
        tuple(found),
        f"Numbers with {marks} are read as text: {listed(examples, MOST_NAMED)}. "
        f"{_how_to_read(option)}",
    )


def _how_to_read(option: str) -> str:
    """Return a sentence about the option that makes text numeric; empty if there is none."""
    return f"Use {option} , to read such values as numbers." if option else ""


def _mark(profile: ColumnProfile) -> str:
    """Return the option for the commas in a column's numbers; empty if it has none."""
    commas = max(profile.commas, profile.grouped)
    if not commas or profile.numeric + commas <= MOSTLY * profile.present:
        return ""
    return "--decimal" if profile.commas > profile.grouped else "--thousands"


def _exceptions(profile: ColumnProfile) -> str:
    """Describe the few values of a column that are not numbers."""
    count = profile.present - profile.numeric
    which = "" if count == 1 else "the first is "
    return f"{counted(count, 'value')}; {which}{profile.first_odd}"


def _is_identifier(profile: ColumnProfile) -> bool:
    """Whether the name is that of an identifier, or the numbers are row numbers."""
    named = IDENTIFIER.search(profile.name) or CAMEL_IDENTIFIER.search(profile.name)
    numbered = profile.counts_up and profile.numeric == profile.rows >= FEW_ROWS
    return profile.whole and bool(named or numbered)


def _may_be_classes(profile: ColumnProfile) -> bool:
    """Whether a target that is predicted as a number has integers that occur several times."""
    distinct, present = len(profile.values or ()), profile.present
    whole = profile.whole and profile.numeric == present
    return whole and 0 < distinct <= MOST_INTEGER_CLASSES and present >= ROWS_PER_CLASS * distinct
