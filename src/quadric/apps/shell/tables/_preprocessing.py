"""The scikit-learn steps that read, impute, scale and encode the columns of a table.

They are part of the saved model. The first step, `TableColumns`, reads the table; the others take
the columns after it by their numbers.
"""

from collections.abc import Collection
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler, TargetEncoder

from quadric.apps.shell.tables._schema import CATEGORIES, Column, Schema
from quadric.checks import Array
from quadric.estimators import fit_tails, long_tails, power_steps
from quadric.models import steps_of

ENCODED = ("categories", "ordinals", "targets")  # the parts that encode categories
FOLDS = 5  # of the rows whose targets encode the categories of the other rows
SMOOTH = 5.0  # rows; better on skewed categories than 'auto', which trusts a few equal targets
FEWEST = 50  # rows of a class that are in every fold, even if most rows are held out


def preprocessing(schema: Schema, long: Collection[str] = ()) -> list[Any]:
    """Return the steps that precede the estimator, unfitted except for the first.

    If all columns are numeric, the steps are affine, so that the model can be explained in the
    user's units. With many categories, the result is sparse, because its density is below 0.3.
    The columns `long` are also transformed by a power, which is not affine.
    """
    imputer = SimpleImputer(strategy="mean", keep_empty_features=True)
    if not schema.categories and not long:
        return [schema.reader, imputer, StandardScaler()]
    read = list(enumerate(_read_columns(schema)))
    at = {kind: [j for j, (column, _) in read if column.kind == kind] for kind in CATEGORIES}
    tails = [j for j, (column, _) in read if column.name in long]
    numbers = [j for j, _ in read if not any(j in part for part in (*at.values(), tails))]
    own_category = SimpleImputer(missing_values=None, strategy="constant", fill_value="missing")
    ranks = OrdinalEncoder(
        categories=[list(column.categories) for column in schema.of_kind("ordinal")],
        handle_unknown="use_encoded_value",  # missing values, too
        unknown_value=np.nan,
    )
    targets = make_pipeline(own_category, target_encoder(schema), StandardScaler())
    encode = make_pipeline(clone(own_category), OneHotEncoder(handle_unknown="ignore"))
    parts = [
        ("numbers", make_pipeline(imputer, StandardScaler()), numbers),
        ("tails", make_pipeline(clone(imputer), *power_steps()), tails),
        ("ordinals", make_pipeline(ranks, clone(imputer), StandardScaler()), at["ordinal"]),
        ("targets", targets, at["target-encoded"]),
        ("categories", encode, at["category"]),
    ]
    encoded = ColumnTransformer(
        [part for part in parts if part[2]], verbose_feature_names_out=False
    )
    return [schema.reader, encoded]


def _read_columns(schema: Schema) -> list[tuple[Column, str]]:
    """The columns after the first step: each with the part of the date, or an empty string."""
    return [(column, part) for column in schema.columns for part in (column.parts or ("",))]


def target_encoder(schema: Schema) -> TargetEncoder:
    """Return an encoder whose folds are always the same."""
    kind = "continuous"
    if schema.classes:
        kind = "binary" if len(schema.classes) == 2 else "multiclass"
    stratified = min(schema.class_counts, default=0) >= FEWEST
    folds = (StratifiedKFold if stratified else KFold)(FOLDS, shuffle=True, random_state=0)
    if TargetEncoder().random_state is None:  # before scikit-learn 1.9
        return TargetEncoder(target_type=kind, smooth=SMOOTH, cv=FOLDS, random_state=0)
    return TargetEncoder(target_type=kind, smooth=SMOOTH, cv=folds)


def encoded_for_training(model: Pipeline, X: pl.DataFrame, y: Array, schema: Schema) -> Any:
    """Return the inputs of the estimator in training, for another one that is fitted to them.

    Each row's categories are encoded by the targets of other rows, unlike in `transform`.
    """
    if schema.of_kind("target-encoded"):
        return clone(model[:-1]).fit_transform(X, y)
    return model[:-1].transform(X)


def fitted_pipeline(
    X: pl.DataFrame, y: Array, schema: Schema, estimator: Any, tails: str
) -> Pipeline:
    """Fit the preprocessing steps and the estimator.

    Columns with long tails are transformed by a power if `tails` is 'power', or if it is 'auto' and
    this reduces the estimator's loss on held-out rows (see `fit_tails`).
    """
    numbers = [one.name for one in schema.columns if one.kind in ("number", "boolean")]
    long = [numbers[j] for j in long_tails(X[numbers])] if numbers and tails != "keep" else []
    transformed = make_pipeline(*preprocessing(schema, long), clone(estimator))
    kept = make_pipeline(*preprocessing(schema), estimator) if tails != "power" else None
    return fit_tails(kept, transformed, X, y, long)


def fitted_to_moments(schema: Schema) -> Pipeline:
    """Return the preprocessing steps, fitted to the moments and categories in the schema.

    They are fitted to a few rows with the same means, standard deviations and categories as the
    whole table: alternately mean + std and mean - std, and every category at least once.
    """
    rows = max([2, *(len(column.categories) + 1 for column in schema.columns)])
    rows += rows % 2
    read = _read_columns(schema)
    Z = np.empty((rows, len(read)), dtype=object if schema.categories else float)
    for j, (column, part) in enumerate(read):
        mean, std = column.parts[part][2:] if part else (column.mean, column.std)
        values: list[Any] = [mean + std, mean - std]
        if column.categories:
            values = [*column.categories, *([None] if column.missing else [])]
        Z[:, j] = (values * rows)[:rows]
    reader, *steps = preprocessing(schema)
    fitted = steps_of(make_pipeline(*steps).fit(Z))
    if ordinals := schema.of_kind("ordinal"):  # rows cannot have given moments of their ranks
        _, imputer, scaler = fitted[0].named_transformers_["ordinals"]
        imputer.statistics_ = scaler.mean_ = np.array([column.mean for column in ordinals])
        scaler.scale_ = np.array([column.std or 1.0 for column in ordinals])
        scaler.var_ = np.square(scaler.scale_)
    return make_pipeline(reader, *fitted)
