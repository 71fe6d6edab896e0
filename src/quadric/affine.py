"""Affine steps of scikit-learn pipelines, undone: a surface restated in what came before them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quadric.arrays import Array
from quadric.geometry import Quadric

__all__ = [
    "Affine",
    "NotAffineError",
    "affine_step",
    "column_indices",
    "typical_inputs",
    "undo",
    "undo_steps",
]


class NotAffineError(TypeError):
    """A step that is not of the form z = A u + t."""


@dataclass(frozen=True)
class Affine:
    """z = A u + t, u being the features before the step.

    Attributes
    ----------
    A : array
        A vector stands for a diagonal matrix.
    t : array
    names : list of str, optional
        The names of u where these are not the step's inputs: a ColumnTransformer may hold an
        encoder, whose outputs then stand among u as they are.
    """

    A: Array
    t: Array
    names: list[str] | None = None


def undo(surface: Quadric, step: Affine) -> Quadric:
    """The surface in u, from the one in z = A u + t."""
    if step.A.ndim == 1 and step.A.all():
        return surface.transform(1 / step.A, -step.t / step.A)
    A = np.diag(step.A) if step.A.ndim == 1 else step.A
    return surface.preimage(A, step.t)


def undo_steps(surface: Quadric, steps: Sequence[Any]) -> Quadric:
    """The surface in the inputs of the first step, from the one in the outputs of the last."""
    for step in reversed(steps):
        if step is None or isinstance(step, str):  # 'passthrough'
            continue
        affine = affine_step(step)
        if affine.names is not None:
            raise NotAffineError(f"{type(step).__name__} holds a step that is not affine")
        surface = undo(surface, affine)
    return surface


def affine_step(step: Any) -> Affine:
    """What a fitted transformer does, as z = A u + t.

    Missing values aside: an imputer leaves a complete row as it is.
    """
    name = type(step).__name__
    if not hasattr(step, "n_features_in_"):
        raise NotAffineError(f"{name} is not fitted, or is not one of scikit-learn's transformers")
    if name in STEPS:
        return STEPS[name](step)
    if hasattr(step, "get_support"):  # a feature selector
        return _selection(np.asarray(step.get_support()))
    raise NotAffineError(f"{name} is not known to be an affine step")


def typical_inputs(step: Any) -> tuple[Array, Array] | None:
    """What a fitted scaler knows of its inputs: about their means and standard deviations."""
    name = type(step).__name__
    n = getattr(step, "n_features_in_", 0)
    if name == "StandardScaler" and step.scale_ is not None:
        return np.zeros(n) if step.mean_ is None else step.mean_, np.asarray(step.scale_)
    if name == "MinMaxScaler":
        low, high = np.asarray(step.data_min_), np.asarray(step.data_max_)
        return (low + high) / 2, (high - low) / np.sqrt(12)
    if name == "MaxAbsScaler":
        return np.zeros(n), np.asarray(step.max_abs_) / 2
    if name == "RobustScaler" and step.with_scaling and step.with_centering:
        return np.asarray(step.center_), np.asarray(step.scale_) / 1.35  # of the normal quartiles
    return None


def _standard(step: Any) -> Affine:
    n = step.n_features_in_
    scale = np.ones(n) if step.scale_ is None else np.asarray(step.scale_, dtype=float)
    mean = np.zeros(n) if not step.with_mean else np.asarray(step.mean_, dtype=float)
    return Affine(1 / scale, -mean / scale)


def _min_max(step: Any) -> Affine:
    if step.clip:
        raise NotAffineError("MinMaxScaler(clip=True) is not affine outside its range")
    return Affine(np.asarray(step.scale_, float), np.asarray(step.min_, float))


def _max_abs(step: Any) -> Affine:
    if getattr(step, "clip", False):
        raise NotAffineError("MaxAbsScaler(clip=True) is not affine outside its range")
    return Affine(1 / np.asarray(step.scale_, float), np.zeros(step.n_features_in_))


def _robust(step: Any) -> Affine:
    n = step.n_features_in_
    scale = np.asarray(step.scale_, float) if step.with_scaling else np.ones(n)
    center = np.asarray(step.center_, float) if step.with_centering else np.zeros(n)
    return Affine(1 / scale, -center / scale)


def _pca(step: Any) -> Affine:
    A = np.asarray(step.components_, dtype=float)
    if step.whiten:
        variance = np.asarray(step.explained_variance_, dtype=float)
        least = np.finfo(step.components_.dtype).eps  # as scikit-learn has it
        A = A / np.sqrt(np.maximum(variance, least))[:, None]
    return Affine(A, -A @ np.asarray(step.mean_, dtype=float))


def _union(step: Any) -> Affine:
    """A FeatureUnion: the same inputs through several steps, side by side."""
    n = step.n_features_in_
    blocks = [
        _identity(n) if isinstance(inner, str) else affine_step(inner)
        for _, inner in step.transformer_list
        if inner != "drop"
    ]
    if any(block.names is not None for block in blocks):
        raise NotAffineError("FeatureUnion holds a step that is not affine")
    weights = step.transformer_weights or {}
    factors = [weights.get(name, 1.0) for name, inner in step.transformer_list if inner != "drop"]
    A = np.vstack([f * _matrix(block) for f, block in zip(factors, blocks, strict=True)])
    return Affine(
        A, np.concatenate([f * block.t for f, block in zip(factors, blocks, strict=True)])
    )


def _svd(step: Any) -> Affine:
    A = np.asarray(step.components_, dtype=float)
    return Affine(A, np.zeros(len(A)))


def _imputer(step: Any) -> Affine:
    if step.add_indicator:
        raise NotAffineError("SimpleImputer(add_indicator=True) adds columns that are not affine")
    if step.missing_values is not None and step.missing_values == step.missing_values:
        raise NotAffineError(
            f"SimpleImputer(missing_values={step.missing_values!r}) changes values"
        )
    kept = np.ones(step.n_features_in_, dtype=bool)
    if not step.keep_empty_features and step.strategy != "constant":
        kept = np.array([value == value for value in step.statistics_])  # drops all-missing ones
    return _selection(kept)


def _function(step: Any) -> Affine:
    if step.func is not None:
        raise NotAffineError("FunctionTransformer with a function is not known to be affine")
    return _identity(step.n_features_in_)


def _pipeline(step: Any) -> Affine:
    whole = _identity(step.n_features_in_)
    for _, inner in step.steps:
        if inner is not None and not isinstance(inner, str):
            whole = _compose(affine_step(inner), whole)
    return whole


def _columns(step: Any) -> Affine:
    """A ColumnTransformer: affine blocks side by side, others taken as they come out."""
    blocks: list[tuple[Affine, list[int] | None, list[str]]] = []
    raw_names = list(
        getattr(step, "feature_names_in_", [f"x{i + 1}" for i in range(step.n_features_in_)])
    )
    out_names = list(step.get_feature_names_out())
    for name, transformer, columns in step.transformers_:
        where = step.output_indices_[name]
        if transformer == "drop" or where.start == where.stop:
            continue
        indices = column_indices(columns, raw_names)
        try:
            if isinstance(transformer, str):
                block = _identity(len(indices))
            else:
                block = affine_step(transformer)
            blocks.append((block, indices, [raw_names[i] for i in indices]))
        except NotAffineError:
            width = where.stop - where.start
            blocks.append((_identity(width), None, out_names[where]))
    t = np.concatenate([block.t for block, _, _ in blocks])
    if all(indices is not None for _, indices, _ in blocks):
        A = np.zeros((len(t), step.n_features_in_))
        row = 0
        for block, columns, _ in blocks:
            height = len(block.t)
            A[row : row + height, columns] = _matrix(block)
            row += height
        return Affine(_diagonal_if_it_is(A), t)
    names = [name for _, _, block_names in blocks for name in block_names]
    A = np.zeros((len(t), len(names)))
    row = column = 0
    for block, _, block_names in blocks:
        height, width = len(block.t), len(block_names)
        A[row : row + height, column : column + width] = _matrix(block)
        row, column = row + height, column + width
    return Affine(_diagonal_if_it_is(A), t, names)


def column_indices(columns: Any, names: list[str]) -> list[int]:
    """A ColumnTransformer's columns (names, indices, a slice, a mask) as indices."""
    every = np.arange(len(names))
    if isinstance(columns, str):
        return [names.index(columns)]
    if isinstance(columns, slice) and any(
        isinstance(end, str) for end in (columns.start, columns.stop)
    ):
        start = 0 if columns.start is None else names.index(columns.start)
        stop = len(names) if columns.stop is None else names.index(columns.stop) + 1
        return every[start : stop : columns.step].tolist()
    if isinstance(columns, slice):
        return every[columns].tolist()
    array = np.asarray(columns)
    if array.dtype.kind in "OUS":
        return [names.index(str(name)) for name in array]
    return np.atleast_1d(every[array]).tolist()


