"""The settings of the inputs with the best score of a model, within the range of a table."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from quadric.apps.shell.tables._saved_model import OpenedModel
from quadric.apps.shell.tables._schema import check_inputs, features
from quadric.apps.shell.tables._source import open_table
from quadric.certify import Box, extremum
from quadric.errors import TableError

MOST_CHOICES = 500  # combinations of categories


def optimum(
    opened: OpenedModel,
    *,
    sense: str,
    of: Any = None,
    fixed: Mapping[str, str],
    within: Path | None = None,
    extrapolate: bool = False,
) -> dict[str, Any]:
    """Find the best settings within the range of the table, for every combination of categories.

    Parameters
    ----------
    opened : OpenedModel
        A model with a table.
    sense : {'maximum', 'minimum'}
        What to find.
    of : label, optional
        The class whose score is optimized.
    fixed : dict of str to str
        The values of inputs that are held fixed, as text.
    within : Path, optional
        A table with the columns input, low and high.
    extrapolate : bool
        Whether limits may lie outside the range of the table.

    Returns
    -------
    dict
        The results as JSON values.
    """
    schema, source = opened.table
    check_inputs(schema, source.columns)
    X = features(schema, source.read())
    limits = _limits(X)
    given = {name: (value, value) for name, value in fixed.items()}
    for name, pair in {**_limits_in(within), **given}.items():
        limits[name] = _checked(name, pair, X, limits, extrapolate=extrapolate)
    texts = [name for name in X.columns if not X[name].dtype.is_numeric()]
    count = int(np.prod([float(len(limits[name])) for name in texts]))
    if count > MOST_CHOICES:
        raise TableError(
            f"{count:,} combinations of categories are too many. Fix some: --fixed {texts[0]}=..."
        )
    sign, found = 1 if sense == "maximum" else -1, []
    for values in itertools.product(*(limits[name] for name in texts)):
        kinds = dict(zip(texts, values, strict=True))
        box = Box(*(_row(X, limits, kinds, side) for side in (0, 1)))
        found.append((extremum(opened.model, box, of=of, sense=sense), kinds))
    best, kinds = max(found, key=lambda one: sign * one[0].value)
    bound = sign * max(sign * one.bound for one, _ in found)
    settings = dict(zip(best.names, best.point.tolist(), strict=True)) | kinds
    return {
        "sense": sense,
        "score": best.score if opened.view.classes is not None else opened.target,
        "value": best.value,
        "bound": bound,
        "gap": abs(bound - best.value) / max(1.0, abs(best.value)),
        "settings": {name: settings[name] for name in X.columns},
        "limits": {name: list(limits[name]) for name in X.columns},
    }


def _row(
    X: pl.DataFrame, limits: Mapping[str, Any], kinds: Mapping[str, str], side: int
) -> pl.DataFrame:
    """The row of lower or upper limits for a combination of categories."""
    values = {name: [kinds[name] if name in kinds else limits[name][side]] for name in X.columns}
    return pl.DataFrame(values, schema=X.schema)


def _limits(X: pl.DataFrame) -> dict[str, Any]:
    """The range of each column of numbers, and the values of the others."""
    limits: dict[str, Any] = {}
    for column in X:
        present = column.drop_nulls()
        if column.dtype.is_numeric():
            present = present.drop_nans()
            if not len(present):
                raise TableError(f"column {column.name!r} has no values, so it has no limits.")
            limits[column.name] = (present.min(), present.max())
        else:
            limits[column.name] = present.unique().sort().to_list()
    return limits


def _limits_in(path: Path | None) -> dict[str, tuple[str, str]]:
    """The limits in a table with the columns input, low and high."""
    if path is None:
        return {}
    table = open_table(path).read()
    if not {"input", "low", "high"} <= set(table.columns):
        raise TableError(f"{path} must have the columns input, low and high.")
    rows = table.select("input", "low", "high").cast(pl.String).rows()
    return {name: (low, high) for name, low, high in rows}


def _checked(
    name: str,
    pair: tuple[str, str],
    X: pl.DataFrame,
    limits: Mapping[str, Any],
    *,
    extrapolate: bool,
) -> Any:
    """New limits of an input: within those of the table, unless the user allows more."""
    if name not in limits:
        raise TableError(f"the inputs are {', '.join(limits)}. Got {name!r}.")
    if not X[name].dtype.is_numeric():
        if pair[0] != pair[1] or (pair[0] not in limits[name] and not extrapolate):
            raise TableError(f"{name} must be one of {', '.join(limits[name])}. Got {pair[0]}.")
        return [pair[0]]
    try:
        low, high = map(float, pair)
    except (TypeError, ValueError):
        raise TableError(f"the limits of {name} must be numbers. Got {pair}.") from None
    least, most = limits[name]
    if not low <= high:
        raise TableError(f"the limits of {name} must be in order. Got {low:g} and {high:g}.")
    if not extrapolate and not least <= low <= high <= most:
        raise TableError(
            f"the limits of {name} are {low:g} and {high:g}, but the table contains only values "
            f"from {least:g} to {most:g}. The model is not known to hold there; pass --extrapolate "
            "to allow it."
        )
    return low, high
