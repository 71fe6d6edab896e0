"""Schema inference: profile the columns of a table, then decide which ones a model uses and how.

A profile contains counts, moments and distinct values, collected batch by batch.
"""

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import polars as pl

from quadric._utils.arrays import Array
from quadric._utils.text import counted, first_applying, listed
from quadric.errors import TableError
from quadric.tables._features import TRUTH, check_size, clean, to_numbers, to_text
from quadric.tables._schema import (
    LARGEST,
    Check,
    Column,
    Schema,
    check_fields,
    expect,
    in_range,
    is_count,
    one_of,
)

MOST_CATEGORIES = 50
MOST_CLASSES = 200
FEW_INTEGERS = 20  # a target with at most this many distinct integers is treated as classes
MOSTLY = 0.9  # above this share of numbers, the other values are considered mistakes, not text
WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.0*)?")
DATE = r"^(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})([T ].*)?$"


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

    @classmethod
    def from_dict(cls, state: Any) -> Self:
        """Return a profile from its attributes; raise ValueError if they are inconsistent."""
        check_fields(state, PROFILE_FIELDS, "a column's profile")
        profile = cls(**state)
        values, present = profile.values, profile.present
        consistent = (
            max(0, profile.numeric, profile.booleans, profile.dates) <= present
            and (profile.first is None) == (profile.numeric == 0)
            and len(values or ()) <= profile.most_values
            and (values is None or profile.type == "other" or sum(values.values()) == present)
            and (profile.odd is None or 1 <= profile.odd[0] <= profile.rows)
        )
        expect(consistent, f"the profile of {profile.name[:80]!r}")
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
        if dtype == pl.Boolean:
            self.booleans += present
        elif dtype == pl.String and present and set(values[:2]) <= {0.0, 1.0}:
            self.booleans += int(column.str.to_lowercase().is_in(list(TRUTH)).sum())
        if len(values) < present:
            odd = numbers.is_null() & column.is_not_null()
            self.dates += int(column.filter(odd).str.contains(DATE).sum())
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
        if self.values is None or column.n_unique() > self.most_values:
            self.values = None
            return
        counts = column.value_counts(name="how many")
        for text, count in zip(to_text(counts[self.name]), counts["how many"], strict=True):
            self.values[text] = self.values.get(text, 0) + count
        if len(self.values) > self.most_values:
            self.values = None


