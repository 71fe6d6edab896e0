"""Checks of arguments: numbers, choices, generators and arrays, with uniform error messages."""

import contextlib
import operator
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quadric.errors import expect

__all__ = [
    "CANCELLED",
    "FLOAT64",
    "Array",
    "Matrix",
    "as_csr",
    "as_dtype",
    "as_generator",
    "as_inputs",
    "as_numbers",
    "as_offset",
    "as_targets",
    "as_vector",
    "as_weights",
    "check_choice",
    "check_flag",
    "check_indices",
    "check_integer",
    "check_number",
    "expect",
    "flushed",
    "is_sparse",
    "subtract",
    "unmasked",
]

Array: TypeAlias = NDArray[Any]
Matrix: TypeAlias = Any  # a two-dimensional Array or a scipy.sparse CSR matrix
FLOAT64 = np.dtype(np.float64)
CANCELLED = 64 * float(np.finfo(FLOAT64).eps)
WORTH_FLUSHING = 1000  # numbers


def check_number(
    name: str,
    value: Any,
    *,
    at_least: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> float:
    """Return a finite real number within the bounds."""
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    good = real and abs(value) <= sys.float_info.max  # integers may be too large for a float
    wanted = "a finite number"
    for bound, words, holds in (
        (at_least, "of at least", operator.ge),
        (above, "above", operator.gt),
        (below, "and below", operator.lt),
    ):
        if bound is not None:
            wanted += f" {words} {bound:g}"
            good = good and holds(value, bound)
    if not good:
        raise _error(name, wanted, value, real)
    return float(value)


def check_integer(name: str, value: Any, *, at_least: int) -> int:
    """Return a whole number of at least `at_least`."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not (whole and value >= at_least):
        raise _error(name, f"a whole number of at least {at_least}", value, whole)
    return int(value)


def check_flag(name: str, value: Any) -> bool:
    """Return True or False; numbers are not accepted."""
    expect(isinstance(value, (bool, np.bool_)), _error(name, "True or False", value, False))
    return bool(value)


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return a value that is one of `choices`."""
    choices = list(choices)
    if isinstance(value, str) and value in choices:
        return value
    raise _error(name, "one of " + ", ".join(map(repr, choices)), value, True)


def axis_names(names: Sequence[str] | None, n: int) -> list[str]:
    """The names of n coordinates, checked; by default x, y, z or, if n > 3, x1, x2, ..."""
    if names is None:
        return list("xyz"[:n]) if n <= 3 else [f"x{i + 1}" for i in range(n)]
    if len(names) != n:
        raise ValueError(f"names must hold {n} names, one per coordinate. Got {len(names)}.")
    return [str(name) for name in names]


def as_generator(rng: Any) -> np.random.Generator:
    """Return a NumPy generator for a seed, a generator, or None (fresh entropy)."""
    if isinstance(rng, np.random.Generator):
        return rng
    seed = isinstance(rng, (int, np.integer)) and not isinstance(rng, bool)
    if rng is None or (seed and rng >= 0):
        return np.random.default_rng(rng if rng is None else int(rng))
    raise _error("rng", "a non-negative whole number, a numpy.random.Generator or None", rng, True)


def _error(name: str, wanted: str, value: Any, right_type: bool) -> Exception:
    kind = ValueError if right_type else TypeError
    return kind(f"{name} must be {wanted}. Got {value!r} instead.")


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """Return float32 or float64 as a NumPy dtype."""
    with contextlib.suppress(TypeError):
        if np.dtype(dtype) in (np.float32, np.float64):
            return np.dtype(dtype)
    raise ValueError(f"dtype must be 'float32' or 'float64'. Got {dtype!r} instead.")


def as_numbers(name: str, value: Any, dtype: np.dtype[Any]) -> Array:
    """Convert `value` to a finite array of `dtype`; error messages refer to it as `name`."""
    try:
        array = np.asarray(unmasked(name, value))
    except ValueError as error:
        raise ValueError(f"{name} must be a rectangular array of numbers: {error}") from None
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"{name} must hold numbers. Got other objects instead.") from None
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers. Got dtype {array.dtype} instead.")
    with np.errstate(over="ignore"):
        array = np.asarray(array, dtype=dtype, order="C")
    _refuse_non_finite(name, array, dtype)
    return array


