"""What the estimators ask of their data and settings before they begin."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from quadric.arrays import Array, Matrix
from quadric.layers import LAYERS

__all__ = ["as_hidden_sizes", "as_layer_kinds", "as_samples", "warn_about_scales"]

LARGEST_SPREAD = 1e3


def as_hidden_sizes(hidden_layer_sizes: Any) -> list[int]:
    """The widths of the hidden layers; a single number is one layer, () is none."""
    sizes = list(np.atleast_1d(np.asarray(hidden_layer_sizes, dtype=object)).ravel())
    for size in sizes:
        if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size <= 0:
            raise ValueError(f"hidden_layer_sizes must be > 0, got {hidden_layer_sizes}.")
    return [int(size) for size in sizes]


def as_layer_kinds(layer_kinds: Any, n_hidden: int) -> list[str]:
    """One kind for each layer: 'auto' is linear hidden layers and a quadratic output layer."""
    if isinstance(layer_kinds, str):
        if layer_kinds == "auto":
            return ["linear"] * n_hidden + ["quadratic"]
        kinds = [layer_kinds] * (n_hidden + 1)
    else:
        kinds = list(layer_kinds)
    if len(kinds) != n_hidden + 1 or not all(kind in LAYERS for kind in kinds):
        known = ", ".join(map(repr, LAYERS))
        raise ValueError(
            f"layer_kinds must be 'auto', one of {known}, or a sequence of them of length "
            f"{n_hidden + 1} (hidden layers and output). Got {layer_kinds!r} instead."
        )
    return kinds


def as_samples(X: Matrix, dtype: np.dtype[Any]) -> Matrix:
    """Validated data as the network takes it: C-contiguous, or canonical CSR."""
    if sparse.issparse(X):
        X = sparse.csr_array(X, dtype=dtype)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return X
    return np.ascontiguousarray(X, dtype=dtype)


def warn_about_scales(X: Matrix, where: str) -> None:
    """Quadratic neurons square what they get: features of very different size need scaling."""
    spread = _standard_deviations(X)
    spread = spread[spread > 0]
    if spread.size > 1 and spread.max() > LARGEST_SPREAD * spread.min():
        warnings.warn(
            f"The features' standard deviations differ by a factor of "
            f"{spread.max() / spread.min():.1e}. Quadratic neurons square their inputs: put a "
            f"StandardScaler in front, make_pipeline(StandardScaler(), {where}()).",
            UserWarning,
            stacklevel=4,
        )


def _standard_deviations(X: Matrix) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        if sparse.issparse(X):
            mean = np.asarray(X.mean(axis=0)).ravel()
            squares = np.asarray(X.multiply(X).mean(axis=0)).ravel()
            deviations = np.sqrt(np.maximum(squares - mean**2, 0))
        else:
            deviations = X.std(axis=0, dtype=np.float64)
    return deviations[np.isfinite(deviations)]
