"""Profiles of columns: counts, moments, distinct values and forms, collected batch by batch."""

import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import polars as pl

from quadric.apps.shell.tables._cleaning import cleaned, plain_numbers
from quadric.apps.shell.tables._schema import (
    Check,
    check_fields,
    expect,
    in_range,
    is_count,
    is_distinct_texts,
    is_form,
    one_of,
    to_text,
    usable,
)
from quadric.checks import Array
from quadric.models import (
    FORMS,
    LARGEST,
    ORDERS,
    PARTS,
    PLAIN,
    NumberForm,
    check_size,
    date_parts,
    dates,
    expanded,
    fits,
    is_local_time,
    numbers,
    written_number,
)

GROUPED_POINT = re.compile(r"^[+-]?[1-9][0-9]{0,2}(?:\.[0-9]{3})+$", re.M)  # 1.234
POINT, COMMA = (".", ""), (",", "")  # a decimal mark and no mark between thousands
TWO_READINGS = {",": (COMMA, (".", ",")), ".": (POINT, (",", "."))}
WORDS = ("none", "na")  # missing values that are also words: no pain, North America
EVEN = 5  # a total is the sum of at least so many numbers of about the same size
CLOSE = 1e-4  # relative error of a sum of rounded numbers


@dataclass
class ColumnProfile:
    """The profile of one column, to which `profile_batch` adds rows.

    Attributes
    ----------
    name : str
    most_values : int
        The maximum number of distinct values to count.
    most_numbers : int
        The maximum number if all values are numbers.
    type : {'text', 'number', 'boolean', 'other'}
        Every column of a CSV file is text.
    rows, missing : int
        The number of rows, and the number of rows without a value.
    numeric, booleans, dated : int
        The number of values that can be read as numbers, booleans and dates.
    mean, m2 : float
        The mean of the numbers and the sum of their squared deviations from it.
    varies : bool
        Whether there are at least two different numbers.
    first, low, high : float or None
        The first, the smallest and the largest number.
    whole : bool
        Whether every number is an integer.
    counts_up : bool
        Whether every number is the previous one plus 1, as in a column of row numbers.
    last : float or None
        The last number.
    pointed, grouped : int
        The number of plain numbers with a point, and of those that may separate thousands.
    forms, units, orders : dict
        How many of the other values fit each form of numbers and have each unit, and how many are
        dates in each order. Only counted while `decided` is false.
    odd_numbers : dict
        For a comma and a point, the first value that it makes a number in two forms.
    odd_date : str
        The first value that may be a date in two orders.
    words : dict
        How many of the missing values are each of the texts "None" and "NA", as they are written.
    decided : bool
        Whether `form` and `order` are known from an earlier pass.
    form : sequence of str
        How the numbers are written; see `Column.form`.
    order : str
        The order of day, month and year; empty unless the column has dates.
    local : bool
        Whether there are times with a difference from UTC.
    parts : dict
        For each part of the dates: count, mean, sum of squared deviations, minimum and maximum.
    values : dict or None
        The count of each distinct value; None if there are more than `most_values`.
    odd : (int, str) or None
        The row and the text of the first value that is not a number, or not a date.
    missing_values : sequence of str
        The values that stand for missing ones.
    """

    name: str
    most_values: int
    most_numbers: int
    type: str = "text"
    rows: int = 0
    missing: int = 0
    numeric: int = 0
    booleans: int = 0
    dated: int = 0
    mean: float = 0.0
    m2: float = 0.0
    varies: bool = False
    first: float | None = None
    low: float | None = None
    high: float | None = None
    whole: bool = True
    counts_up: bool = True
    last: float | None = None
    pointed: int = 0
    grouped: int = 0
    forms: dict[str, int] = field(default_factory=dict)
    units: dict[str, int] = field(default_factory=dict)
    orders: dict[str, int] = field(default_factory=dict)
    odd_numbers: dict[str, str] = field(default_factory=dict)
    odd_date: str = ""
    words: dict[str, int] = field(default_factory=dict)
    decided: bool = False
    form: Sequence[str] = PLAIN
    order: str = ""
    local: bool = False
    parts: dict[str, list[float]] = field(default_factory=dict)
    values: dict[str, int] | None = field(default_factory=dict)
    odd: tuple[int, str] | None = None
    missing_values: Sequence[str] = ()

    @property
    def present(self) -> int:
        """The number of values that are not missing."""
        return self.rows - self.missing

    @property
    def std(self) -> float:
        """The standard deviation of the numbers, with divisor n."""
        return (self.m2 / self.numeric) ** 0.5 if self.numeric else 0.0

    @property
    def ends_with_total(self) -> bool:
        """Whether the last number is the sum of the others, which are many of about equal size."""
        if self.last is None:
            return False
        others = self.mean * self.numeric - self.last
        squares = self.m2 + self.numeric * self.mean**2 - self.last**2
        return abs(self.last - others) <= CLOSE * abs(others) and 0 < EVEN * squares <= others**2

    @property
    def is_ambiguous(self) -> bool:
        """Whether day and month of all dates may be exchanged; with points, the day comes first."""
        best, of = max(self.orders.values(), default=0), self.orders.get
        same = of("dmy") == of("mdy") == best and of("ymd", 0) < best
        return same and "." not in self.odd_date

    @property
    def limits_of_parts(self) -> dict[str, list[float]]:
        """Minimum, maximum, mean and standard deviation of each part of the dates."""
        return {
            name: [low, high, mean, float((m2 / count) ** 0.5)]
            for name, (count, mean, m2, low, high) in self.parts.items()
        }

    @property
    def longest(self) -> int:
        """The number of characters of the longest distinct value."""
        return max(map(len, self.values or ()), default=0)

    @property
    def first_odd(self) -> str:
        """A description of the first value that is not a number, or not a date."""
        row, value = self.odd or (0, "")
        return f"{value!r} in row {row}"

    @property
    def option_for_odd(self) -> str:
        """The option with which the first value that is not a number is missing."""
        given = f"{self.name}={self.odd[1] if self.odd else ''}"
        name = f'"{given}"' if "," in given else given
        return f"--missing-values {shlex.quote(name)}"

    @classmethod
    def from_dict(cls, state: Any) -> Self:
        """Return a profile from its attributes; raise ValueError if they are inconsistent."""
        check_fields(state, PROFILE_FIELDS, "a column's profile")
        profile = cls(**state)
        values, present = profile.values, profile.present
        consistent = (
            max(0, profile.numeric, profile.booleans, profile.dated) <= present
            and len({profile.numeric == 0, *(getattr(profile, n) is None for n in ENDS)}) == 1
            and max(0, profile.pointed, profile.grouped) <= present
            and max([0, *profile.forms.values(), *profile.orders.values()]) <= present
            and sum(profile.words.values()) <= profile.missing
            and len(values or ()) <= profile.most_values
            and (values is None or profile.type == "other" or sum(values.values()) == present)
            and (profile.odd is None or 1 <= profile.odd[0] <= profile.rows)
        )
        expect({f"the profile of {profile.name[:80]!r}": consistent})
        return profile

    def add(self, column: pl.Series) -> None:
        """Add the values of a batch."""
        if not usable(column.dtype):
            self.type = "other"
            self.rows += len(column)
            self.missing += column.null_count()
            return
        self.type = {pl.String: "text", pl.Boolean: "boolean"}.get(column.dtype, "number")  # type: ignore[call-overload]
        how, before = (self.missing_values, self.form), self.missing
        if not self.order and (plain := plain_numbers(column, *how)) is not None:
            self._add_plain(*plain)
        else:
            self._add_cleaned(column, cleaned(column, *how))
        if column.dtype == pl.String and self.missing - before > column.null_count():
            self._count_words(column)
        self.rows += len(column)

    def _add_plain(self, texts: pl.Series, found: Array) -> None:
        """Add text that contains only plain numbers."""
        check_size(self.name, found, self.rows)
        self._add_numbers(found[~np.isnan(found)])
        if NumberForm(*self.form) == PLAIN:
            self.pointed += int(texts.str.count_matches(".", literal=True).sum())
            self.grouped += int(texts.str.contains(GROUPED_POINT.pattern).sum())
        self._count_values(texts, self.most_numbers)
        self.missing += texts.null_count()

    def _add_cleaned(self, column: pl.Series, values: Any) -> None:
        """Add a column with these values."""
        found = numbers(values, NumberForm(*self.form))  # NaN where the value is not a number
        check_size(self.name, found, self.rows)
        listed = to_text(values) if isinstance(values, np.ndarray) else values
        present = sum(value is not None for value in listed)
        known = ~np.isnan(found)
        most = self.most_numbers if known.sum() == present else self.most_values
        self._add_numbers(found[known])
        if column.dtype == pl.Boolean:
            self.booleans += present
        elif column.dtype == pl.String and present and set(found[known][:2]) <= {0.0, 1.0}:
            self.booleans += sum(
                value is not None and value.lower() in ("true", "false") for value in listed
            )
        if self.order:
            known = self._add_dates(dates(listed))
        elif column.dtype == pl.String:
            self._count_plain([value for value, plain in zip(listed, known, strict=True) if plain])
        if known.sum() < present:
            odd = [
                (row, value)
                for row, value in enumerate(listed)
                if value is not None and not known[row]
            ]
            self.odd = self.odd or (self.rows + odd[0][0] + 1, odd[0][1])
            if not self.decided:
                self._count_odd(Counter(value for _, value in odd))
        self._count_values(pl.Series(to_text(values), dtype=pl.String), most)
        self.missing += len(column) - present

    def _add_numbers(self, values: Array) -> None:
        if not len(values):
            return
        self._add_to_moments(values)
        self.first = float(values[0]) if self.first is None else self.first
        self.low = float(min(values.min(), values[0] if self.low is None else self.low))
        self.high = float(max(values.max(), values[0] if self.high is None else self.high))
        self.varies = self.varies or bool((values != self.first).any())
        self.whole = self.whole and bool((values == np.floor(values)).all())
        before = values[:1] - 1 if self.last is None else np.array([self.last])
        steps = np.diff(np.concatenate([before, values])) if self.counts_up else None
        self.counts_up = steps is not None and bool((steps == 1).all())
        self.last = float(values[-1])

    def _add_dates(self, texts: list[Any]) -> Array:
        """Add the dates of a batch to the moments of their parts; return which ones are dates."""
        every = expanded(texts, self.order)
        self.local = self.local or any(isinstance(t, str) and is_local_time(t) for t in texts)
        known = ~np.isnan(every)
        self.dated += int(known[:, PARTS.index("hour")].sum())
        for j, name in enumerate(PARTS):
            values = every[known[:, j], j]
            if len(values):
                count, mean, m2, low, high = self.parts.get(name, [0, 0.0, 0.0, np.inf, -np.inf])
                moments = _moments(count, mean, m2, values)
                ends = min(low, float(values.min())), max(high, float(values.max()))
                self.parts[name] = [*moments, *ends]
        return known[:, PARTS.index("hour")]

    def _count_plain(self, texts: list[str]) -> None:
        """Count the plain numbers that would be other numbers in other forms."""
        if NumberForm(*self.form) == PLAIN:
            joined = "\n".join(texts)
            self.pointed += joined.count(".")
            self.grouped += len(GROUPED_POINT.findall(joined))

    def _count_words(self, column: pl.Series) -> None:
        """Count the missing values that are words."""
        texts = column.str.strip_chars()
        found = texts.filter(texts.str.to_lowercase().is_in(WORDS))
        for text, count in Counter(found.to_list()).items():
            self.words[text] = self.words.get(text, 0) + count

    def _count_odd(self, counts: Counter[str]) -> None:
        """Count the forms and orders that values which are not numbers have."""
        for text, count in counts.items():
            orders = [name for name in ORDERS if date_parts(text, name) is not None]
            for name in orders:
                self.orders[name] = self.orders.get(name, 0) + count
            if {"dmy", "mdy"} <= set(orders) and "ymd" not in orders:
                self.odd_date = self.odd_date or text
            number = written_number(text)
            forms = [] if number is None else [form for form in FORMS if fits(number, form)]
            for form in forms:
                key = form.decimal + form.thousands
                self.forms[key] = self.forms.get(key, 0) + count
            if number is not None and forms:
                self.units[number.unit] = self.units.get(number.unit, 0) + count
                marks = {form[:2] for form in forms}
                for mark, readings in TWO_READINGS.items():
                    if mark in number.digits and marks >= set(readings):
                        self.odd_numbers.setdefault(mark, text)

    def _add_to_moments(self, values: Array) -> None:
        total, self.mean, self.m2 = _moments(self.numeric, self.mean, self.m2, values)
        self.numeric = int(total)

    def _count_values(self, texts: pl.Series, most: int) -> None:
        if self.values is not None and texts.n_unique() <= most + 1:
            distinct = texts.unique(maintain_order=True)
            for text, count in zip(distinct, texts.unique_counts(), strict=True):
                if text is not None:
                    self.values[text] = self.values.get(text, 0) + count
            if len(self.values) <= most:
                return
        self.values = None