PROFILE_FIELDS: dict[str, Check] = {
    "name": str,
    "type": one_of("text", "number", "boolean", "other"),
    **dict.fromkeys(("most_values", "rows", "missing", "numeric", "booleans", "dates"), is_count),
    "mean": in_range(-LARGEST, LARGEST),
    "m2": in_range(0, sys.float_info.max),
    "first": lambda value: value is None or in_range(-LARGEST, LARGEST)(value),
    "varies": bool,
    "whole": bool,
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


@dataclass(frozen=True)
class ColumnOptions:
    """The target and the user's choices about the columns.

    Parameters
    ----------
    target : str
        The column to predict.
    task : {'classification', 'regression'}, optional
        By default, inferred from the target's values.
    drop : sequence of str
        Columns to ignore.
    categorical : sequence of str
        Numeric columns to treat as categories.
    most_categories : int
        Text columns with more distinct values than this are not used.

    Examples
    --------
    >>> ColumnOptions("species", drop=["id"]).target
    'species'
    """

    target: str
    task: str | None = None
    drop: Sequence[str] = ()
    categorical: Sequence[str] = ()
    most_categories: int = MOST_CATEGORIES

    def new_profiles(self, columns: Sequence[str]) -> list[ColumnProfile]:
        """Return empty profiles for a table's columns; raise TableError for an unknown name."""
        for name in (self.target, *self.drop, *self.categorical):
            if name not in columns:
                raise TableError(
                    f"there is no column {name!r}. The columns are {listed(map(repr, columns))}."
                )
        if self.target in self.drop:
            raise TableError(f"{self.target!r} is the target and cannot be dropped.")
        return [
            ColumnProfile(name, MOST_CLASSES if name == self.target else self.most_categories)
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
    kinds = {name: _kind(profile, options, unnamed) for name, profile in by_name.items()}
    left_out = {name: why for name, (_, why) in kinds.items() if why}
    columns = [_column(by_name[name], kind) for name, (kind, why) in kinds.items() if not why]
    if not columns:
        reasons = "; ".join(f"{name!r}: {why}" for name, why in list(left_out.items())[:5])
        reasons = reasons or f"the table has only the target {options.target!r}"
        raise TableError(f"no column is left to learn from ({reasons}).")
    moments = (target.mean, target.std) if task == "regression" else (0.0, 1.0)
    return Schema(
        tuple(columns),
        target.name,
        task,
        tuple(sorted(counts)),
        tuple(counts[label] for label in sorted(counts)),
        left_out,
        target.rows,
        target.missing,
        *moments,
        order=tuple(by_name),
    )


def _column(profile: ColumnProfile, kind: str) -> Column:
    categories = tuple(sorted(profile.values or ())) if kind == "category" else ()
    return Column(profile.name, kind, categories, profile.missing, profile.mean, profile.std)


def _kind(
    profile: ColumnProfile, options: ColumnOptions, unnamed: Sequence[str]
) -> tuple[str, str]:
    """Return an input's kind and "", or "" and the reason why the column is not used."""
    name, present = profile.name, profile.present
    forced = name in options.categorical
    numeric = profile.numeric == present and not forced
    distinct = None if profile.values is None else len(profile.values)
    constant = not profile.varies if numeric else distinct == 1 and not profile.missing
    reasons = {
        "it has no name": name in unnamed,
        "dropped on request": name in options.drop,
        "all its values are missing": not present,
        "it contains dates (convert them to numbers of days)": profile.dates > MOSTLY * present,
        "its values are neither numbers nor text": profile.type == "other",
        "it has only one value": constant,
    }
    if why := first_applying(reasons):
        return "", why
    if numeric:
        return ("boolean" if profile.booleans == present else "number"), ""
    if distinct is not None:
        return "category", ""
    if profile.numeric > MOSTLY * present and not forced:
        row, value = profile.odd or (0, "")
        raise TableError(
            f"column {name!r} contains numbers except for "
            f"{counted(present - profile.numeric, 'value')}; the first is {value!r} in row {row}. "
            "Correct them, or drop the column with --drop."
        )
    return "", (
        f"it is text with more than {profile.most_values} distinct values; "
        "--max-categories raises the limit"
    )


def _task_and_classes(profile: ColumnProfile, task: str | None) -> tuple[str, dict[Any, int]]:
    """Return the task and the number of rows in each class."""
    target, present = f"the target {profile.name!r}", profile.present
    numeric = profile.numeric == present and profile.booleans < present
    counts: dict[Any, int] | None = profile.values
    # labels such as 007, and integers too large for a float, are left unchanged as strings
    if counts is not None and numeric and profile.whole and all(map(_is_plain_integer, counts)):
        texts, counts = counts, {}
        for text, count in texts.items():
            counts[int(float(text))] = counts.get(int(float(text)), 0) + count
    if task is None:
        few = counts is not None and len(counts) <= FEW_INTEGERS and profile.whole
        task = "regression" if numeric and not few else "classification"
    regression, classes = task == "regression", list(counts or ())
    row, value = profile.odd or (0, "")
    problems = {
        f"all values of {target} are missing.": not present,
        f"{target} contains neither numbers nor text.": profile.type == "other",
        f"regression needs a numeric target, but {profile.name!r} contains {value!r} in "
        f"row {row}.": regression and profile.numeric < present,
        f"{target} has only one value, so there is nothing to learn.": (
            regression and not profile.varies
        ),
        f"{target} has more than {MOST_CLASSES} distinct values. Check that it is the right "
        "column; for numbers, use --task regression.": not regression and counts is None,
        f"{target} has only one class, {', '.join(map(repr, classes))}, so there is nothing to "
        "learn.": not regression and len(classes) == 1,
    }
    if problem := first_applying(problems):
        raise TableError(problem)
    return task, {} if regression else counts or {}


def _is_plain_integer(text: str) -> bool:
    return WHOLE.fullmatch(text) is not None and abs(float(text)) < 2**53
