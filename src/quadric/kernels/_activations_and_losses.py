"""The exponential, the activations, their slopes and the losses, on blocks of lanes.

`apply_elementwise` applies some of them to whole arrays.
"""

import math
from array import array
from collections import namedtuple

import numpy as np

from quadric.kernels._compiling import SharedLoop, block, inline
from quadric.kernels._lanes import (
    UNIT_BYTES,
    address,
    advance,
    integers,
    is_double,
    lane_count,
    larger,
    load,
    multiply_add,
    nearest_integer,
    power_of_two,
    product,
    smaller,
    splat,
    store,
    total,
    unless_nan,
    where_positive,
    zeros,
)
from quadric.kernels._layout import (
    BINARY_CROSS_ENTROPY,
    CROSS_ENTROPY,
    EXPONENTIAL,
    LOGISTIC,
    POISSON,
    RELU,
    SQUARED_ERROR,
    TANH,
)


@inline
def _expm1_and_power(x):
    """(expm1(r), 2**k) with x = k ln 2 + r and |r| <= ln(2)/2, so exp(x) = 2**k (1 + expm1(r))."""
    limit = splat(708.0, x) if is_double(x) else splat(87.0, x)
    x = larger(smaller(x, limit), splat(0.0, x) - limit)
    k = nearest_integer(x * splat(1.4426950408889634, x))
    # ln 2 in two pieces; the first has trailing zero bits, so that its product with k is exact
    if is_double(x):
        r = multiply_add(k, splat(-6.93147180369123816490e-01, x), x)
        r = multiply_add(k, splat(-1.90821492927058770002e-10, x), r)
        p = splat(1.0 / 6227020800.0, x)
        p = multiply_add(p, r, splat(1.0 / 479001600.0, x))
        p = multiply_add(p, r, splat(1.0 / 39916800.0, x))
        p = multiply_add(p, r, splat(1.0 / 3628800.0, x))
        p = multiply_add(p, r, splat(1.0 / 362880.0, x))
        p = multiply_add(p, r, splat(1.0 / 40320.0, x))
        p = multiply_add(p, r, splat(1.0 / 5040.0, x))
    else:
        r = multiply_add(k, splat(-0.693359375, x), x)
        r = multiply_add(k, splat(2.12194440e-4, x), r)
        p = splat(1.0 / 5040.0, x)
    p = multiply_add(p, r, splat(1.0 / 720.0, x))
    p = multiply_add(p, r, splat(1.0 / 120.0, x))
    p = multiply_add(p, r, splat(1.0 / 24.0, x))
    p = multiply_add(p, r, splat(1.0 / 6.0, x))
    p = multiply_add(p, r, splat(0.5, x))
    return multiply_add(p * r, r, r), power_of_two(k)


@inline
def exp(x):
    """exp(x), accurate to about one unit in the last place; out-of-range arguments are clamped."""
    e, power = _expm1_and_power(x)
    return multiply_add(e, power, power)


@inline
def activate(code, z):
    """g(z) for activations that act on each neuron separately; z for all others."""
    one = splat(1.0, z)
    if code == LOGISTIC:
        return one / (one + exp(splat(0.0, z) - z))
    if code == TANH:  # expm1(2z) / (expm1(2z) + 2), without cancellation for small z
        e, power = _expm1_and_power(z + z)
        e = multiply_add(e, power, power - one)
        return e / (e + splat(2.0, z))
    if code == RELU:
        return larger(z, splat(0.0, z))
    if code == EXPONENTIAL:
        return exp(z)
    return z


@inline
def times_slope(code, a, d):
    """d * g'(z), written with a = g(z)."""
    if code == LOGISTIC:
        return d * a * (splat(1.0, a) - a)
    if code == TANH:
        return d * (splat(1.0, a) - a * a)
    if code == RELU:
        return where_positive(a, d)
    return d


