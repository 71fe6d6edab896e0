"""From a table's columns to the numbers of a network, with scikit-learn's own parts."""

from typing import Any

import polars as pl
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from quadric.tables._schema import Schema

MISSING_CATEGORY = "missing"


def preprocessing(schema: Schema) -> list[Any]:
    """The steps before the estimator, not fitted yet.

    Numbers alone take two affine steps, so that a model can be explained in the user's units. The
    inputs are sparse if less than three in ten are not zero, as with many categories.
    """
    if schema.all_numbers:
        return _number_steps()
    numbers = [column.name for column in schema.columns if column.kind != "category"]
    categories = [column.name for column in schema.columns if column.kind == "category"]
    encode = make_pipeline(
        SimpleImputer(missing_values=None, strategy="constant", fill_value=MISSING_CATEGORY),
        OneHotEncoder(handle_unknown="ignore"),
    )
    parts = [("categories", encode, categories)]
    if numbers:
        parts.insert(0, ("numbers", make_pipeline(*_number_steps()), numbers))
    return [ColumnTransformer(parts, verbose_feature_names_out=False)]


def _number_steps() -> list[Any]:
    return [SimpleImputer(strategy="mean", keep_empty_features=True), StandardScaler()]


def fitted_to_moments(schema: Schema) -> Pipeline:
    """The steps, fitted to what a first pass has gathered in the schema.

    They are fitted to a few rows that have the same means, standard deviations and categories as
    the whole table: mean + std and mean - std in turn, and every category once.
    """
    rows = max([2, *(len(column.categories) + 1 for column in schema.columns)])
    rows += rows % 2
    data = {}
    for column in schema.columns:
        if column.kind == "category":
            every = list(column.categories) + ([None] if column.missing else [])
            values: list[Any] = [every[i % len(every)] for i in range(rows)]
            data[column.name] = pl.Series(values, dtype=pl.String)
        else:
            values = [column.mean + column.std, column.mean - column.std] * (rows // 2)
            data[column.name] = pl.Series(values, dtype=pl.Float64)
    steps = make_pipeline(*preprocessing(schema))
    return steps.fit(pl.DataFrame(data))
