"""`quadric explain --row`: one row of a table, and what would change its class.

This module imports slow packages. `quadric explain` imports it only if it is needed.
"""

from typing import Any

import numpy as np

from quadric.apps.shell.commands._console import fail, print_json, print_line, print_notes
from quadric.apps.shell.commands._model_loading import OpenedModel
from quadric.apps.shell.tables._evaluation import finite_or_none
from quadric.apps.shell.tables._features import check_inputs, features
from quadric.certify import Counterfactual, counterfactual, radius
from quadric.models import ModelView
from quadric.utils import rounded_down

MOST_CLASSES = 10


def explain_row(opened: OpenedModel, number: int, *, as_json: bool) -> None:
    """Print the class of a row, its certified radius and its counterfactuals."""
    schema, source, model = opened.schema, opened.source, opened.model
    if source is None or schema is None:
        fail("--row needs a table: quadric explain MODEL DATA --row 17.")
    if schema.task != "classification":
        fail("--row needs a classifier, but this model predicts numbers.")
    check_inputs(schema, source.columns)
    X = features(schema, source.read())
    if number > len(X):
        fail(f"--row must be at most {len(X)}, the number of rows of {source.path}. Got {number}.")
    x = X[number - 1 : number]
    in_inputs = radius(model, x)
    units = "inputs" if ModelView.of(model).coordinates.typical is None else "scaled"
    near = radius(model, x, units=units)
    integers = [column.name for column in X if _holds_integers(column)]
    predicted = near.predicted[0]
    probability = model.predict_proba(x)[0][list(model.classes_).index(predicted)]
    others = [label for label in model.classes_.tolist() if label != predicted]
    if len(others) > MOST_CLASSES:
        print_notes([f"Only {MOST_CLASSES} of the {len(others)} other classes are shown."])
        others.sort(key=lambda label: label != near.becomes[0])  # the nearest class comes first
    found = {
        label: counterfactual(model, x, to=label, units=units, integers=integers)
        for label in others[:MOST_CLASSES]
    }
    nearest_first = sorted(found.items(), key=lambda pair: pair[1].distance)
    if as_json:
        print_json(
            {
                "row": number,
                "predicted": predicted.item(),
                "probability": float(probability),
                "radius": finite_or_none(near.radius[0]),
                "units": units,
                "radius_in_inputs": finite_or_none(in_inputs.radius[0]),
                "counterfactuals": [_as_dict(label, nearest) for label, nearest in nearest_first],
            }
        )
        return
    print_line(f"Row {number}: {predicted} (probability {probability:.3g})")
    if np.isinf(near.radius[0]):
        print_line("No change of the numeric inputs changes the class.")
        return
    measured = f"{rounded_down(in_inputs.radius[0])} in the units of the inputs"
    if units == "scaled":
        measured = f"{rounded_down(near.radius[0])} standard deviations, or {measured},"
    print_line(f"No change smaller than {measured} changes the class.")
    for label, nearest in nearest_first:
        nothing = f"{label}: no such input was found"
        print_line(f"  {nearest if nearest.changes else nothing}")


def _holds_integers(column: Any) -> bool:
    """Whether all values of a column of numbers are integers."""
    if not column.dtype.is_numeric():
        return False
    values = column.drop_nulls().to_numpy()
    return bool(len(values) and (values == np.round(values)).all())


def _as_dict(label: Any, nearest: Counterfactual) -> dict[str, Any]:
    return {
        "to": label,
        "distance": finite_or_none(nearest.distance),
        "lower_bound": finite_or_none(nearest.lower_bound),
        "exact": nearest.exact,
        "changes": [vars(change) for change in nearest.changes],
        "text": nearest.text(),
    }
