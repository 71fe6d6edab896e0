"""The columns of an estimator or pipeline that was fitted to a DataFrame in Python and saved."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from quadric.apps.shell.tables._features import check_inputs, features
from quadric.apps.shell.tables._schema import Column, Schema
from quadric.apps.shell.tables._source import Source
from quadric.errors import TableError
from quadric.models import Columns
from quadric.utils import listed


def schema_of_estimator(
    model: Any, extra: Mapping[str, Any], source: Source | None = None
) -> tuple[Schema, list[str]]:
    """Return the schema of a fitted estimator, and notes about what was assumed.

    scikit-learn does not store the name of the target. It is `extra["target"]` or, by default, the
    only column of the table that the model does not use.

    Raises
    ------
    TableError
        If the model was fitted to an array, which has no column names.
    """
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise TableError(
            "the model does not know the names of its columns, because it was fitted to an array. "
            "Fit it to a pandas or Polars DataFrame, or use it in Python: quadric.load(...)."
        )
    names = [str(name) for name in names]
    texts = _text_columns(model, names)
    columns = tuple(
        Column(name, "category", tuple(texts[name])) if name in texts else Column(name, "number")
        for name in names
    )
    classes = _classes(model)
    target, notes = extra.get("target"), []
    if not isinstance(target, str) or not target:
        target = "class" if classes else "output"
        others = [name for name in source.columns if name not in names] if source else []
        if target not in others and len(others) == 1:
            target = others[0]
            notes = [f"The model file does not name its target; assumed {target!r}."]
        elif target not in others and others:
            notes = [
                "The model file does not name its target. Columns that the model does not use: "
                f"{listed(map(repr, others))}."
            ]
    return Schema(columns, target, "classification" if classes else "regression", classes), notes


def read_inputs(model: Any, source: Source) -> pl.DataFrame:
    """Read the columns that a model uses, converted to numbers and text as in training.

    Parameters
    ----------
    model : estimator
        A model that was trained by `quadric train` or fitted to a DataFrame.
    source : Source
        The table; see `open_table`.

    Returns
    -------
    DataFrame
        One row for each row of the table, for `model.predict`.

    Raises
    ------
    TableError
        If the table lacks a column, or contains text where the model expects a number.
    """
    schema, _ = schema_of_estimator(model, {}, source)
    check_inputs(schema, source.columns)
    return features(schema, source.read())


def _classes(model: Any) -> tuple[Any, ...]:
    """Return the classes as strings or integers; empty for regressors and multilabel models."""
    last = model[-1] if hasattr(model, "steps") else model
    found = getattr(model, "classes_", None)
    if found is None or getattr(last, "_is_multilabel", False):
        return ()
    labels = found.tolist()
    return tuple(label if isinstance(label, str) else int(label) for label in labels)


def _text_columns(step: Any, names: list[str]) -> dict[str, list[str]]:
    """Return the categories of the text columns that a fitted step encodes."""
    if hasattr(step, "steps"):  # a Pipeline: imputers, which may come first, keep the columns
        inner = [(one, names) for _, one in step.steps]
    elif hasattr(step, "transformers_"):  # a ColumnTransformer
        inner = [(one, _chosen(columns, names)) for _, one, columns in step.transformers_]
    else:
        categories = getattr(step, "categories_", ())
        if len(categories) != len(names):
            return {}
        return {
            name: [value for value in values if isinstance(value, str)]
            for name, values in zip(names, categories, strict=True)
            if any(isinstance(value, str) for value in values)
        }
    found: dict[str, list[str]] = {}
    for one, columns in inner:
        found |= _text_columns(one, columns)
    return found


def _chosen(columns: Any, names: list[str]) -> list[str]:
    """Return the names of a ColumnTransformer's columns; empty if an earlier step renames them."""
    try:
        return [names[i] for i in Columns(len(names), names).indices(columns)]
    except (IndexError, KeyError, ValueError):
        return []
