"""Predictions for the rows of a Dask collection, computed when they are needed."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from quadric.checks import Array
from quadric.cluster._collections import is_frame, n_columns
from quadric.cluster._parts import plain


def lazily(method: Callable[[Any], Array], X: Any) -> Any:
    """Return `method(X)` as a Dask array with one chunk for each partition of X.

    Parameters
    ----------
    method : callable
        A method of a fitted model, such as ``pipeline.predict_proba``, whose result has one row for
        each row and a dtype that does not depend on the rows.
    X : Dask array or dataframe
        Chunks along the columns are joined. Unknown chunk sizes remain unknown.

    Returns
    -------
    Dask array
        Nothing is computed, apart from the prediction for one row, which shows the dtype. This
        row is invented; if it is refused, the first row is read.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from quadric import QuadraticLogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> model = QuadraticLogisticRegression().fit(X, X[:, 0] > X[:, 1] ** 2)
    >>> found = lazily(model.predict_proba, da.from_array(X, chunks=(30, 1)))
    >>> found.dtype, found.chunks
    (dtype('float64'), ((30, 30, 30, 10), (2,)))
    """
    import dask.array
    from dask.delayed import delayed

    da: Any = dask.array
    if not is_frame(X):
        width = n_columns(X)
        X = X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X
        one = method(np.zeros((1, width), X.dtype))
        columns = {"chunks": (X.chunks[0], (one.shape[1],))} if one.ndim == 2 else {"drop_axis": 1}
        predict = partial(predicted, method, one[:0])
        return X.map_blocks(predict, dtype=one.dtype, meta=one[:0], **columns)
    try:
        one = method(plain(X._meta_nonempty.iloc[:1]))
    except ValueError:  # an encoder does not know the categories of this invented row
        one = method(plain(X.head(1, npartitions=-1)))
    predict = delayed(partial(predicted, method, one[:0]), pure=True)
    shape = (np.nan, *one.shape[1:])
    parts = [da.from_delayed(predict(part), shape, meta=one[:0]) for part in X.to_delayed()]
    return da.concatenate(parts, allow_unknown_chunksizes=True)


def predicted(method: Callable[[Any], Array], empty: Array, part: Any) -> Array:
    """Return the predictions for a part, which may have no rows."""
    return method(plain(part)) if part.shape[0] else empty
