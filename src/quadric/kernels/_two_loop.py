"""The two-loop recursion of L-BFGS."""

import numba
import numpy as np

from quadric.kernels._compiling import JIT_ALLOWED, SharedLoop, block
from quadric.kernels._lanes import address, integers

# Positions of the arguments after the counter and the number of tickets, which is 1: three numbers,
# and the addresses of five arrays.
SIZE, PAIRS, COUNT, FIRST_ARRAY = 2, 3, 4, 5


@block
def _dot(a, b):
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@block
def _add(a, factor, b):
    for i in range(len(a)):
        a[i] += factor * b[i]


@block
def _recursion(S, Y, count, gradient, direction, alpha):
    n, pairs = len(gradient), len(S)
    for i in range(n):
        direction[i] = -gradient[i]
    for k in range(count - 1, max(count - pairs, 0) - 1, -1):
        row = k % pairs
        alpha[row] = _dot(S[row], direction) / _dot(S[row], Y[row])
        _add(direction, -alpha[row], Y[row])
    if count > 0:
        last = (count - 1) % pairs
        gamma = _dot(S[last], Y[last]) / _dot(Y[last], Y[last])
        for i in range(n):
            direction[i] *= gamma
    for k in range(max(count - pairs, 0), count):
        row = k % pairs
        beta = _dot(Y[row], direction) / _dot(S[row], Y[row])
        _add(direction, alpha[row] - beta, S[row])


@SharedLoop
def _run(like, ticket):
    given = integers(like)
    n, pairs = given[SIZE], given[PAIRS]
    S = numba.carray(address(given[FIRST_ARRAY], like), (pairs, n))
    Y = numba.carray(address(given[FIRST_ARRAY + 1], like), (pairs, n))
    gradient = numba.carray(address(given[FIRST_ARRAY + 2], like), (n,))
    direction = numba.carray(address(given[FIRST_ARRAY + 3], like), (n,))
    alpha = numba.carray(address(given[FIRST_ARRAY + 4], like), (pairs,))
    _recursion(S, Y, given[COUNT], gradient, direction, alpha)


def two_loop(S: np.ndarray, Y: np.ndarray, count: int, gradient: np.ndarray) -> np.ndarray:
    """Return -H g, where H approximates the inverse Hessian by the last pairs (s, y).

    Pair k, from 0 to count - 1, is in row k % len(S). Of more than len(S) pairs, the last are used.
    """
    direction, alpha = np.empty_like(gradient), np.empty(len(S), gradient.dtype)
    arrays = S, Y, gradient, direction, alpha
    if not JIT_ALLOWED:  # linear layers can be trained without compiled code, if slowly
        _recursion(S, Y, count, *arrays[2:])
        return direction
    places = [array.ctypes.data for array in arrays]
    arguments = np.array([0, 1, len(gradient), len(S), count, *places], np.int64)
    call, _ = _run.compiled_for(gradient.dtype)
    call(arguments.ctypes.data)
    return direction
