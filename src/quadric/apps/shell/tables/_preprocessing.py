"""The scikit-learn steps that impute, scale and one-hot encode the columns of a table.

They are part of the saved model.
"""

from typing import Any

import polars as pl
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from quadric.apps.shell.tables._schema import Schema

MISSING_CATEGORY = "missing"


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
        values: list[Any] = [column.mean + column.std, column.mean - column.std]
        dtype: Any = pl.Float64
        if column.kind == "category":
            values, dtype = [*column.categories, *([None] if column.missing else [])], pl.String
        data[column.name] = pl.Series((values * rows)[:rows], dtype=dtype)
    return make_pipeline(*preprocessing(schema)).fit(pl.DataFrame(data))
