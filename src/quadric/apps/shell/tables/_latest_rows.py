"""Rows in the order of time: the latest ones are held out, as those that the model will predict.

These are outside the range of training in the parts of a date that do not recur: the year and the
elapsed days, and the month unless training covers a year. The model only uses them if that predicts
the latest of its training rows better, for instance because of a trend.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from sklearn.metrics import log_loss, mean_squared_error

from quadric.apps.shell.tables._cleaning import cleaned
from quadric.apps.shell.tables._column_profile import ColumnProfile, profile_batch
from quadric.apps.shell.tables._options import ColumnOptions, Settings, TableFormat, refuse
from quadric.apps.shell.tables._schema import Schema
from quadric.apps.shell.tables._schema_inference import (
    new_profiles,
    profile_again,
)
from quadric.checks import Array
from quadric.errors import TableError
from quadric.models import PARTS, NumberForm, expanded, numbers
from quadric.utils import rounded

YEAR = 365.0  # days
RECURRING = ("weekday", "hour")


def times_of(column: pl.Series, table_format: TableFormat) -> Array:
    """Return the times in a column of dates or numbers; NaN where they are missing.

    Raises TableError for other columns.
    """
    options = ColumnOptions(column.name)
    profiles = new_profiles(options, [column.name], table_format)
    profile_batch(profiles, column.to_frame())
    if again := profile_again(profiles, options, table_format):
        profile_batch(profiles := again, column.to_frame())
    (profile,) = profiles
    if profile.order and profile.dated == profile.present:
        part = "hour" if profile.order == "time" else "days"
        texts = [None if value is None else str(value) for value in cleaned(column)]
        return expanded(texts, profile.order)[:, PARTS.index(part)]
    if profile.type == "other" or profile.numeric < profile.present or not profile.present:
        found = "" if profile.odd is None else f" It contains {profile.first_odd}."
        ambiguous = profile.odd_date and profile.is_ambiguous
        advice = " Write dates as 2024-12-31." if ambiguous or profile.orders else ""
        raise TableError(
            f"--time needs a column of dates or numbers; {column.name!r} is none.{found}{advice}"
        )
    return numbers(cleaned(column), NumberForm(*profile.form))


def latest(times: Array, y: Array, schema: Schema, settings: Settings) -> tuple[Array, Array]:
    """Return the earlier rows, and the latest ones, which are held out.

    Rows without a time are among the first, and rows with equal times are not separated.
    """
    known = np.sort(times[~np.isnan(times)])
    count = round(settings.held_out_share * len(known))
    late = times >= known[-count] if count else np.zeros(len(times), dtype=bool)
    if late.sum() == len(known) and count:
        late = times > known[0]
    rows, held = np.flatnonzero(~late), np.flatnonzero(late)
    new = [label for label in schema.classes if not (y[rows] == label).any()]
    refuse(
        {
            f"all times in {settings.time!r} are equal, so --time cannot separate the rows.": (
                count and not len(held)
            ),
            f"the class {next(iter(new), '')!r} occurs only in the latest rows by "
            f"{settings.time!r}. Use a smaller --test-size, or no --time.": new,
        }
    )
    return rows, held


def limited_to(schema: Schema, X: pl.DataFrame) -> Schema:
    """Return the schema with the ranges that the parts of dates have in some of the rows."""
    columns = []
    for column in schema.columns:
        profile = ColumnProfile(column.name, 0, 0, decided=True, order=column.order)
        if column.order:
            profile.add(X[column.name])
        found = profile.limits_of_parts
        parts = {name: found.get(name, four) for name, four in column.parts.items()}
        columns.append(replace(column, parts=parts))
    return replace(schema, columns=tuple(columns))


def with_lasting_inputs(
    schema: Schema,
    X: pl.DataFrame,
    y: Array,
    times: Array,
    settings: Settings,
    fit: Callable[[pl.DataFrame, Array, Schema, Settings], Any],
) -> Schema:
    """Return the schema without the inputs that do not recur, if later rows are predicted better.

    Two models are fitted to the earlier rows, and the one with the smaller loss on the latest rows
    decides.

    Parameters
    ----------
    schema : Schema
    X, y, times : DataFrame and arrays
        The training rows.
    settings : Settings
        With the name of the column of the times.
    fit : callable
        Returns a model from inputs, targets, a schema and settings.
    """
    other = _recurring(schema, str(settings.time))
    try:
        early, late = latest(times, y, schema, replace(settings, test_size=None))
    except TableError:  # too few rows to compare
        return schema
    if other is None or not len(late):
        return schema
    losses, quiet = [], replace(settings, verbose=False)
    for one in (schema, other):
        model = fit(X[early], y[early], limited_to(one, X[early]), quiet)
        if schema.classes:
            P = model.predict_proba(X[late])
            losses.append(float(log_loss(y[late], P, labels=list(schema.classes))))
        else:
            losses.append(float(mean_squared_error(y[late], model.predict(X[late]))))
    if losses[0] < losses[1]:
        return schema
    why = (
        "later rows are outside its range, and without it the loss on the latest training rows is "
        f"{rounded(losses[1])} instead of {rounded(losses[0])}"
    )
    unused = dict.fromkeys(set(_inputs(schema)) - set(_inputs(other)), why)
    return replace(other, left_out=schema.left_out | dict(sorted(unused.items())))


def _recurring(schema: Schema, name: str) -> Schema | None:
    """Return the schema with the recurring parts of this column; None if there is no such choice.

    A column of numbers, and dates without such parts, are not used at all.
    """
    column = next((one for one in schema.columns if one.name == name), None)
    if column is None or column.kind not in ("date", "number"):
        return None
    first, last = column.parts.get("days", (0.0, 0.0))[:2]
    kept = (*RECURRING, "month") if last - first >= YEAR else RECURRING
    parts = {part: four for part, four in column.parts.items() if part in kept}
    fewer = [replace(column, parts=parts)] if parts else []
    columns = [new for one in schema.columns for new in (fewer if one is column else [one])]
    return (
        None
        if not columns or parts == column.parts != {}
        else replace(schema, columns=tuple(columns))
    )


def _inputs(schema: Schema) -> list[str]:
    return schema.reader.get_feature_names_out().tolist()