@block
def softmax(z, a, m, pad, zero):
    """Write a = softmax(z); return the largest z and the sum of exp(z - largest)."""
    peak = z[0]
    for k in range(1, m):
        peak = max(peak, z[k])
    for k in range(m, pad):
        z[k] = -math.inf  # padding adds nothing to the sum
    s = zero
    for col in range(0, pad, lane_count(zero)):
        e = exp(load(z, col, zero) - splat(peak, zero))
        store(a, col, e)
        s = s + e
    sum_exp = total(s)
    for col in range(0, pad, lane_count(zero)):
        store(a, col, load(a, col, zero) / splat(sum_exp, zero))
    return peak, sum_exp


# ---- losses --------------------------------------------------------------------------------

# A loss is value - log(likelihood). Likelihoods are multiplied, so that many losses share one
# logarithm.
LossTerms = namedtuple("LossTerms", "value likelihood")


@inline
def add_loss(total_loss, loss, weight):
    """total_loss + weight * loss."""
    value, likelihood = total_loss.value, total_loss.likelihood
    if weight == 1.0:
        value += loss.value
        likelihood *= loss.likelihood
        if likelihood < 1e-100:
            value -= math.log(likelihood)
            likelihood = 1.0
    else:
        value += weight * (loss.value - math.log(loss.likelihood))
    return LossTerms(value, likelihood)


@block
def loss_and_delta(loss, layer, work, y):
    """Write delta = dL/dz of the last layer, and return the loss."""
    m, pad, zero = layer.n_out, layer.pad, zeros(work, 1)
    z, a, delta = advance(work, layer.z), advance(work, layer.a), advance(work, layer.delta)
    for k in range(m):
        delta[k] = y[k]
    for k in range(m, pad):
        delta[k] = 1.0
    if loss == CROSS_ENTROPY:
        peak, sum_exp = softmax(z, a, m, pad, zero)
        value = 0.0
        for k in range(m):
            value += y[k] * (peak - z[k])
    if loss == POISSON:
        value = 0.0
        for k in range(m):
            value += a[k] - y[k] * (z[k] + 1.0)
            if y[k] > 0:
                value += y[k] * math.log(y[k])
    for k in range(m, pad):
        a[k] = 1.0  # padded lanes: delta 0, likelihood 1
    one = splat(1.0, zero)
    s, likely, likelihood, logs = zero, one, 1.0, 0.0
    for col in range(0, pad, lane_count(zero)):
        y_block, a_block = load(delta, col, zero), load(a, col, zero)
        d = a_block - y_block
        if loss == BINARY_CROSS_ENTROPY:
            # softplus(z) - y z, where softplus(z) = max(z, 0) - log max(a, 1 - a)
            z_block = load(z, col, zero)
            s = s + larger(z_block, zero) - y_block * z_block
            likely = likely * larger(a_block, one - a_block)
            if (col + lane_count(zero)) % 64 == 0:  # 64 factors >= 1/2 cannot underflow
                likelihood *= product(likely)
                likely = one
                if likelihood < 1e-150:
                    logs += math.log(likelihood)
                    likelihood = 1.0
        elif loss == SQUARED_ERROR:
            s = multiply_add(d * splat(0.5, zero), d, s)
            d = times_slope(layer.activation, a_block, d)
        store(delta, col, d)
    if loss == CROSS_ENTROPY:
        return LossTerms(value, 1.0 / sum_exp)
    if loss == POISSON:
        return LossTerms(value, 1.0)
    return LossTerms(total(s) - logs, likelihood * product(likely))


# ---- whole arrays --------------------------------------------------------------------------

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


def apply_elementwise(name: str, z: np.ndarray) -> np.ndarray:
    """Apply the named function to every number in a float32 or float64 array."""
    size, lanes = z.size, UNIT_BYTES // z.itemsize
    source = z.ravel()
    if size < lanes:
        source = np.concatenate([source, np.zeros(lanes - size, z.dtype)])
    result = np.empty_like(source)
    numbers = source.size, FUNCTIONS[name], source.ctypes.data, result.ctypes.data
    arguments = array("q", (0, 1, *numbers))
    call, _ = _apply.compiled_for(z.dtype)
    call(arguments.buffer_info()[0])
    return result[:size].reshape(z.shape)