def _moments(count: float, mean: float, m2: float, values: Array) -> tuple[float, float, float]:
    """Update a count, a mean and a sum of squared deviations with Chan's formula."""
    n, own = len(values), float(values.mean())
    total, difference = count + n, own - mean
    m2 += float(((values - own) ** 2).sum()) + difference**2 * count * n / total
    return total, mean + difference * n / total, m2


ENDS = ("first", "last", "low", "high")
PROFILE_FIELDS: dict[str, Check] = {
    "name": str,
    "type": one_of("text", "number", "boolean", "other"),
    **dict.fromkeys(("most_values", "most_numbers", "rows", "missing", "numeric"), is_count),
    **dict.fromkeys(("booleans", "dated", "pointed", "grouped"), is_count),
    **dict.fromkeys(
        ("forms", "units", "orders", "words"),
        lambda value: isinstance(value, dict) and all(map(is_count, value.values())),
    ),
    "odd_numbers": lambda value: (
        isinstance(value, dict)
        and set(value) <= set(TWO_READINGS)
        and all(isinstance(text, str) for text in value.values())
    ),
    "odd_date": str,
    "decided": bool,
    "form": is_form,
    "order": one_of("", *ORDERS),
    "parts": lambda value: (
        isinstance(value, dict)
        and set(value) <= set(PARTS)
        and all(
            isinstance(five, list)
            and len(five) == 5
            and all(in_range(-LARGEST, LARGEST)(one) for one in five)
            and min(five[0], five[2]) >= 0
            for five in value.values()
        )
    ),
    "mean": in_range(-LARGEST, LARGEST),
    "m2": in_range(0, sys.float_info.max),
    **dict.fromkeys(ENDS, lambda value: value is None or in_range(-LARGEST, LARGEST)(value)),
    "missing_values": is_distinct_texts,
    **dict.fromkeys(("varies", "whole", "counts_up", "local"), bool),
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
    for profile in profiles:
        profile.add(frame[profile.name])
