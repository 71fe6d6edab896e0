"""Dask collections: how they are recognized, and their parts."""

from typing import Any

import numpy as np

from quadric.utils import require


def is_collection(*values: Any) -> bool:
    """Whether one of the values is a Dask collection; raise ImportError without the extra."""
    if not any(hasattr(value, "__dask_graph__") for value in values):
        return False
    require("dask", "distributed", extra="dask", by="A Dask collection")
    return True


def check_absent(method: str, *values: Any) -> None:
    """Raise TypeError if one of the values is a Dask collection, which the method cannot use."""
    if is_collection(*values):
        raise TypeError(
            f"{method} does not accept Dask collections. Use fit, predict, predict_proba, "
            "decision_function or score, or pass one partition at a time: "
            "X.partitions[0].compute()."
        )


def is_frame(collection: Any) -> bool:
    """Whether a collection consists of pandas objects."""
    return hasattr(collection, "map_partitions")


def n_columns(X: Any) -> int:
    """The number of columns of a collection of rows."""
    if getattr(X, "ndim", 0) != 2:
        raise ValueError(
            "X must have two dimensions, rows and columns. Got a Dask collection with "
            f"{getattr(X, 'ndim', 0)}. Reshape it with X.reshape(-1, 1) if it has one column."
        )
    return int(X.shape[1])


def column_names(X: Any) -> list[str] | None:
    """The names of the columns, or None for arrays."""
    return [str(name) for name in X.columns] if is_frame(X) else None


def dtype_of(X: Any) -> np.dtype[Any]:
    """The dtype of the values as numbers: float32 if that holds all of them, else float64."""
    kinds = [X.dtype] if not is_frame(X) else list(X.dtypes)
    numbers = all(isinstance(kind, np.dtype) and kind.kind in "fiub" for kind in kinds)
    single = numbers and np.result_type(*kinds) in (np.float32, np.float16)
    return np.dtype(np.float32 if single else np.float64)


def parts_of(collection: Any) -> list[Any]:
    """Return one delayed object for each part of a collection, or for an array in memory."""
    from dask.delayed import delayed

    if not hasattr(collection, "__dask_graph__"):
        return [delayed(collection, pure=False)]
    if hasattr(collection, "chunks"):
        if collection.ndim == 2 and len(collection.chunks[1]) > 1:
            collection = collection.rechunk({1: -1})
        return list(collection.to_delayed().ravel())
    if not hasattr(collection, "to_delayed") or not is_frame(collection):
        raise TypeError(
            "X, y and sample_weight must be Dask arrays, dataframes or series. "
            f"Got {type(collection).__name__}. Convert a bag with to_dataframe()."
        )
    return list(collection.to_delayed())
