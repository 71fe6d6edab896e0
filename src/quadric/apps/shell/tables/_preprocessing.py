"""Preprocessing of tables: missing values, numbers, categories and targets.

`features` converts a batch of rows to numbers and text. `preprocessing` returns the scikit-learn
steps that impute, scale and one-hot encode them; they are part of the saved model.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from quadric.apps.shell.tables._schema import LARGEST, Schema
from quadric.apps.shell.tables._table_format import DECIMAL_COMMA
from quadric.checks import Array
from quadric.errors import TableError
from quadric.utils import listed

MISSING = ("", "na", "n/a", "nan", "null", "none", "?")  # in lowercase
MISSING_CATEGORY = "missing"
TRUTH = {"true": 1.0, "false": 0.0}


def clean(frame: pl.DataFrame) -> pl.DataFrame:
    """Strip whitespace from text, and replace missing values, including NaN, with null."""
    text = pl.col(pl.String)
    return frame.with_columns(
        text.str.strip_chars(), pl.col(pl.Float64).fill_nan(None)
    ).with_columns(pl.when(~text.str.to_lowercase().is_in(MISSING)).then(text))


def to_numbers(cleaned: pl.DataFrame) -> dict[str, pl.Series]:
    """Convert columns of text, booleans and numbers to Float64.

    The strings "true" and "false", regardless of case, become 1 and 0. Other text that is not a
    number becomes null. Columns of other types, such as lists, are omitted.
    """
    usable = [
        name
        for name, dtype in cleaned.schema.items()
        if dtype.is_numeric() or dtype in (pl.String, pl.Boolean, pl.Null)
    ]
    cast = cleaned.select(pl.col(usable).cast(pl.Float64, strict=False))
    numbers = {column.name: column for column in cast}
    for name in usable:
        column = cleaned[name]
        if column.dtype == pl.String and numbers[name].null_count() > column.null_count():
            truth = column.str.to_lowercase().replace_strict(
                TRUTH, default=None, return_dtype=pl.Float64
            )
            numbers[name] = numbers[name].fill_null(truth)
    return numbers


def to_text(column: pl.Series) -> pl.Series:
    """Convert a cleaned column to text; the number 3.0 becomes '3'."""
    if column.dtype == pl.Float64:
        texts = {
            value: str(int(value)) if value.is_integer() else str(value)
            for value in column.drop_nulls().unique()
        }
        return column.replace_strict(texts, return_dtype=pl.String)
    return column.cast(pl.String)


def check_size(name: str, values: Array, start: int) -> None:
    """Raise TableError for infinite or huge numbers; `start` is the first row, counted from 0."""
    bad = np.abs(values) > LARGEST
    if bad.any():
        row = int(bad.argmax())
        raise TableError(
            f"column {name!r} contains {values[row]:g} in row {start + row + 1}: numbers must be "
            f"finite and at most {LARGEST:g} in absolute value. Correct it, or leave it empty."
        )


def check_inputs(schema: Schema, columns: Sequence[str]) -> None:
    """Raise TableError if a column that the model needs is missing."""
    missing = [name for name in schema.names if name not in columns]
    if missing:
        word = "column" if len(missing) == 1 else "columns"
        raise TableError(
            f"the table lacks the {word} {listed(map(repr, missing), 10)}, which the model needs."
        )


def features(schema: Schema, frame: pl.DataFrame, start: int = 0) -> pl.DataFrame:
    """Return the inputs in the model's order: Float64 for numbers, String for categories."""
    cleaned = clean(frame.select(schema.names))
    numbers = [column.name for column in schema.columns if column.kind != "category"]
    converted = _to_numbers(cleaned.select(numbers), start)
    return pl.DataFrame(
        [converted[name] if name in converted else to_text(cleaned[name]) for name in schema.names]
    )


def labels(schema: Schema, frame: pl.DataFrame, start: int = 0) -> tuple[Array, Array]:
    """Return the targets and a mask of the rows that have one."""
    cleaned = clean(frame.select(schema.target))
    if schema.classes and isinstance(schema.classes[0], str):
        values, dtype = to_text(cleaned[schema.target]), "U"
    else:
        values, dtype = _to_numbers(cleaned, start)[schema.target], "f8"
        if schema.classes:
            _check_integers(values, start)
            dtype = "i8"
    present = values.is_not_null()
    return values.filter(present).to_numpy().astype(dtype), present.to_numpy()


def labeled_rows(
    schema: Schema, frame: pl.DataFrame, start: int = 0
) -> tuple[pl.DataFrame, Array, Array]:
    """Return the inputs and targets of the rows that have a target, and a mask of these rows."""
    X = features(schema, frame, start)
    y, present = labels(schema, frame, start)
    return (X if present.all() else X.filter(present)), y, present


