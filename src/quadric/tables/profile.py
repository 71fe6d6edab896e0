"""What is known of a table's columns after one pass: counts, moments, few distinct values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import polars as pl

from quadric.arrays import Array
from quadric.errors import TableError

__all__ = ["MISSING", "ColumnProfile", "clean", "numbers", "profile_batch"]

MISSING = ("", "na", "n/a", "nan", "null", "none", "?")  # in any case
TRUTH = {"true": 1.0, "false": 0.0}
LARGEST = 1e100  # a number whose square must not overflow, sums over many rows included
DATE = r"^(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})([T ].*)?$"


@dataclass
class ColumnProfile:
    """One column; add batches with `profile_batch`.

    Attributes
    ----------
    type : str
        'text' (CSV), 'number', 'boolean', 'date' or 'other'.
    rows, missing : int
    numeric, booleans, dates : int
        How many values read as such.
    mean, m2 : float
        Of the numbers: their mean, and the sum of squares about it.
    least, most : float
    whole : bool
        No number has a fraction.
    values : dict or None
        Each distinct value and how often it occurs; None once there are more than `most_values`.
    odd : (row, value) or None
        The first value that is no number.
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
    least: float = float("inf")
    most: float = float("-inf")
    whole: bool = True
    values: dict[str, int] | None = field(default_factory=dict)
    odd: tuple[int, str] | None = None

    @property
    def present(self) -> int:
        return self.rows - self.missing

    @property
    def std(self) -> float:
        """The standard deviation of the numbers (divided by their count)."""
        return (self.m2 / self.numeric) ** 0.5 if self.numeric else 0.0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> ColumnProfile:
        odd = state["odd"]
        return cls(**(state | {"odd": None if odd is None else (int(odd[0]), odd[1])}))

    def merge_moments(self, count: int, mean: float, m2: float) -> None:
        """Chan's formula: the moments of both samples together."""
        total = self.numeric + count
        if not count:
            return
        difference = mean - self.mean
        self.mean += difference * count / total
        self.m2 += m2 + difference**2 * self.numeric * count / total
        self.numeric = total


def clean(frame: pl.DataFrame) -> pl.DataFrame:
    """Text without surrounding blanks; what stands for a missing value, NaN included, is null."""
    text = pl.col(pl.String)
    return frame.with_columns(
        text.str.strip_chars(), pl.col(pl.Float64).fill_nan(None)
    ).with_columns(pl.when(~text.str.to_lowercase().is_in(MISSING)).then(text))


def numbers(frame: pl.DataFrame) -> dict[str, pl.Series]:
    """The cleaned columns of text, booleans and numbers as numbers; what is none is null.

    True and false, in any case, are 1 and 0.
    """
    usable = [name for name, kind in frame.schema.items() if _usable(kind)]
    cast = frame.select(pl.col(usable).cast(pl.Float64, strict=False))
    found = {column.name: column for column in cast}
    for name in usable:
        column = frame[name]
        if column.dtype == pl.String and found[name].null_count() > column.null_count():
            truth = column.str.to_lowercase().replace_strict(
                TRUTH, default=None, return_dtype=pl.Float64
            )
            found[name] = found[name].fill_null(truth)
    return found


def _usable(kind: pl.DataType) -> bool:
    return kind.is_numeric() or kind in (pl.String, pl.Boolean, pl.Null)


def check_size(name: str, values: Array, start: int) -> None:
    """Raise TableError at the first number that is infinite or far too large; NaN is missing."""
    large = np.abs(values) > LARGEST
    if large.any():
        row = int(large.argmax())
        raise TableError(
            f"column {name!r} holds {values[row]:g} in row {start + row + 1}: numbers must be "
            f"finite and at most {LARGEST:g} in size. Correct it, or leave it empty."
        )


def profile_batch(profiles: Iterable[ColumnProfile], frame: pl.DataFrame, start: int) -> None:
    """Add the rows of a frame, of which the first is row `start` (from 0), to the profiles."""
    cleaned = clean(frame)
    found = numbers(cleaned)
    columns = {column.name: column for column in cleaned}
    for profile in profiles:
        column = columns[profile.name]
        profile.rows += len(column)
        profile.missing += column.null_count()
        if profile.name in found:
            _add(profile, column, found[profile.name], start)
        else:
            profile.type = "date" if column.dtype.is_temporal() else "other"


def _add(profile: ColumnProfile, column: pl.Series, found: pl.Series, start: int) -> None:
    kind = column.dtype
    profile.type = "text" if kind == pl.String else "boolean" if kind == pl.Boolean else "number"
    present = len(column) - column.null_count()
    values = found.to_numpy()  # NaN where there is no number
    check_size(profile.name, values, start)
    values = values[~np.isnan(values)]
    if len(values):
        mean = float(values.mean())
        profile.merge_moments(len(values), mean, float(((values - mean) ** 2).sum()))
        profile.least = min(profile.least, float(values.min()))
        profile.most = max(profile.most, float(values.max()))
        profile.whole = profile.whole and bool((values == np.floor(values)).all())
    if kind == pl.Boolean:
        profile.booleans += present
    if kind == pl.String and present and set(values[:2]) <= {0.0, 1.0}:
        profile.booleans += int(column.str.to_lowercase().is_in(list(TRUTH)).sum())
    if len(values) < present:
        odd = found.is_null() & column.is_not_null()
        profile.dates += int(column.filter(odd).str.contains(DATE).sum())
        if profile.odd is None:
            row = int(odd.arg_max() or 0)
            profile.odd = (start + row + 1, column[row])
    _count_values(profile, column if kind == pl.String else found)


def _count_values(profile: ColumnProfile, column: pl.Series) -> None:
    if profile.values is None:
        return
    column = column.drop_nulls()
    if column.n_unique() > profile.most_values:
        profile.values = None
        return
    counts = column.value_counts(name="how many")
    for value, count in zip(counts[profile.name], counts["how many"], strict=True):
        text = value if isinstance(value, str) else number_text(value)
        profile.values[text] = profile.values.get(text, 0) + count
    if len(profile.values) > profile.most_values:
        profile.values = None


def number_text(value: float) -> str:
    """A number as a category or a class: 3.0 is '3', as in a CSV file."""
    if not np.isfinite(value):
        return str(value)
    return str(int(value)) if value == int(value) else repr(value)
