"""z_k = x'Q_k x for a batch of NumPy arrays, and its gradients, from the packed triangles of Q.

The loops are compiled; `kernels._quadratic_form_loops` describes them. The torch layers call the
same loops.
"""

import ctypes
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from quadric._utils.arrays import Array
from quadric._utils.blas_threads import blas_threads


def values(X: Array, packed: Array) -> Array:
    """z, shape (B, m), for X of shape (B, n) and packed of shape (n(n+1)/2, m)."""
    dtype = _dtype(X, packed)
    X, packed = _rows(X, dtype), np.ascontiguousarray(packed, dtype)
    z = np.empty((len(X), packed.shape[1]), dtype)
    _loops().write_values(_batch(X, packed.shape[1]), packed.ctypes.data, z.ctypes.data)
    return z


def input_gradient(X: Array, packed: Array, dz: Array) -> Array:
    """dL/dX, shape (B, n), from dL/dz, shape (B, m)."""
    dtype = _dtype(X, packed, dz)
    X, packed = _rows(X, dtype), np.ascontiguousarray(packed, dtype)
    dz, dX = np.ascontiguousarray(dz, dtype), np.empty(X.shape, dtype)
    addresses = packed.ctypes.data, dz.ctypes.data, dX.ctypes.data
    _loops().write_input_gradient(_batch(X, packed.shape[1]), *addresses)
    return dX


def packed_gradient(X: Array, dz: Array) -> Array:
    """dL/dpacked, shape (n(n+1)/2, m): the sum over the batch of dz_k M(x)."""
    dtype, n, m = _dtype(X, dz), X.shape[1], dz.shape[1]
    if len(X) == 0:
        return np.zeros((n * (n + 1) // 2, m), dtype)
    X, dz = _rows(X, dtype), np.ascontiguousarray(dz, dtype)
    gradient = np.empty((n * (n + 1) // 2, m), dtype)
    _loops().write_packed_gradient(_batch(X, m), dz.ctypes.data, gradient.ctypes.data)
    return gradient


def _dtype(*arrays: Array) -> np.dtype[Any]:
    """The dtype of the result: float32 if it can represent all arrays, float64 otherwise."""
    single = np.dtype(np.float32)
    return single if np.result_type(single, *arrays) == single else np.dtype(np.float64)


def _rows(X: Array, dtype: np.dtype[Any]) -> Array:
    """X in this dtype with contiguous rows; there may be gaps between the rows."""
    X = X.astype(dtype, copy=False)
    as_it_is = X.strides[1] == X.itemsize and X.strides[0] >= 0 and X.flags.aligned
    return X if as_it_is else np.ascontiguousarray(X)


def _batch(X: Array, m: int) -> Any:
    (B, n), stride = X.shape, X.strides[0] // X.itemsize
    threads = _TEAM.threads_for(B * n * (n + 1) // 2 * m)
    return _loops().Batch(X.dtype.name, B, n, m, X.ctypes.data, stride, threads, _TEAM.run)


@cache
def _loops() -> Any:
    from quadric.kernels import _compiling as compiling
    from quadric.kernels import _quadratic_form as quadratic_form  # imports numba

    if not compiling.ALLOWED:
        raise RuntimeError(compiling.FORBIDDEN)
    return quadratic_form


class PythonThreads:
    """Up to `count()` Python threads.

    New threads are started for each call, which takes about 50 µs. No thread outlives a call, so
    forked processes work.
    """

    worth = 2**22  # multiplications per thread, which take about 200 µs

    def __init__(self, count: Callable[[], int]) -> None:
        self.count = count

    def threads_for(self, work: int) -> int:
        """The number of threads to use for this number of multiplications."""
        return 1 if work < 2 * self.worth else min(self.count(), work // self.worth)

    def run(self, function: int, arguments: Any) -> None:
        """Call the function at the given address from as many threads as there are tickets."""
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)  # releases the GIL
        tickets = arguments[1]
        others = [threading.Thread(target=call, args=(arguments,)) for _ in range(tickets - 1)]
        for thread in others:
            thread.start()
        call(arguments)
        for thread in others:
            thread.join()


_TEAM = PythonThreads(blas_threads)
