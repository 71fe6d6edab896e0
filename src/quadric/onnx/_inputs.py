"""The inputs of a graph: one matrix, or a named input for each column where types differ."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from quadric.onnx._categories import kind_of_values
from quadric.onnx._graph import Graph
from quadric.onnx._tables import Column, Matrix, Table
from quadric.pipelines._operations import Beside, Impute, OneHot, Operation, Ordinal, Select

Input = tuple[str, Any, int]  # name, dtype, width


def feature_names(model: Any, n: int) -> list[str]:
    """As in fit, or x0, x1, ... as scikit-learn calls them."""
    given = getattr(model, "feature_names_in_", None)
    return [f"x{i}" for i in range(n)] if given is None else [str(name) for name in given]


def declared_inputs(
    graph: Graph, operations: Sequence[Operation], names: Sequence[str]
) -> tuple[list[Input], Table]:
    """The inputs that the operations need, and the table that they make up.

    Columns that no operation uses are no inputs.
    """
    n = len(names)
    kinds = _kinds(operations, n)
    if not {"string", "int64"} & set(kinds):
        return [("X", graph.dtype, n)], Matrix("X", n)
    dtypes = {"string": np.dtype(object), "int64": np.dtype(np.int64), "float": graph.dtype}
    inputs = [
        (name, dtypes[kind], 1) for name, kind in zip(names, kinds, strict=True) if kind is not None
    ]
    # an unused column keeps its place, so that the indices of the others stay right
    return inputs, [Column(name, kind or "float") for name, kind in zip(names, kinds, strict=True)]


def _kinds(operations: Sequence[Operation], n: int) -> list[str | None]:
    """The type of each of n columns before the operations; None where it is not used."""
    first = operations[0] if operations else None
    if isinstance(first, (OneHot, Ordinal)):
        return [kind_of_values(column.values) for column in first.columns]
    if isinstance(first, Impute):
        # whole numbers with gaps are real numbers
        return ["string" if isinstance(value, str) else "float" for value in first.fill]
    kinds: list[str | None] = [None] * n
    parts: list[tuple[Any, Sequence[Operation]]]
    if isinstance(first, Select):
        parts = [(first.indices, operations[1:])]
    elif isinstance(first, Beside):
        parts = [(branch.columns, branch.operations) for branch in first.branches]
    else:
        return ["float"] * n
    for indices, inner in parts:
        for i, kind in zip(indices, _kinds(inner, len(indices)), strict=True):
            kinds[i] = max(filter(None, (kinds[i], kind)), key=_RANK.index, default=None)
    return kinds


_RANK = ("int64", "float", "string")  # a column used twice takes the more general type
