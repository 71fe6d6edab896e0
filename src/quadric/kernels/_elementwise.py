"""exp, logistic and tanh for whole arrays, computed in SIMD registers."""

import numpy as np

from quadric.kernels._activations import activate, exp
from quadric.kernels._compiling import SharedLoop, inline
from quadric.kernels._lanes import (
    UNIT_BYTES,
    address,
    integers,
    is_double,
    lane_count,
    load,
    splat,
    store,
    unless_nan,
    where_positive,
    zeros,
)
from quadric.kernels._layout import LOGISTIC, TANH

EXP = -1
FUNCTIONS = {"exp": EXP, "logistic": LOGISTIC, "tanh": TANH}

# Positions of the arguments after the counter and the number of tickets, which is 1.
SIZE, FUNCTION, SOURCE, RESULT = 2, 3, 4, 5


@inline
def _exp_or_zero(z):
    """exp(z), or 0 where the result is too small to be a normal number."""
    limit = splat(708.0, z) if is_double(z) else splat(87.0, z)
    return where_positive(z + limit, exp(z))


@SharedLoop
def _apply(like, ticket):
    given = integers(like)
    source, result = address(given[SOURCE], like), address(given[RESULT], like)
    zero = zeros(like, 1)
    last = given[SIZE] - lane_count(zero)
    for start in range(0, given[SIZE], lane_count(zero)):
        at = min(start, last)  # the last block overlaps the previous one
        z = load(source, at, zero)
        if given[FUNCTION] == EXP:
            store(result, at, unless_nan(z, _exp_or_zero(z)))
        else:
            store(result, at, unless_nan(z, activate(given[FUNCTION], z)))


def apply(name: str, z: np.ndarray) -> np.ndarray:
    """Apply the named function to every number in a float32 or float64 array."""
    size, lanes = z.size, UNIT_BYTES // z.itemsize
    source = z.ravel()
    if size < lanes:
        source = np.concatenate([source, np.zeros(lanes - size, z.dtype)])
    result = np.empty_like(source)
    numbers = source.size, FUNCTIONS[name], source.ctypes.data, result.ctypes.data
    arguments = np.array([0, 1, *numbers], np.int64)
    call, _ = _apply.compiled_for(z.dtype)
    call(arguments.ctypes.data)
    return result[:size].reshape(z.shape)
