"""Profiles of a table's columns: counts, moments and distinct values, collected batch by batch."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import polars as pl

from quadric.apps.shell.tables._preprocessing import TRUTH, check_size, clean, to_numbers, to_text
from quadric.apps.shell.tables._schema import (
    LARGEST,
    Check,
    check_fields,
    expect,
    in_range,
    is_count,
    one_of,
)
from quadric.apps.shell.tables._table_format import DECIMAL_COMMA, GROUPS_OF_THREE
from quadric.checks import Array

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
