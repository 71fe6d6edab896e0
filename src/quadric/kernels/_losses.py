"""The loss of a sample, its derivative with respect to z, and the sum of losses over samples."""

import math
from collections import namedtuple

from quadric.kernels._activations import softmax, times_slope
from quadric.kernels._compiling import block, inline
from quadric.kernels._lanes import (
    advance,
    lane_count,
    larger,
    load,
    multiply_add,
    product,
    splat,
    store,
    total,
    zeros,
)
from quadric.kernels._layout import BINARY_CROSS_ENTROPY, CROSS_ENTROPY, POISSON, SQUARED_ERROR

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
