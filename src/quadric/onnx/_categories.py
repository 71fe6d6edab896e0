"""Categories of single columns as nodes: compared, and replaced by codes."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from quadric._utils.arrays import Array
from quadric.onnx._features import MISSING_TEXT, Column, Matrix, pick
from quadric.onnx._graph import ML, Graph
from quadric.pipelines._operations import Categories, OneHot, Ordinal, is_missing


def kind_of_values(values: Any) -> str:
    """'string', 'int64' or 'float': the type of a column that held these values."""
    array = np.asarray(values)
    if array.dtype.kind in "iub":
        return "int64"
    if array.dtype.kind == "f":
        return "float"
    present = [value for value in array if not is_missing(value)]
    if any(isinstance(value, str) for value in present):
        return "string"
    whole = len(present) == len(array) and all(
        isinstance(value, (bool, int, np.integer, np.bool_)) for value in present
    )
    return "int64" if whole else "float"


def one_hot(graph: Graph, operation: OneHot, columns: Sequence[Column]) -> Matrix:
    """The outputs of the categories; an unknown value gives zeros (ONNX cannot raise an error)."""
    codes = [
        _matches(graph, column, known.values)
        for column, known in zip(columns, operation.columns, strict=True)
    ]
    hot = graph.cast(codes[0] if len(codes) == 1 else graph.add("Concat", *codes, axis=1))
    kept = _places(operation.columns)
    if kept is not None:
        n = sum(len(known.values) for known in operation.columns)
        return cast(Matrix, pick(graph, Matrix(hot, n), kept))
    M, unknown = _regrouping(operation.columns)
    out = graph.add("Gemm", hot, graph.constant(M), graph.constant(unknown))
    return Matrix(out, M.shape[1])


def _places(columns: Sequence[Categories]) -> list[int] | None:
    """The category of each output; None if an output has several, or the unknown values."""
    found, row = [], 0
    for column in columns:
        shared = len(set(column.codes[column.codes >= 0].tolist())) < (column.codes >= 0).sum()
        if shared or (column.unknown is not None and column.unknown >= 0):
            return None
        order = np.argsort(column.codes, kind="stable")
        found += [row + int(k) for k in order if column.codes[k] >= 0]
        row += len(column.values)
    return found


def _regrouping(columns: Sequence[Categories]) -> tuple[Array, Array]:
    """M and u of ``hot @ M + u``, from categories to outputs.

    Where unknown values have an output, ``u`` is 1 there, and M takes it away again from all
    categories that are known.
    """
    m = sum(column.width for column in columns)
    M, u = np.zeros((sum(len(column.values) for column in columns), m)), np.zeros(m)
    row = first = 0
    for column in columns:
        for k, code in enumerate(column.codes):
            if code >= 0:
                M[row + k, first + code] = 1.0
        if column.unknown is not None and column.unknown >= 0:
            u[first + int(column.unknown)] = 1.0
            M[row : row + len(column.values), first + int(column.unknown)] -= 1.0
        row, first = row + len(column.values), first + column.width
    return M, u


def ordinal(graph: Graph, operation: Ordinal, columns: Sequence[Column]) -> Matrix:
    """The codes of the categories; NaN for an unknown value that scikit-learn would refuse."""
    found = []
    for column, known in zip(columns, operation.columns, strict=True):
        hot = graph.cast(_matches(graph, column, known.values))
        index = graph.add("ArgMax", hot, axis=1, keepdims=1)
        code = graph.add("Gather", graph.constant(known.codes.astype(float)), index)
        there = graph.cast(graph.add("ReduceSum", hot, graph.constant([1]), keepdims=1), np.bool_)
        unknown = np.nan if known.unknown is None else float(known.unknown)
        found.append(graph.add("Where", there, code, graph.constant(unknown)))
    joined = found[0] if len(found) == 1 else graph.add("Concat", *found, axis=1)
    return Matrix(joined, len(found))


def is_category(graph: Graph, column: Column, keys: Sequence[str]) -> str:
    """Of shape (batch, keys): whether a text is this key."""
    index = graph.add(
        "LabelEncoder", column.tensor, domain=ML,
        keys_strings=list(keys), values_int64s=list(range(len(keys))), default_int64=-1,
    )  # fmt: skip
    return graph.add("Equal", index, graph.constant(np.arange(len(keys))[None]))


def _matches(graph: Graph, column: Column, categories: Any) -> str:
    """Of shape (batch, categories): whether the value is this category."""
    values = np.asarray(categories)
    missing = np.array([is_missing(value) for value in values])
    if kind_of_values(values) == "string":
        if column.kind != "string":
            raise TypeError("an encoder compares text with a column of numbers")
        gone = missing.sum() + (values[~missing] == MISSING_TEXT).sum()
        if gone > (0 if column.complete else 1):
            raise ValueError(
                "an encoder tells apart several kinds of missing or empty text, which are all an "
                "empty string in ONNX. Replace them by one value before fit."
            )
        keys = [MISSING_TEXT if gone else str(v) for v, gone in zip(values, missing, strict=True)]
        return is_category(graph, column, keys)
    if missing[:-1].any():
        raise ValueError("an encoder has None and NaN among its categories. Keep one of them.")
    known = values[~missing].astype(np.int64 if column.kind == "int64" else np.float64)
    row = graph.as_tensor(known[None])
    if len(np.unique(row)) < row.size:
        raise ValueError(
            f"an encoder has categories that are the same number in {graph.dtype}. "
            'Export with dtype="float64".'
        )
    same = graph.add("Equal", column.tensor, graph.constant(row))
    if not missing.any():
        return same
    return graph.add("Concat", same, graph.add("IsNaN", column.tensor), axis=1)