def unmasked(name: str, value: Any) -> Any:
    """Return the value; raise TypeError for a masked array, whose mask NumPy would ignore."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name} must not be a masked array; fill it first: {name}.filled(...).")
    return value


def _refuse_non_finite(name: str, array: Array, dtype: np.dtype[Any]) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(array.sum(dtype=np.float64)):  # one cheap pass suffices in the usual case
            return
    finite = np.isfinite(array)
    if not finite.all():
        index = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise ValueError(
            f"{name} must be finite in {dtype.name}. Got {array[index]} at index {index}; "
            "remove or impute such entries first."
        )


def is_sparse(X: Any) -> bool:
    """Return whether X is a sparse matrix or array of SciPy."""
    from scipy import sparse

    return bool(sparse.issparse(X))


def as_inputs(name: str, X: Any, n: int, dtype: np.dtype[Any]) -> Matrix:
    """Convert X to a C-contiguous array or a canonical CSR matrix of shape (samples, n)."""
    matrix: Matrix = X if is_sparse(X) else as_numbers(name, X, dtype)
    expect(
        len(matrix.shape) == 2 and matrix.shape[1] == n,
        ValueError(
            f"{name} must have shape (n_samples, {n}), one column for each input of the network. "
            f"Got shape {tuple(matrix.shape)} instead."
        ),
    )
    if is_sparse(X):
        matrix = as_csr(name, X, dtype)
        _refuse_non_finite(name, matrix.data, dtype)
    return matrix


def as_csr(name: str, X: Any, dtype: np.dtype[Any]) -> Matrix:
    """Convert X to a CSR matrix with valid, sorted indices and no duplicates."""
    from scipy import sparse

    check_indices(name, X)
    expect(
        X.dtype.kind in "fiub",
        TypeError(f"{name} must hold real numbers. Got dtype {X.dtype} instead."),
    )
    with np.errstate(over="ignore"):
        csr = sparse.csr_array(X, dtype=dtype)  # shares X's arrays where possible
    # In a new matrix with the same arrays, SciPy recomputes the flags instead of trusting old ones.
    end = csr.indptr[-1]
    csr = sparse.csr_array((csr.data[:end], csr.indices[:end], csr.indptr), shape=csr.shape)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


def check_indices(name: str, X: Any) -> None:
    """Raise ValueError if a sparse matrix has indices outside its shape.

    SciPy creates such matrices without raising an error, but compiled code, including SciPy's own
    conversions, would read outside the arrays. SciPy's check_format is not sufficient, because it
    accepts any row offsets if the last one is 0.
    """
    if X.format not in ("csr", "csc", "bsr") or len(X.shape) != 2:
        return
    blocks = X.blocksize if X.format == "bsr" else (1, 1)
    n_rows, n = (size // block for size, block in zip(X.shape, blocks, strict=True))
    if X.format == "csc":
        n_rows, n = n, n_rows
    starts, columns = X.indptr, X.indices
    valid = (
        len(starts) == n_rows + 1
        and starts[0] == 0
        and (np.diff(starts) >= 0).all()
        and starts[-1] <= min(len(columns), len(X.data))
        and (starts[-1] == 0 or columns[: starts[-1]].min() >= 0)
        and (starts[-1] == 0 or columns[: starts[-1]].max() < n)
    )
    expect(
        valid,
        ValueError(
            f"{name} must be a valid {X.format.upper()} matrix. Got indices outside its "
            f"{X.shape[0]} rows and {X.shape[1]} columns; call its check_format() method for "
            "details, and create it again."
        ),
    )


def as_targets(name: str, Y: Any, n_samples: int, m: int, dtype: np.dtype[Any]) -> Array:
    """Convert Y to shape (n_samples, m); if m is 1, Y may be a vector."""
    expect(
        not is_sparse(Y),
        TypeError(f"{name} must be a dense array. Got a sparse matrix; use {name}.toarray()."),
    )
    targets = as_numbers(name, Y, dtype)
    if targets.ndim == 1 and m == 1:
        targets = targets[:, None]
    if targets.shape != (n_samples, m):
        hint = "; turn class labels into rows with np.eye(n_classes)[labels]" if m > 1 else ""
        raise ValueError(
            f"{name} must have shape ({n_samples}, {m}), one row for each row of X and one column "
            f"for each neuron of the last layer. Got shape {targets.shape} instead{hint}."
        )
    return targets


def as_vector(name: str, value: Any, length: int, dtype: np.dtype[Any]) -> Array:
    """Convert a number or a vector to a finite vector of the given length."""
    vector = as_numbers(name, value, dtype)
    if vector.ndim == 0:
        return np.full(length, vector, dtype=dtype)
    if vector.shape != (length,):
        raise ValueError(
            f"{name} must be a number or have shape ({length},). Got shape {vector.shape} instead."
        )
    return vector


def subtract(a: Any, b: Any) -> Array:
    """a - b, with zeros where only rounding errors remain."""
    difference = np.asarray(a - b)
    size = float(np.abs(a).max() + np.abs(b).max())
    return np.where(np.abs(difference) <= CANCELLED * size, 0.0, difference)


def as_offset(offset: Any, n: int, dtype: np.dtype[Any]) -> Array | None:
    """Convert the constant that is added to every input; None is returned unchanged."""
    return None if offset is None else as_vector("offset", offset, n, dtype)


def as_weights(sample_weight: Any, n_samples: int, dtype: np.dtype[Any]) -> Array | None:
    """Convert sample weights, which must not be negative; None is returned unchanged."""
    if sample_weight is None:
        return None
    weights = as_vector("sample_weight", sample_weight, n_samples, dtype)
    if (weights < 0).any():
        raise ValueError(
            f"sample_weight must not be negative. Got {weights.min()} at index {weights.argmin()}."
        )
    return weights


def flushed(array: Array) -> Array:
    """Return the array with zeros in place of denormal numbers; a small array is returned as it is.

    On some processors, matrix products with denormal numbers take many times as long. Products with
    small arrays take less time than the search for denormal numbers.
    """
    if array.size < WORTH_FLUSHING:
        return array
    denormal = np.abs(array) < np.finfo(array.dtype).tiny
    return np.where(denormal, array.dtype.type(0), array) if denormal.any() else array
