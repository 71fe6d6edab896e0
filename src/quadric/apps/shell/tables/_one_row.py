"""Explanations of one row: the nearest other classes, or the effect of each input."""

from typing import Any

import numpy as np
import polars as pl

from quadric.apps.shell.tables._saved_model import OpenedModel, TableNetwork
from quadric.apps.shell.tables._schema import check_inputs, features, predictable_rows
from quadric.certify import counterfactual, radius
from quadric.errors import TableError
from quadric.explain import attribute
from quadric.models import typical_text


def nearest_classes(opened: OpenedModel, number: int, most: int) -> dict[str, Any]:
    """Explain one row of a table: its class, its radius and its counterfactuals.

    Parameters
    ----------
    opened : OpenedModel
        A classifier with a table.
    number : int
        The number of the row, counted from 1.
    most : int
        The maximum number of other classes to search for, the nearest first.

    Returns
    -------
    dict
        The results as JSON values, except that radii and distances may be infinite.
    """
    model, (schema, _) = opened.model, opened.table
    if schema.task != "classification":
        raise TableError("--row needs a classifier, but this model predicts numbers.")
    X, x = _row_of(opened, number)
    units = "inputs" if opened.view.coordinates.typical is None else "scaled"
    near = radius(model, x, units=units)
    predicted, labels = near.predicted[0], opened.view.labels.tolist()
    others = [label for label in labels if label != predicted]
    if len(others) > most:
        others.sort(key=lambda label: label != near.becomes[0])
    integers = [column.name for column in X if _holds_integers(column)]
    found = [
        (label, counterfactual(model, x, to=label, units=units, integers=integers))
        for label in others[:most]
    ]
    return {
        "row": number,
        "predicted": predicted.item(),
        "probability": float(model.predict_proba(x)[0][labels.index(predicted)]),
        "radius": float(near.radius[0]),
        "units": units,
        "radius_in_inputs": float(radius(model, x).radius[0]),
        "counterfactuals": [
            {
                "to": label,
                "distance": nearest.distance,
                "lower_bound": nearest.lower_bound,
                "exact": nearest.exact,
                "changes": [vars(change) for change in nearest.changes],
                "text": nearest.text(),
            }
            for label, nearest in sorted(found, key=lambda pair: pair[1].distance)
        ],
    }


def effects_of_row(opened: OpenedModel, number: int) -> dict[str, Any]:
    """Explain one row of a table by setting one input at a time to its typical value.

    This works for every model. The typical value is the median of the table's numbers or dates, or
    the most frequent text. A classifier whose network does not fold also has a certified radius.

    Parameters
    ----------
    opened : OpenedModel
        A model with a table.
    number : int
        The number of the row, counted from 1.

    Returns
    -------
    dict
        The results as JSON values, except that radii may be infinite. The effects with the largest
        change of the predicted number, or of the probability of the predicted class, come first.
    """
    model, (schema, source) = opened.model, opened.table
    X, x = _row_of(opened, number)
    if not predictable_rows(x, imputes=not isinstance(model, TableNetwork)).all():
        raise TableError(
            f"row {number} of {source.path} has no prediction, because a value is missing."
        )
    typical = {column.name: _typical(column) for column in X}
    changed = [
        x.with_columns(pl.Series(name, [value], dtype=X[name].dtype))
        for name, value in typical.items()
    ]
    rows = pl.concat([x, *changed])
    labels, name = [str(label) for label in schema.classes], schema.target
    probabilities: dict[str, float] = {}
    if labels:
        P = model.predict_proba(rows)
        k = int(P[0].argmax())
        outputs, name = P[:, k], f"p({labels[k]})"
        predicted = [schema.classes[c] for c in P.argmax(axis=1)]
        probabilities = dict(zip(labels, P[0].tolist(), strict=True))
    else:
        outputs = np.asarray(model.predict(rows), dtype=float)
        if outputs.ndim > 1:
            raise TableError("--row needs a model with a single output, or with classes.")
        predicted = outputs.tolist()
    effects = [
        {
            "input": column,
            "value": x[column][0],
            "typical": value,
            "predicted": predicted[i],
            "output": float(outputs[i]),
            "change": float(outputs[i] - outputs[0]),
        }
        for i, (column, value) in enumerate(typical.items(), start=1)
    ]
    return {
        "row": number,
        "predicted": predicted[0],
        "output": name,
        "probabilities": probabilities,
        "effects": sorted(effects, key=lambda one: -abs(one["change"])),
        **_certificate(opened, x),
    }


def contributions_of_row(opened: OpenedModel, number: int) -> dict[str, Any]:
    """Return what each input contributes to the score of one row, compared with the whole table.

    Parameters
    ----------
    opened : OpenedModel
        A model with a table.
    number : int
        The number of the row, counted from 1.

    Returns
    -------
    dict
        The Shapley values as JSON values, the largest first; empty if the model does not fold to
        one layer, or if values are missing. With more than two classes, they belong to the score
        of the predicted class.
    """
    X, x = _row_of(opened, number)
    try:
        found = attribute(opened.model, x, X, target=opened.target)
    except (ValueError, TypeError, MemoryError):
        return {}
    k = 0
    if len(found.scores) > 1 and opened.view.classes is not None:
        k = opened.view.labels.tolist().index(opened.model.predict(x)[0])
    values, base = found.of(k)
    order = np.argsort(-np.abs(values[0]), kind="stable").tolist()
    return {
        "score": found.scores[k],
        "base": base,
        "value": base + float(values[0].sum()),
        "inputs": [
            {
                "input": found.names[i],
                "value": _json(found.data[0][i]),
                "contribution": values[0][i],
            }
            for i in order
        ],
    }


def _json(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _certificate(opened: OpenedModel, x: pl.DataFrame) -> dict[str, Any]:
    """Return the certified radius of a row, or the reason why there is none."""
    if opened.view.classes is None:
        return {"no_certificate": ""}
    units = "inputs" if opened.view.coordinates.typical is None else "scaled"
    try:
        near = radius(opened.model, x, units=units)
        inputs = radius(opened.model, x)
    except (ValueError, TypeError, MemoryError) as error:
        return {"no_certificate": " ".join(str(error).split())}
    return {
        "no_certificate": "",
        "radius": float(near.radius[0]),
        "units": units,
        "radius_in_inputs": float(inputs.radius[0]),
        "exact": near.exact,
    }


def _row_of(opened: OpenedModel, number: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the inputs of all rows, and those of one row, counted from 1."""
    schema, source = opened.table
    check_inputs(schema, source.columns)
    X = features(schema, source.read())
    if number > len(X):
        raise TableError(
            f"--row must be at most {len(X)}, the number of rows of {source.path}. Got {number}."
        )
    return X, X[number - 1 : number]


def _typical(column: pl.Series) -> Any:
    """Return the median of numbers or dates (one of them), or the most frequent text.

    None if all values are missing.
    """
    present = column.drop_nulls()
    if column.dtype.is_float():
        present = present.drop_nans()
    if not len(present):
        return None
    if column.dtype.is_numeric():
        return present.quantile(0.5, "nearest")
    return typical_text(present.to_list())


def _holds_integers(column: pl.Series) -> bool:
    """Whether all values of a column of numbers are integers."""
    if not column.dtype.is_numeric():
        return False
    values = column.drop_nulls().to_numpy()
    return bool(len(values) and (values == values.round()).all())
