"""The inputs of a graph: one matrix, or a named input for each column where types differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from quadric.onnx.encoders import kind_of_values
from quadric.onnx.graph import Graph
from quadric.onnx.steps import column_parts
from quadric.onnx.tables import Column, Matrix, Table

__all__ = ["Input", "declared_inputs", "feature_names"]

Input = tuple[str, Any, int]  # name, dtype, width


def feature_names(model: Any, n: int) -> list[str]:
    """As in fit, or x0, x1, ... as scikit-learn calls them."""
    given = getattr(model, "feature_names_in_", None)
    return [f"x{i}" for i in range(n)] if given is None else [str(name) for name in given]


def declared_inputs(
    graph: Graph, steps: Sequence[tuple[str, Any]], names: Sequence[str]
) -> tuple[list[Input], Table]:
    """The inputs that the steps need, and the table that they make up.

    Columns that no step uses are no inputs.
    """
    n = len(names)
    kinds = _kinds_of_steps(steps, n)
    if not {"string", "int64"} & set(kinds):
        return [("X", graph.dtype, n)], Matrix("X", n)
    dtypes = {"string": np.dtype(object), "int64": np.dtype(np.int64), "float": graph.dtype}
    inputs = [
        (name, dtypes[kind], 1) for name, kind in zip(names, kinds, strict=True) if kind is not None
    ]
    # an unused column keeps its place, so that the indices of the others stay right
    return inputs, [Column(name, kind or "float") for name, kind in zip(names, kinds, strict=True)]


def _kinds_of_steps(steps: Sequence[tuple[str, Any]], n: int) -> list[str | None]:
    for _, step in steps:
        if step is not None and not isinstance(step, str):
            return _kinds(step, n)
    return ["float"] * n


def _kinds(step: Any, n: int) -> list[str | None]:
    """The type of each column that goes into the step; None where it is not used."""
    name = type(step).__name__
    if name == "Pipeline":
        return _kinds_of_steps(step.steps, n)
    if name == "OneHotEncoder":
        return [kind_of_values(values) for values in step.categories_]
    if name == "SimpleImputer":
        # whole numbers with gaps are real numbers
        return ["string" if isinstance(v, str) else "float" for v in step.statistics_]
    parts: list[tuple[Any, list[int]]]
    if name == "ColumnTransformer":
        parts = [(inner, indices) for _, inner, indices in column_parts(step)]
    elif name == "FeatureUnion":
        parts = [(inner, list(range(n))) for _, inner in step.transformer_list if inner != "drop"]
    else:
        return ["float"] * n
    kinds: list[str | None] = [None] * n
    for inner, indices in parts:
        for i, kind in zip(indices, _kinds_of_steps([("", inner)], len(indices)), strict=True):
            kinds[i] = max(filter(None, (kinds[i], kind)), key=_RANK.index, default=None)
    return kinds


_RANK = ("int64", "float", "string")  # a column used twice takes the more general type
