"""z_k = x'Q_k x for a batch in a NumPy array, and its gradients, from the packed triangles of Q.

The upper triangles of m symmetric matrices are stored side by side in one array `packed` of shape
(n(n+1)/2, m): row p holds the entries q_ij of all m matrices for the p-th pair i <= j.

    p     0     1     2    ...   n-1    n    n+1   ...
    pair  (1,1) (1,2) (1,3) ... (1,n) (2,2) (2,3)  ...

The loops are compiled; `kernels` describes them. The torch layers call the
same loops.
"""

from functools import cache, lru_cache
from typing import Any

import numpy as np

from quadric import kernels
from quadric.checks import Array
from quadric.utils import loop_threads

DTYPES = np.dtype(np.float32), np.dtype(np.float64)


def n_inputs(pairs: int) -> int:
    """The number of inputs n for the given number of pairs i <= j.

    >>> n_inputs(6)
    3
    """
    n = int((2 * pairs) ** 0.5)
    if n * (n + 1) // 2 != pairs:
        raise ValueError(f"packed must have n(n+1)/2 rows for some n. Got {pairs} instead.")
    return n


def pack(Q: Array) -> Array:
    """The triangles, shape (n(n+1)/2, m), of symmetric matrices of shape (m, n, n).

    >>> pack(np.array([[[1.0, 2.0], [2.0, 3.0]]])).T
    array([[1., 2., 3.]])
    """
    return np.ascontiguousarray(Q.reshape(len(Q), -1)[:, _places(Q.shape[-1])[0]].T)


def unpack(packed: Array) -> Array:
    """The symmetric matrices, shape (m, n, n), that have the given triangles."""
    pairs, m = packed.shape
    n = n_inputs(pairs)
    return np.ascontiguousarray(packed.T)[:, _places(n)[1]].reshape(m, n, n)


@lru_cache(maxsize=8)
def _places(n: int) -> tuple[Array, Array]:
    """Positions of the triangle's entries in the matrix, and of the matrix's in the triangle."""
    rows, columns = np.triu_indices(n)
    of_matrix = np.empty((n, n), dtype=np.intp)
    of_matrix[rows, columns] = of_matrix[columns, rows] = np.arange(len(rows))
    return rows * n + columns, of_matrix.ravel()


def term_variances(slopes: Array, products: Array, std: Array) -> tuple[Array, Array]:
    """Variances of slopes_i d_i and of products_ij d_i d_j for independent normal d.

    The d_i have mean 0 and standard deviation std_i, so that d_i^2 has variance 2 std_i^4 and
    d_i d_j has variance std_i^2 std_j^2. All these terms are uncorrelated, so the variance of their
    sum is the sum of their variances. `products` is upper triangular.
    """
    squares = std**2
    factors = np.outer(squares, squares)
    np.fill_diagonal(factors, 2 * squares**2)
    return slopes**2 * squares, products**2 * factors


def monomial_coefficients(Q: Array) -> Array:
    """Coefficients of x_i x_j, i <= j, in x'Qx: upper triangular, q_ii and 2 q_ij."""
    return np.triu(Q) + np.triu(Q, 1)


def values(X: Array, packed: Array) -> Array:
    """z, shape (B, m), for X of shape (B, n) and packed of shape (n(n+1)/2, m)."""
    X, packed = _prepared(X, packed)
    z = np.empty((len(X), packed.shape[1]), X.dtype)
    _run(kernels.values, X, packed, z, None, None)
    return z


def gradients(
    X: Array, packed: Array, dz: Array, *, inputs: bool = True
) -> tuple[Array | None, Array]:
    """dL/dX, shape (B, n), and dL/dpacked, shape (n(n+1)/2, m), from dL/dz, shape (B, m).

    Without `inputs`, dL/dX is None.
    """
    X, packed, dz = _prepared(X, packed, dz)
    if dz.shape != (len(X), packed.shape[1]):
        raise ValueError(f"dz must have shape {(len(X), packed.shape[1])}. Got {dz.shape} instead.")
    dX = np.empty(X.shape, X.dtype) if inputs else None
    if len(X) == 0:
        return dX, np.zeros(packed.shape, X.dtype)
    dP = np.empty(packed.shape, X.dtype)
    _run(kernels.gradients, X, packed, dz, dX, dP)
    return dX, dP


def weighted_products(X: Array, D: Array) -> Array:
    """2 sum_b d_bk x_bi x_bj for the pairs i < j, and half of that for i = j.

    The shape is (n(n+1)/2, m) for X of shape (B, n) and D of shape (B, m), as for `packed`.
    """
    X, D = _prepared(X, D)
    found = np.empty((X.shape[1] * (X.shape[1] + 1) // 2, D.shape[1]), X.dtype)
    _run(kernels.gradients, X, found, D, None, found)  # without dL/dX, the loop does not read Q
    return found


def _prepared(X: Array, *others: Array) -> list[Array]:
    """Return X with contiguous rows, possibly with gaps between them, and the others contiguous.

    The common dtype is float32 if it can represent every array, and float64 otherwise.
    """
    if X.dtype in DTYPES and all(a.dtype == X.dtype and a.flags.c_contiguous for a in (X, *others)):
        return [X, *others]
    single = np.result_type(np.float32, X, *others) == np.float32
    dtype = np.dtype(np.float32 if single else np.float64)
    X = X.astype(dtype, copy=False)
    as_it_is = X.strides[1] == X.itemsize and X.strides[0] >= 0 and X.flags.aligned
    return [
        X if as_it_is else np.ascontiguousarray(X),
        *(np.ascontiguousarray(array, dtype) for array in others),
    ]


def _run(loop: Any, X: Array, packed: Array, *others: Array | None) -> None:
    sizes = *X.shape, packed.shape[1], X.strides[0] // X.itemsize
    addresses = [0 if array is None else array.ctypes.data for array in (X, packed, *others)]
    kernels.run_quadratic_form(loop, _team(), X.dtype, sizes, addresses)


@cache
def _team() -> Any:
    return kernels.PythonThreads(loop_threads)
