"""`quadric explain --row`: one row of a table, and what would change its class."""

from __future__ import annotations

from typing import Any

import numpy as np

from quadric._utils.text import rounded
from quadric.cli._console import fail, print_json, print_line
from quadric.cli._model_loading import OpenedModel

MOST_CLASSES = 10


def explain_row(opened: OpenedModel, number: int, *, as_json: bool) -> None:
    """Print the class of a row, its certified radius and its counterfactuals."""
    from quadric.certify import counterfactual, radius
    from quadric.tables._features import features, unused_columns

    schema, source, model = opened.schema, opened.source, opened.model
    if source is None or schema is None:
        fail("--row needs a table: quadric explain MODEL DATA --row 17.")
    if schema.task != "classification":
        fail("--row needs a classifier, but this model predicts numbers.")
    unused_columns(schema, source.columns)
    X = features(schema, source.read())
    if number > len(X):
        fail(f"--row must be at most {len(X)}, the number of rows of {source.path}. Got {number}.")
    x = X[number - 1 : number]
    units = _units(model, x)
    integers = [column.name for column in X if _holds_integers(column)]
    near = radius(model, x, units=units)
    predicted = near.predicted[0]
    share = model.predict_proba(x)[0][list(model.classes_).index(predicted)]
    others = [label for label in model.classes_.tolist() if label != predicted][:MOST_CLASSES]
    found = {k: counterfactual(model, x, to=k, units=units, integers=integers) for k in others}
    nearest_first = sorted(found.items(), key=lambda pair: pair[1].distance)
    if as_json:
        print_json(
            {
                "row": number,
                "predicted": predicted.item(),
                "probability": float(share),
                "radius": float(near.radius[0]),
                "units": units,
                "counterfactuals": [_as_dict(k, one) for k, one in nearest_first],
            }
        )
        return
    measured = "standard deviations" if units == "scaled" else "the units of the inputs"
    print_line(f"Row {number}: {predicted} (probability {share:.3g})")
    print_line(
        f"No change smaller than {rounded(near.radius[0])} changes the class (in {measured})."
    )
    for label, one in nearest_first:
        nothing = f"{label}: no such input was found"
        print_line(f"  {one if one.changes else nothing}")


def _units(model: Any, x: Any) -> str:
    """Return 'scaled' if the model has a scaler, and 'inputs' otherwise."""
    from quadric.certify._model import as_classifier, coordinates_of

    typical = coordinates_of(as_classifier(model), x).space.typical
    return "inputs" if typical is None else "scaled"


def _holds_integers(column: Any) -> bool:
    """Whether all values of a column of numbers are integers."""
    if not column.dtype.is_numeric():
        return False
    values = column.drop_nulls().to_numpy()
    return bool(len(values) and (values == np.round(values)).all())


def _as_dict(label: Any, one: Any) -> dict[str, Any]:
    return {
        "to": label,
        "distance": one.distance if np.isfinite(one.distance) else None,
        "lower_bound": one.lower_bound if np.isfinite(one.lower_bound) else None,
        "exact": one.exact,
        "changes": [vars(change) for change in one.changes],
        "text": one.text(),
    }