def complete_rows(X: pl.DataFrame) -> Array:
    """Return a mask of the rows without missing numbers; missing categories are allowed."""
    masks = [column.is_not_null().to_numpy() for column in X if column.dtype == pl.Float64]
    return np.all([np.ones(len(X), dtype=bool), *masks], axis=0)


def predictable_rows(X: pl.DataFrame, *, imputes: bool) -> Array:
    """Return a mask of the rows for which a model makes a prediction.

    A model that imputes missing values needs at least one value; others need all numbers.
    """
    if not imputes:
        return complete_rows(X)
    return X.select(pl.any_horizontal(pl.all().is_not_null()))[:, 0].to_numpy()


def _check_integers(values: pl.Series, start: int) -> None:
    """Raise TableError for the first fraction in a target whose classes are integers."""
    fractions = values != values.floor()
    if fractions.any():
        row = int(fractions.arg_max() or 0)
        raise TableError(
            f"column {values.name!r} must contain integers, like the model's classes, but row "
            f"{start + row + 1} contains {values[row]:g}."
        )


def _to_numbers(cleaned: pl.DataFrame, start: int) -> dict[str, pl.Series]:
    """Convert all columns to numbers; raise TableError for the first value that is not one."""
    converted = to_numbers(cleaned)
    for column in cleaned:
        name = column.name
        problem = f"column {name!r} must contain numbers, but "
        if name not in converted:
            raise TableError(f"{problem}its type is {column.dtype}.")
        if converted[name].null_count() > column.null_count():
            row = int((converted[name].is_null() & column.is_not_null()).arg_max() or 0)
            comma = re.match(DECIMAL_COMMA, column[row])
            advice = " If commas are decimal marks, use --decimal ,." if comma else ""
            raise TableError(f"{problem}row {start + row + 1} contains {column[row]!r}.{advice}")
        check_size(name, converted[name].to_numpy(), start)
    return converted


def preprocessing(schema: Schema) -> list[Any]:
    """Return the unfitted preprocessing steps that precede the estimator.

    If all columns are numeric, the steps are affine, so that the model can be explained in the
    user's units. With many categories, the result is sparse, because its density is below 0.3.
    """
    number_steps = [SimpleImputer(strategy="mean", keep_empty_features=True), StandardScaler()]
    numbers = [column.name for column in schema.columns if column.kind != "category"]
    categories = [column.name for column in schema.columns if column.kind == "category"]
    if not categories:
        return number_steps
    encode = make_pipeline(
        SimpleImputer(missing_values=None, strategy="constant", fill_value=MISSING_CATEGORY),
        OneHotEncoder(handle_unknown="ignore"),
    )
    parts = [("numbers", make_pipeline(*number_steps), numbers), ("categories", encode, categories)]
    return [ColumnTransformer([part for part in parts if part[2]], verbose_feature_names_out=False)]


def fitted_to_moments(schema: Schema) -> Pipeline:
    """Return the preprocessing steps, fitted to the moments and categories in the schema.

    They are fitted to a few rows with the same means, standard deviations and categories as the
    whole table: alternately mean + std and mean - std, and every category at least once.
    """
    rows = max([2, *(len(column.categories) + 1 for column in schema.columns)])
    rows += rows % 2
    data = {}
    for column in schema.columns:
        if column.kind == "category":
            values: list[Any] = [*column.categories, *([None] if column.missing else [])]
            data[column.name] = pl.Series((values * rows)[:rows], dtype=pl.String)
        else:
            values = [column.mean + column.std, column.mean - column.std] * (rows // 2)
            data[column.name] = pl.Series(values, dtype=pl.Float64)
    return make_pipeline(*preprocessing(schema)).fit(pl.DataFrame(data))


def typical_rows(schema: Schema, rows: int = 200) -> pl.DataFrame:
    """Rows with independent inputs: normal numbers with the column's mean and standard deviation.

    Every category is equally frequent. The rows only show where a model's inputs lie; they say
    nothing about how the inputs are related.
    """
    rng = np.random.default_rng(0)
    columns = {}
    for column in schema.columns:
        if column.kind == "category":
            values = [column.categories[i % len(column.categories)] for i in range(rows)]
            columns[column.name] = pl.Series(values, dtype=pl.String)
        elif column.kind == "boolean":
            columns[column.name] = pl.Series(np.arange(rows) % 2, dtype=pl.Float64)
        else:
            columns[column.name] = pl.Series(column.mean + column.std * rng.normal(size=rows))
    return pl.DataFrame(columns)
