"""Steps over single columns: one-hot codes, and missing values replaced."""

from __future__ import annotations

from typing import Any

import numpy as np

from quadric.arrays import Array
from quadric.onnx.graph import ML, Graph
from quadric.onnx.tables import Column, Matrix, Table, as_columns, as_matrix, pick

__all__ = ["impute", "is_missing", "kind_of_values", "one_hot"]

MISSING_TEXT = ""  # ONNX has no missing text: an empty one stands for it


def is_missing(value: Any) -> bool:
    """None, and whatever is not equal to itself: NaN and pandas' NaT."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas' NA has no truth value
        return True


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


def one_hot(graph: Graph, step: Any, table: Table, name: str) -> Table:
    """OneHotEncoder; a value that it has not seen gives zeros (ONNX cannot raise an error)."""
    columns = as_columns(graph, table)
    codes = [
        _matches(graph, column, categories, name)
        for column, categories in zip(columns, step.categories_, strict=True)
    ]
    hot = graph.cast(codes[0] if len(codes) == 1 else graph.add("Concat", *codes, axis=1))
    M, unknown = _regrouping(step)
    if np.array_equal(M, np.eye(len(M))):
        return Matrix(hot, len(M))
    out = graph.add("Gemm", hot, graph.constant(M), graph.constant(unknown))
    return Matrix(out, M.shape[1])


def _matches(graph: Graph, column: Column, categories: Any, name: str) -> str:
    """Of shape (batch, categories): whether the value is this category."""
    values = np.asarray(categories)
    missing = np.array([is_missing(value) for value in values])
    if kind_of_values(values) == "string":
        if column.kind != "string":
            raise TypeError(f"step {name!r} compares text with a column of numbers")
        if missing.sum() + (values[~missing] == MISSING_TEXT).sum() > 1:
            raise ValueError(
                f"step {name!r} tells apart several kinds of missing or empty text, which are all "
                "an empty string in ONNX. Replace them by one value before fit."
            )
        keys = [MISSING_TEXT if gone else str(v) for v, gone in zip(values, missing, strict=True)]
        index = graph.add(
            "LabelEncoder", column.tensor, domain=ML,
            keys_strings=keys, values_int64s=list(range(len(keys))), default_int64=-1,
        )  # fmt: skip
        return graph.add("Equal", index, graph.constant(np.arange(len(keys))[None]))
    if missing[:-1].any():
        raise ValueError(f"step {name!r} has None and NaN among its categories. Keep one of them.")
    known = values[~missing].astype(np.int64 if column.kind == "int64" else np.float64)
    row = graph.as_tensor(known[None])
    if len(np.unique(row)) < row.size:
        raise ValueError(
            f"step {name!r} has categories that are the same number in {graph.dtype}. "
            'Export with dtype="float64".'
        )
    same = graph.add("Equal", column.tensor, graph.constant(row))
    if not missing.any():
        return same
    return graph.add("Concat", same, graph.add("IsNaN", column.tensor), axis=1)


def _regrouping(step: Any) -> tuple[Array, Array]:
    """M and u of ``hot @ M + u``: rare categories as one, dropped ones out, unknown ones as rare.

    Where an unknown value counts as rare, ``u`` is 1 in that output, and M takes it away again
    from all categories that are known.
    """
    blocks, unknown = [], []
    rare_of = getattr(step, "infrequent_categories_", [None] * len(step.categories_))
    for i, categories in enumerate(step.categories_):
        rare = np.zeros(len(categories), dtype=bool)
        if rare_of[i] is not None:
            rare = np.array([any(_same(value, r) for r in rare_of[i]) for value in categories])
        M = np.eye(len(categories))[:, ~rare]
        u = np.zeros(M.shape[1] + int(rare.any()))
        if rare.any():
            M = np.column_stack([M, rare])
            if step.handle_unknown in ("infrequent_if_exist", "warn"):
                u[-1] = 1.0
                M[:, -1] -= 1.0
        if step.drop_idx_ is not None and step.drop_idx_[i] is not None:
            j = int(step.drop_idx_[i])
            gone = M.shape[1] - 1 if rare[j] else int((~rare)[:j].sum())
            M, u = np.delete(M, gone, axis=1), np.delete(u, gone)
        blocks.append(M)
        unknown.append(u)
    whole = np.zeros((sum(len(M) for M in blocks), sum(M.shape[1] for M in blocks)))
    row = column = 0
    for M in blocks:
        whole[row : row + M.shape[0], column : column + M.shape[1]] = M
        row, column = row + M.shape[0], column + M.shape[1]
    return whole, np.concatenate(unknown)


def _same(a: Any, b: Any) -> bool:
    return bool(a == b) if not (is_missing(a) or is_missing(b)) else is_missing(a) == is_missing(b)


def impute(graph: Graph, step: Any, table: Table, name: str) -> Table:
    """SimpleImputer, for numbers at once and for text column by column."""
    fill = np.asarray(step.statistics_)
    if isinstance(table, list) and any(column.kind == "string" for column in table):
        if step.add_indicator:
            raise TypeError(f"step {name!r}: add_indicator=True is exported for numbers only")
        gone = MISSING_TEXT if is_missing(step.missing_values) else str(step.missing_values)
        return [
            _impute_text(graph, column, str(value), gone)
            for column, value in zip(as_columns(graph, table), fill, strict=True)
            if not is_missing(value)
        ]
    matrix = as_matrix(graph, table)
    if is_missing(step.missing_values):
        mask = graph.add("IsNaN", matrix.tensor)
    else:
        mask = graph.add("Equal", matrix.tensor, graph.constant(float(step.missing_values)))
    fill = fill.astype(np.float64)
    kept = np.flatnonzero(~np.isnan(fill))
    filled = graph.add("Where", mask, graph.constant(np.nan_to_num(fill)[None]), matrix.tensor)
    out = as_matrix(graph, pick(graph, Matrix(filled, matrix.width), kept.tolist()))
    if not step.add_indicator:
        return out
    features = step.indicator_.features_.tolist()
    flags = as_matrix(graph, pick(graph, Matrix(graph.cast(mask), matrix.width), features))
    joined = graph.add("Concat", out.tensor, flags.tensor, axis=1)
    return Matrix(joined, out.width + flags.width)


def _impute_text(graph: Graph, column: Column, value: str, gone: str) -> Column:
    if column.kind != "string":
        raise TypeError("SimpleImputer is given columns of text and of numbers: use one for each")
    flag = graph.add(
        "LabelEncoder", column.tensor, domain=ML,
        keys_strings=[gone], values_int64s=[1], default_int64=0,
    )  # fmt: skip
    fill = graph.constant(np.array([[value]], dtype=object))
    filled = graph.add("Where", graph.cast(flag, np.bool_), fill, column.tensor)
    return Column(filled, "string")
