"""The operations of preprocessing as nodes."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from quadric._utils.arrays import Array
from quadric.onnx._categories import is_category, one_hot, ordinal
from quadric.onnx._features import (
    MISSING_TEXT,
    Column,
    Matrix,
    Table,
    as_columns,
    as_matrix,
    beside,
    pick,
)
from quadric.onnx._graph import Graph
from quadric.pipelines._operations import (
    Affine,
    Beside,
    Bin,
    Clip,
    Impute,
    Indicate,
    OneHot,
    Operation,
    Ordinal,
    Power,
    Select,
    is_missing,
)


def apply(graph: Graph, operations: Sequence[Operation], table: Table) -> Table:
    """The table after the operations."""
    for operation in operations:
        table = NODES[type(operation)](graph, operation, table)
    return table


def _affine(graph: Graph, operation: Affine, table: Table) -> Table:
    matrix = as_matrix(graph, table)
    out = _centred(graph, matrix.tensor, operation.center)
    if operation.A.ndim == 2:
        out = graph.add("MatMul", out, graph.constant(operation.A.T))
    elif (operation.A != 1).any():
        out = graph.add("Mul", out, graph.constant(operation.A[None]))
    if operation.shift.any():
        out = graph.add("Add", out, graph.constant(operation.shift[None]))
    return Matrix(out, len(operation.shift))


def _centred(graph: Graph, tensor: str, center: Array) -> str:
    """x - center; a float64 center is subtracted in two parts.

    Rounding it to float32 would move features whose mean is large compared with their spread.
    """
    for _ in range(2):
        part = center.astype(graph.dtype)
        if part.any():
            tensor = graph.add("Sub", tensor, graph.constant(part[None]))
        center = center - part
    return tensor


def _clip(graph: Graph, operation: Clip, table: Table) -> Table:
    matrix = as_matrix(graph, table)
    low, high = graph.constant(float(operation.low)), graph.constant(float(operation.high))
    return Matrix(graph.add("Clip", matrix.tensor, low, high), matrix.width)


def _select(graph: Graph, operation: Select, table: Table) -> Table:
    return pick(graph, table, operation.indices.tolist())


def _impute(graph: Graph, operation: Impute, table: Table) -> Table:
    """For numbers at once, for text column by column."""
    if isinstance(table, list) and any(column.kind == "string" for column in table):
        return [
            _impute_text(graph, operation, column, MISSING_TEXT if value is None else str(value))
            for column, value in zip(table, operation.fill, strict=True)
        ]
    matrix = as_matrix(graph, table)
    mask = _missing_numbers(graph, operation.missing, matrix)
    fill = graph.constant(operation.fill.astype(np.float64)[None])
    return Matrix(graph.add("Where", mask, fill, matrix.tensor), matrix.width)


def _impute_text(graph: Graph, operation: Impute, column: Column, value: str) -> Column:
    if column.kind != "string":
        raise TypeError("SimpleImputer is given columns of text and of numbers: use one for each")
    fill = graph.constant(np.array([[value]], dtype=object))
    mask = _missing_text(graph, operation.missing, column)
    return Column(graph.add("Where", mask, fill, column.tensor), "string", complete=True)


def _missing_numbers(graph: Graph, missing: Any, matrix: Matrix) -> str:
    if is_missing(missing):
        return graph.add("IsNaN", matrix.tensor)
    return graph.add("Equal", matrix.tensor, graph.constant(float(missing)))


def _missing_text(graph: Graph, missing: Any, column: Column) -> str:
    gone = MISSING_TEXT if is_missing(missing) else str(missing)
    return is_category(graph, column, [gone])


def _indicate(graph: Graph, operation: Indicate, table: Table) -> Table:
    if isinstance(table, list) and any(column.kind == "string" for column in table):
        flags = [_missing_text(graph, operation.missing, column) for column in table]
        return beside(graph, [Matrix(graph.cast(flag), 1) for flag in flags])
    matrix = as_matrix(graph, table)
    flags_ = _missing_numbers(graph, operation.missing, matrix)
    return Matrix(graph.cast(flags_), matrix.width)


def _bin(graph: Graph, operation: Bin, table: Table) -> Table:
    """How many edges are not above x; rows of edges are filled up with NaN, above which is none."""
    matrix = as_matrix(graph, table)
    most = max(1, *(len(edges) for edges in operation.edges))
    edges = np.full((len(operation.edges), most), np.nan)
    for i, row in enumerate(operation.edges):
        edges[i, : len(row)] = row
    tensor = matrix.tensor
    if operation.dtype == np.float32 and graph.dtype == np.float64:
        tensor = graph.cast(graph.cast(tensor, np.float32))
    x = graph.add("Unsqueeze", tensor, graph.constant([2]))
    reached = graph.add("GreaterOrEqual", x, graph.constant(_rounded_up(edges, graph.dtype)[None]))
    counted = graph.add("ReduceSum", graph.cast(reached), graph.constant([2]), keepdims=0)
    return Matrix(counted, matrix.width)


def _rounded_up(values: Array, dtype: Any) -> Array:
    """The smallest numbers of the type that are not below: x >= them where x >= values."""
    rounded = values.astype(dtype)
    above = np.nextafter(rounded, np.array(np.inf, dtype=dtype))
    return np.where(rounded < values, above, rounded).astype(dtype)


def _power(graph: Graph, operation: Power, table: Table) -> Table:
    """In float64, as scikit-learn: a small exponent costs many digits."""
    matrix = as_matrix(graph, table)
    double = graph.double()
    x, lambdas = double.cast(matrix.tensor), operation.lambdas
    if operation.method == "box-cox":
        out = _box_cox(double, x, lambdas)
    else:
        zero, one = double.constant(0.0), double.constant(1.0)
        above = double.add("Add", double.add("Max", x, zero), one)
        below = double.add("Sub", one, double.add("Min", x, zero))
        out = double.add(
            "Sub", _box_cox(double, above, lambdas), _box_cox(double, below, 2 - lambdas)
        )
    return Matrix(graph.cast(out), matrix.width)


def _box_cox(graph: Graph, x: str, lambdas: Array) -> str:
    """(x^lambda - 1) / lambda, and log x for lambda = 0."""
    flat = np.abs(lambdas) < np.spacing(1.0)  # as scikit-learn has it
    exponents = np.where(flat, 1.0, lambdas)
    power = graph.add("Pow", x, graph.constant(exponents[None]))
    less = graph.add("Sub", power, graph.constant(1.0))
    out = graph.add("Div", less, graph.constant(exponents[None]))
    if not flat.any():
        return out
    return graph.add("Where", graph.constant(flat[None], kind=bool), graph.add("Log", x), out)


def _beside(graph: Graph, operation: Beside, table: Table) -> Table:
    parts = [
        apply(graph, branch.operations, pick(graph, table, [int(j) for j in branch.columns]))
        for branch in operation.branches
    ]
    return beside(graph, parts)


def _one_hot(graph: Graph, operation: OneHot, table: Table) -> Table:
    return one_hot(graph, operation, as_columns(graph, table))


def _ordinal(graph: Graph, operation: Ordinal, table: Table) -> Table:
    return ordinal(graph, operation, as_columns(graph, table))


NODES: dict[type[Any], Callable[[Graph, Any, Table], Table]] = {
    Affine: _affine,
    Clip: _clip,
    Select: _select,
    Impute: _impute,
    Indicate: _indicate,
    OneHot: _one_hot,
    Ordinal: _ordinal,
    Bin: _bin,
    Power: _power,
    Beside: _beside,
}
