"""What is known of a table's columns after one pass: counts, moments, few distinct values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import polars as pl

from quadric._utils.arrays import Array
from quadric.errors import TableError
from quadric.tables._state_checks import check_fields, check_number, check_whole, require

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
        'text' (every column of a CSV file), 'number', 'boolean' or 'other'.
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
        """Plain values, for JSON: without numbers, the least and the most of them are None."""
        known = {name: getattr(self, name) if self.numeric else None for name in ("least", "most")}
        return asdict(self) | known

    @classmethod
    def from_dict(cls, state: Any) -> ColumnProfile:
        """The profile of `to_dict`; ValueError if these are not the values of one."""
        check_fields(state, cls.__dataclass_fields__, "a column's profile")
        name = state["name"]
        require(type(name) is str, "the name of a column")
        what = f"the profile of {name[:80]!r}"
        check_whole(state["most_values"], what)
        check_whole(state["rows"], what)
        check_whole(state["missing"], what, most=state["rows"])
        present = state["rows"] - state["missing"]
        for count in ("numeric", "booleans", "dates"):
            check_whole(state[count], what, most=present)
        require(state["type"] in ("text", "number", "boolean", "other"), what)
        require(type(state["whole"]) is bool, what)
        check_number(state["mean"], what, most=LARGEST)
        check_number(state["m2"], what)
        require(state["m2"] >= 0, what)
        if state["numeric"]:
            check_number(state["least"], what, most=LARGEST)
            check_number(state["most"], what, most=LARGEST)
            require(state["least"] <= state["most"], what)
        else:
            require(state["least"] is None and state["most"] is None, what)
            state = state | {"least": float("inf"), "most": float("-inf")}
        values = state["values"]
        if values is not None:
            require(isinstance(values, dict) and len(values) <= state["most_values"], what)
            for count in values.values():
                check_whole(count, what, least=1)
            require(state["type"] == "other" or sum(values.values()) == present, what)
        if state["odd"] is not None:
            odd = state["odd"]
            require(isinstance(odd, list) and len(odd) == 2 and type(odd[1]) is str, what)
            check_whole(odd[0], what, least=1, most=state["rows"])
            state = state | {"odd": tuple(odd)}
        return cls(**state)

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
            profile.type = "other"


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
    _count_values(profile, column)


def _count_values(profile: ColumnProfile, column: pl.Series) -> None:
    if profile.values is None:
        return
    column = column.drop_nulls()
    if column.n_unique() > profile.most_values:
        profile.values = None
        return
    counts = column.value_counts(name="how many")
    for text, count in zip(as_text(counts[profile.name]), counts["how many"], strict=True):
        profile.values[text] = profile.values.get(text, 0) + count
    if len(profile.values) > profile.most_values:
        profile.values = None


def as_text(column: pl.Series) -> pl.Series:
    """A cleaned column as categories or classes: 3.0 is '3', whatever stands beside it."""
    if column.dtype == pl.Float64:
        spelled = {value: number_text(value) for value in column.drop_nulls().unique()}
        return column.replace_strict(spelled, return_dtype=pl.String)
    return column if column.dtype == pl.String else column.cast(pl.String)


def number_text(value: float) -> str:
    """A number as it stands in a CSV file, without the fraction of a whole one."""
    if not np.isfinite(value):
        return str(value)
    return str(int(value)) if value == int(value) else repr(value)
