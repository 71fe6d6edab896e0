"""scikit-learn's preprocessing as nodes, a few for each step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from quadric.affine import column_indices
from quadric.arrays import Array
from quadric.onnx.encoders import impute, one_hot
from quadric.onnx.graph import Graph
from quadric.onnx.tables import Matrix, Table, as_matrix, beside, pick

__all__ = ["apply_step", "apply_steps", "column_parts"]

Step = Callable[[Graph, Any, Table, str], Table]


def apply_steps(
    graph: Graph, steps: Iterable[tuple[str, Any]], table: Table, prefix: str = ""
) -> Table:
    """The steps of a Pipeline, one after the other; `prefix` is for errors."""
    for name, step in steps:
        table = apply_step(graph, step, table, prefix + name)
    return table


def apply_step(graph: Graph, step: Any, table: Table, name: str) -> Table:
    if step is None or step == "passthrough":
        return table
    known = STEPS.get(type(step).__name__)
    if known is not None:
        return known(graph, step, table, name)
    if hasattr(step, "get_support"):  # a feature selector
        return pick(graph, table, np.flatnonzero(step.get_support()).tolist())
    raise TypeError(
        f"step {name!r} ({type(step).__name__}) cannot be exported. Known are feature selection "
        f"and {', '.join(STEPS)}; for others convert the Pipeline with skl2onnx.to_onnx."
    )


def _centred(graph: Graph, matrix: Matrix, center: Array) -> str:
    """x - center; a float64 center is taken off in two parts.

    Rounding it to float32 would move features whose mean is large against their spread.
    """
    center = np.asarray(center, dtype=np.float64)
    out = matrix.tensor
    for _ in range(2):
        part = center.astype(graph.dtype)
        if part.any():
            out = graph.add("Sub", out, graph.constant(part[None]))
        center = center - part
    return out


def _scaled(graph: Graph, tensor: str, scale: Any) -> str:
    row = np.asarray(scale, dtype=np.float64)[None]
    return graph.add("Div", tensor, graph.constant(row))


def _clipped(graph: Graph, tensor: str, low: float, high: float) -> str:
    return graph.add("Clip", tensor, graph.constant(float(low)), graph.constant(float(high)))


def _standard(graph: Graph, step: Any, table: Table, name: str) -> Table:
    matrix = as_matrix(graph, table)
    out = _centred(graph, matrix, step.mean_) if step.with_mean else matrix.tensor
    if step.with_std:
        out = _scaled(graph, out, step.scale_)
    return Matrix(out, matrix.width)


def _robust(graph: Graph, step: Any, table: Table, name: str) -> Table:
    matrix = as_matrix(graph, table)
    out = _centred(graph, matrix, step.center_) if step.with_centering else matrix.tensor
    if step.with_scaling:
        out = _scaled(graph, out, step.scale_)
    return Matrix(out, matrix.width)


def _min_max(graph: Graph, step: Any, table: Table, name: str) -> Table:
    """(x - smallest) scale + low, which loses no digits where x scale + min would."""
    matrix = as_matrix(graph, table)
    low, high = step.feature_range
    out = _centred(graph, matrix, step.data_min_)
    out = graph.add("Mul", out, graph.constant(np.asarray(step.scale_, np.float64)[None]))
    if low:
        out = graph.add("Add", out, graph.constant(float(low)))
    if step.clip:
        out = _clipped(graph, out, low, high)
    return Matrix(out, matrix.width)


def _max_abs(graph: Graph, step: Any, table: Table, name: str) -> Table:
    matrix = as_matrix(graph, table)
    out = _scaled(graph, matrix.tensor, step.scale_)
    if getattr(step, "clip", False):
        out = _clipped(graph, out, -1.0, 1.0)
    return Matrix(out, matrix.width)


def _pca(graph: Graph, step: Any, table: Table, name: str) -> Table:
    A = np.asarray(step.components_, dtype=np.float64)
    if step.whiten:
        least = np.finfo(step.components_.dtype).eps  # as scikit-learn has it
        A = A / np.sqrt(np.maximum(step.explained_variance_, least))[:, None]
    centred = _centred(graph, as_matrix(graph, table), step.mean_)
    return Matrix(graph.add("MatMul", centred, graph.constant(A.T)), len(A))


def _svd(graph: Graph, step: Any, table: Table, name: str) -> Table:
    A = np.asarray(step.components_, dtype=np.float64)
    return Matrix(graph.add("MatMul", as_matrix(graph, table).tensor, graph.constant(A.T)), len(A))


def _function(graph: Graph, step: Any, table: Table, name: str) -> Table:
    if step.func is not None:
        raise TypeError(f"step {name!r} (FunctionTransformer) holds Python code: {step.func!r}")
    return table


def _pipeline(graph: Graph, step: Any, table: Table, name: str) -> Table:
    return apply_steps(graph, step.steps, table, f"{name}__")


def _weighted(graph: Graph, part: Table, factor: float | None) -> Table:
    if factor is None:
        return part
    matrix = as_matrix(graph, part)
    scaled = graph.add("Mul", matrix.tensor, graph.constant(float(factor)))
    return Matrix(scaled, matrix.width)


def column_parts(step: Any) -> list[tuple[str, Any, list[int]]]:
    """Of a fitted ColumnTransformer: name, transformer and column indices; nothing dropped."""
    names = [str(n) for n in getattr(step, "feature_names_in_", range(step.n_features_in_))]
    parts = []
    for name, inner, columns in step.transformers_:
        indices = (
            [] if isinstance(inner, str) and inner == "drop" else column_indices(columns, names)
        )
        if indices:
            parts.append((name, inner, indices))
    return parts


def _columns(graph: Graph, step: Any, table: Table, name: str) -> Table:
    weights = step.transformer_weights or {}
    parts = []
    for inner_name, inner, indices in column_parts(step):
        chosen = pick(graph, table, indices)
        part = apply_step(graph, inner, chosen, f"{name}__{inner_name}")
        parts.append(_weighted(graph, part, weights.get(inner_name)))
    return beside(graph, parts)


def _union(graph: Graph, step: Any, table: Table, name: str) -> Table:
    weights = step.transformer_weights or {}
    parts = [
        _weighted(
            graph, apply_step(graph, inner, table, f"{name}__{inner_name}"), weights.get(inner_name)
        )
        for inner_name, inner in step.transformer_list
        if not (isinstance(inner, str) and inner == "drop")
    ]
    return beside(graph, parts)


STEPS: dict[str, Step] = {
    "StandardScaler": _standard,
    "MinMaxScaler": _min_max,
    "MaxAbsScaler": _max_abs,
    "RobustScaler": _robust,
    "PCA": _pca,
    "IncrementalPCA": _pca,
    "TruncatedSVD": _svd,
    "SimpleImputer": impute,
    "OneHotEncoder": one_hot,
    "FunctionTransformer": _function,
    "Pipeline": _pipeline,
    "ColumnTransformer": _columns,
    "FeatureUnion": _union,
}
