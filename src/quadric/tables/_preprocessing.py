"""Preprocessing: imputation, scaling and one-hot encoding, made of scikit-learn's steps."""

from typing import Any

import polars as pl
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from quadric.tables._schema import Schema

MISSING_CATEGORY = "missing"


def preprocessing(schema: Schema) -> list[Any]:
    """Return the unfitted steps in front of the estimator.

    If all columns are numbers, the steps are affine, so that a model can be explained in the
    user's units. With many categories the result is sparse (density below 0.3).
    """
    number_steps = [SimpleImputer(strategy="mean", keep_empty_features=True), StandardScaler()]
    if schema.all_numbers:
        return number_steps
    numbers = [column.name for column in schema.columns if column.kind != "category"]
    categories = [column.name for column in schema.columns if column.kind == "category"]
    encode = make_pipeline(
        SimpleImputer(missing_values=None, strategy="constant", fill_value=MISSING_CATEGORY),
        OneHotEncoder(handle_unknown="ignore"),
    )
    parts = [("numbers", make_pipeline(*number_steps), numbers), ("categories", encode, categories)]
    return [ColumnTransformer([part for part in parts if part[2]], verbose_feature_names_out=False)]


def fitted_to_moments(schema: Schema) -> Pipeline:
    """Return the steps, fitted to the moments and categories in the schema.

    They are fitted to a few rows with the same means, standard deviations and categories as the
    whole table: mean + std and mean - std in turn, and every category at least once.
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
