"""The rounding errors of the steps of a pipeline.

A step computes in the coarsest of the precisions of its input, its fitted arrays and its own
parameter `dtype`: scikit-learn subtracts a mean that was fitted in float32 from data in float64
only after multiplying it in float32. The precision of the output, which the next step receives, is
not finer than that.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from quadric.checks import Array
from quadric.models import Affine, Beside, Impute, Operation

# from the coarsest to the finest; pyarrow has names of its own
PRECISIONS = {
    "float16": ("float16", "halffloat[pyarrow]"),
    "float32": ("float32", "float[pyarrow]"),
}


def coarsest(dtypes: Iterator[Any] | Sequence[Any]) -> np.dtype[Any]:
    """The least precise of the floating-point dtypes; float64 if there is none below it."""
    names = {str(dtype).lower().removeprefix("torch.") for dtype in dtypes}
    for name, spellings in PRECISIONS.items():
        if names & set(spellings):
            return np.dtype(name)
    return np.dtype(np.float64)


def precision_of(X: Any) -> np.dtype[Any]:
    """The least precise floating-point dtype of the columns of X."""
    if hasattr(X, "dtypes"):  # a table
        return coarsest(list(X.dtypes))
    return coarsest([X.dtype if hasattr(X, "dtype") else np.asarray(X).dtype])


def precision_after(step: Any, before: np.dtype[Any]) -> np.dtype[Any]:
    """The precision in which a fitted step computes, given that of its input."""
    return coarsest([before, *_dtypes(step)])


def _dtypes(part: Any) -> Iterator[Any]:
    """The dtypes of the arrays in a step and in the steps inside it, and its parameter `dtype`."""
    if isinstance(part, np.ndarray):
        yield part.dtype
    elif isinstance(part, (list, tuple)):
        for entry in part:
            yield from _dtypes(entry)
    elif hasattr(part, "get_params") and not isinstance(part, type):
        if getattr(part, "dtype", None) is not None:
            yield np.dtype(part.dtype)
        yield from _dtypes(list(vars(part).values()))


def unit_roundoff(precision: np.dtype[Any]) -> float:
    """The largest relative error of an operation."""
    return float(np.finfo(precision).eps) / 2


def underflow(precision: np.dtype[Any]) -> float:
    """The largest absolute error of an operation that underflows.

    The processor may be set to replace subnormal numbers by zero, except in float16, for which it
    has no arithmetic.
    """
    limits = np.finfo(precision)
    return float(limits.smallest_subnormal if precision == np.float16 else limits.tiny)


def roundings(operations: Sequence[Operation]) -> int:
    """The largest number of roundings between an input and an output of the operations."""
    count = 0
    for operation in operations:
        match operation:
            case Affine(A=A):  # a sum over the inputs, a center, a shift, and the fitted numbers
                count += 8 + (A.shape[1] if A.ndim == 2 else 0)
            case Impute():  # a fill value is rounded to the dtype of X
                count += 1
            case Beside(branches=branches):
                count += max([roundings(branch.operations) for branch in branches], default=0)
    return count


def check_factors(operations: Sequence[Operation], precision: np.dtype[Any], name: str) -> None:
    """Raise ValueError if a step multiplies by factors that the precision cannot represent.

    scikit-learn rounds a scale to the dtype of X. A scale that becomes infinite or subnormal then
    changes the outputs by more than any bound on rounding errors.
    """
    limits = np.finfo(precision)
    for operation in operations:
        match operation:
            case Affine(A=A) if A.ndim == 1 and precision != np.float64:
                factors = np.abs(A[(A != 0) & ~np.isnan(A)])
                sizes: Array = np.concatenate([factors, 1 / factors])
                if ((sizes > limits.max) | (sizes < limits.tiny)).any():
                    raise ValueError(
                        f"{name} scales by factors that {precision} cannot represent, so its "
                        "outputs have no proven precision. Pass X in float64."
                    )
            case Beside(branches=branches):
                for branch in branches:
                    check_factors(branch.operations, precision, name)
