"""The inputs of a graph: one matrix, or a named input for each column where types differ."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from quadric.onnx._categories import kind_of_values
from quadric.onnx._features import Column, Matrix, Table
from quadric.onnx._graph import Graph
from quadric.pipelines._operations import (
    Affine,
    Beside,
    Branch,
    Impute,
    OneHot,
    Operation,
    Ordinal,
    Select,
    width_after,
)

Input = tuple[str, Any, int]  # name, dtype, width
Kinds = list[str | None]  # of columns, as in `Column`


def feature_names(model: Any, n: int) -> list[str]:
    """As in fit, or x0, x1, ... as scikit-learn calls them."""
    given = getattr(model, "feature_names_in_", None)
    return [f"x{i}" for i in range(n)] if given is None else [str(name) for name in given]


def declared_inputs(
    graph: Graph, operations: Sequence[Operation], names: Sequence[str], *, named: bool
) -> tuple[list[Input], Table]:
    """The inputs that the operations need, and the table that they make up.

    One matrix if all columns are numbers. A column that a ColumnTransformer drops may be text:
    if the columns were `named` in fit, each one that is used is an input of its own.
    """
    n = len(names)
    kinds = _kinds(operations, ["float"] * width_after(operations, n))
    dropped = None in kinds and isinstance(operations[0], Beside)
    if not (named and dropped) and not {"string", "int64"} & set(kinds):
        return [("X", graph.dtype, n)], Matrix("X", n)
    dtypes = {"string": np.dtype(object), "int64": np.dtype(np.int64), "float": graph.dtype}
    inputs = [
        (name, dtypes[kind], 1) for name, kind in zip(names, kinds, strict=True) if kind is not None
    ]
    # an unused column keeps its place, so that the indices of the others stay right
    return inputs, [Column(name, kind) for name, kind in zip(names, kinds, strict=True)]


def _kinds(operations: Sequence[Operation], after: Kinds) -> Kinds:
    """The type of each column before the operations, from the types that are needed after them."""
    for operation in reversed(operations):
        after = _kinds_before(operation, after)
    return after


def _kinds_before(operation: Operation, after: Kinds) -> Kinds:
    if isinstance(operation, (OneHot, Ordinal)):
        return [kind_of_values(column.values) for column in operation.columns]
    if isinstance(operation, Impute):
        # whole numbers with gaps are real numbers
        return ["string" if isinstance(value, str) else "float" for value in operation.fill]
    if isinstance(operation, Select):
        branches: Sequence[Branch] = [Branch(operation.indices, ())]
    elif isinstance(operation, Beside):
        branches = operation.branches
    else:
        n = operation.A.shape[-1] if isinstance(operation, Affine) else len(after)
        return ["float"] * n
    kinds: Kinds = [None] * operation.n
    first = 0
    for branch in branches:
        inner = _kinds(branch.operations, after[first : first + branch.width])
        first += branch.width
        for i, kind in zip(branch.columns, inner, strict=True):
            kinds[i] = max(filter(None, (kinds[i], kind)), key=_RANK.index, default=None)
    return kinds


_RANK = ("int64", "float", "string")  # a column used twice takes the more general type