def _selection(kept: Array) -> Affine:
    if kept.all():
        return _identity(len(kept))
    return Affine(np.eye(len(kept))[kept], np.zeros(int(kept.sum())))


def _identity(n: int) -> Affine:
    return Affine(np.ones(n), np.zeros(n))


def _matrix(step: Affine) -> Array:
    return np.diag(step.A) if step.A.ndim == 1 else step.A


def _diagonal_if_it_is(A: Array) -> Array:
    if A.shape[0] == A.shape[1] and not (A - np.diag(np.diag(A))).any():
        return np.diag(A).copy()
    return A


def _compose(second: Affine, first: Affine) -> Affine:
    """second(first(u))."""
    if second.names is not None:
        raise NotAffineError("a step that is not affine stands inside a pipeline")
    if second.A.ndim == 1 and first.A.ndim == 1:
        return Affine(second.A * first.A, second.A * first.t + second.t)
    A = _matrix(second)
    return Affine(A @ _matrix(first), A @ first.t + second.t)


STEPS: dict[str, Callable[[Any], Affine]] = {
    "StandardScaler": _standard,
    "MinMaxScaler": _min_max,
    "MaxAbsScaler": _max_abs,
    "RobustScaler": _robust,
    "PCA": _pca,
    "IncrementalPCA": _pca,
    "TruncatedSVD": _svd,
    "SimpleImputer": _imputer,
    "FunctionTransformer": _function,
    "Pipeline": _pipeline,
    "ColumnTransformer": _columns,
    "FeatureUnion": _union,
}
