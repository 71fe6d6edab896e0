"""Column profiles: counts, moments and distinct values, gathered batch by batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from math import inf
from typing import Any

import numpy as np
import polars as pl

from quadric._utils.arrays import Array
from quadric.tables._state_checks import (
    check_fields,
    expect,
    is_count,
    is_list,
    is_number,
    is_text,
    one_of,
)
from quadric.tables._values import LARGEST, TRUTH, check_size, clean, to_numbers, to_text

DATE = r"^(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})([T ].*)?$"


@dataclass
class ColumnProfile:
    """The profile of one column; `profile_batch` adds rows.

    Attributes
    ----------
    name : str
    most_values : int
        How many distinct values are counted.
    type : {'text', 'number', 'boolean', 'other'}
        Every column of a CSV file is text.
    rows, missing : int
        The number of rows, and of rows without a value.
    numeric, booleans, dates : int
        How many values can be read as such.
    mean, m2 : float
        The mean of the numbers, and their sum of squares about the mean.
    least, most : float
        The smallest and the largest number.
    whole : bool
        Whether every number is an integer.
    values : dict or None
        The count of each distinct value; None if there are more than `most_values`.
    odd : (int, str) or None
        Row and value of the first value that is not a number.
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
    least: float = inf
    most: float = -inf
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

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values; without numbers, `least` and `most` are None."""
        return asdict(self) | ({} if self.numeric else {"least": None, "most": None})

    @classmethod
    def from_dict(cls, state: Any) -> ColumnProfile:
        """Return the profile of a `to_dict`; raise ValueError if the values are not consistent."""
        check_fields(state, FIELDS, "a column's profile")
        what = f"the profile of {state['name'][:80]!r}"
        present, values, odd = state["rows"] - state["missing"], state["values"], state["odd"]
        expect(max(0, state["numeric"], state["booleans"], state["dates"]) <= present, what)
        if state["numeric"]:
            expect(None not in (state["least"], state["most"]), what)
            expect(state["least"] <= state["most"], what)
        else:
            expect(state["least"] is None and state["most"] is None, what)
            state = state | {"least": inf, "most": -inf}
        if values is not None:
            expect(len(values) <= state["most_values"], what)
            expect(state["type"] == "other" or sum(values.values()) == present, what)
        if odd is not None:
            expect(1 <= odd[0] <= state["rows"], what)
            state = state | {"odd": tuple(odd)}
        return cls(**state)

    def add(self, column: pl.Series, numbers: pl.Series, start: int) -> None:
        """Add the cleaned values of a batch, which are also given as numbers."""
        dtype, present = column.dtype, len(column) - column.null_count()
        self.type = {pl.String: "text", pl.Boolean: "boolean"}.get(dtype, "number")  # type: ignore[call-overload]
        values = numbers.to_numpy()  # NaN where the value is not a number
        check_size(self.name, values, start)
        values = values[~np.isnan(values)]
        if len(values):
            self._add_to_moments(values)
            self.least = min(self.least, float(values.min()))
            self.most = max(self.most, float(values.max()))
            self.whole = self.whole and bool((values == np.floor(values)).all())
        if dtype == pl.Boolean:
            self.booleans += present
        elif dtype == pl.String and present and set(values[:2]) <= {0.0, 1.0}:
            self.booleans += int(column.str.to_lowercase().is_in(list(TRUTH)).sum())
        if len(values) < present:
            odd = numbers.is_null() & column.is_not_null()
            self.dates += int(column.filter(odd).str.contains(DATE).sum())
            row = int(odd.arg_max() or 0)
            self.odd = self.odd or (start + row + 1, column[row])
        self._count_values(column.drop_nulls())

    def _add_to_moments(self, values: Array) -> None:
        """Update mean and m2 by Chan's formula."""
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


FIELDS = {
    "name": is_text,
    "type": one_of("text", "number", "boolean", "other"),
    **dict.fromkeys(("most_values", "rows", "missing", "numeric", "booleans", "dates"), is_count),
    "mean": lambda value: is_number(value, LARGEST),
    "m2": lambda value: is_number(value) and value >= 0,
    "least": lambda value: value is None or is_number(value, LARGEST),
    "most": lambda value: value is None or is_number(value, LARGEST),
    "whole": lambda value: isinstance(value, bool),
    "values": lambda value: (
        value is None
        or (isinstance(value, dict) and all(is_count(n) and n > 0 for n in value.values()))
    ),
    "odd": lambda value: (
        value is None
        or (is_list(value) and len(value) == 2 and is_count(value[0]) and is_text(value[1]))
    ),
}


def profile_batch(profiles: Iterable[ColumnProfile], frame: pl.DataFrame, start: int) -> None:
    """Add the rows of a frame to the profiles; its first row is row `start`, counted from 0."""
    cleaned = clean(frame)
    numbers = to_numbers(cleaned)
    columns = {column.name: column for column in cleaned}
    for profile in profiles:
        column = columns[profile.name]
        profile.rows += len(column)
        profile.missing += column.null_count()
        if profile.name in numbers:
            profile.add(column, numbers[profile.name], start)
        else:
            profile.type = "other"
