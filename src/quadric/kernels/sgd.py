"""The compiled loop of per-sample SGD: one routine per dtype for every architecture.

It takes arrays and numbers, updates in place and returns numbers: no strings, no allocation, no
Python object in the loop.

How the numbers lie in memory, so that every inner loop is a run of whole SIMD registers:

- Weights are stored input-major: row ``i`` of ``W`` holds the weights from input ``i`` to all
  ``m`` neurons, padded with zeros to ``pad`` (a multiple of one register). A sparse input then
  touches only the rows of its non-zero features.
- ``Q`` is stored as its upper triangle, one padded row of ``m`` values for each pair i <= j:
  half the memory of the square, and symmetric by construction.
- A layer's inputs are always a list of (index, value): the non-zero features of a sample for
  the first layer, all activations (index 0, 1, 2, ...) for the others.
- With L2 the weights are ``scale`` times what is stored: a step shrinks one number instead of
  every weight, so untouched rows stay untouched.
- With an input offset ``o`` the first layer's weights are ``W = W~ + u o'`` and ``r = W~ o`` is
  kept, so that ``x = s + o`` costs as much as the sparse ``s``.
"""

from __future__ import annotations

import math

import numba

from quadric.kernels.compiling import EntryPoint, block, inline
from quadric.kernels.lanes import (
    advance,
    all_finite,
    count_bits,
    is_double,
    lane_count,
    larger,
    load,
    lowest_bit,
    multiply_add,
    nearest_integer,
    nonzero_mask,
    pointer,
    power_of_two,
    product,
    smaller,
    splat,
    store,
    total,
    where_positive,
    zeros,
)

# Codes that stand for names inside the compiled code.
LINEAR, QUADRATIC, REDUCED = 0, 1, 2
IDENTITY, LOGISTIC, TANH, RELU, SOFTMAX = 0, 1, 2, 3, 4
BINARY_CROSS_ENTROPY, CROSS_ENTROPY, SQUARED_ERROR = 0, 1, 2

# Columns of the layer table. Capital letters are offsets into `theta` (parameters) up to C_R and
# into `work` (the sample at hand) after it.
(
    KIND, N_IN, N_OUT, PAD, ACTIVATION,
    W, B, Q, U, C,
    W_U, W_R, U_U, U_R,
    INPUT, INPUT_AT, V, V1, V2, Z, A, DELTA, MONOMIALS,
) = range(23)  # fmt: skip
TABLE_COLUMNS = 23

# What a finished epoch reports, see `sgd_epoch`.
STOPPED_AT, STOPPED_LAYER = 0, 1


# --------------------------------------------------------------------------------------------
# Functions of a block
# --------------------------------------------------------------------------------------------


@inline
def _expm1_and_power(x):
    """(expm1(r), 2**k) with x = k ln 2 + r and |r| <= ln(2)/2, so exp(x) = 2**k (1 + expm1(r))."""
    limit = splat(708.0, x) if is_double(x) else splat(87.0, x)
    x = larger(smaller(x, limit), splat(0.0, x) - limit)
    k = nearest_integer(x * splat(1.4426950408889634, x))
    # ln 2 in two pieces, the first with trailing zero bits, so that k * piece is exact
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
def _exp(x):
    """exp(x), to about one unit in the last place; arguments beyond the range are clamped."""
    e, power = _expm1_and_power(x)
    return multiply_add(e, power, power)


@inline
def _activate(code, z):
    """g(z) for the activations that look at one neuron at a time."""
    one = splat(1.0, z)
    if code == LOGISTIC:
        return one / (one + _exp(splat(0.0, z) - z))
    if code == TANH:  # expm1(2z) / (expm1(2z) + 2), without cancellation at small z
        e, power = _expm1_and_power(z + z)
        e = multiply_add(e, power, power - one)
        return e / (e + splat(2.0, z))
    if code == RELU:
        return larger(z, splat(0.0, z))
    return z


@inline
def _times_slope(code, a, d):
    """d * g'(z), written with a = g(z)."""
    if code == LOGISTIC:
        return d * a * (splat(1.0, a) - a)
    if code == TANH:
        return d * (splat(1.0, a) - a * a)
    if code == RELU:
        return where_positive(a, d)
    return d


# --------------------------------------------------------------------------------------------
# One block of neurons of one layer
#
# `layer` points at the layer's row of the table, `where` and `x` at its list of inputs
# (indices and values), `col` is the block's first neuron.
# --------------------------------------------------------------------------------------------


@inline
def _pair_row(i, n):
    """p such that row p + j of the triangle holds q_ij, for j >= i."""
    return i * n - (i * (i + 1)) // 2


@inline
def _weighted_rows(rows, pad, where, x, count, zero):
    """sum_i x_i row_i: four rows a pass, so that no product waits for the one before."""
    s0, s1, s2, s3 = zero, zero, zero, zero
    p = 0
    while p + 4 <= count:
        s0 = multiply_add(load(rows, where[p] * pad, zero), splat(x[p], zero), s0)
        s1 = multiply_add(load(rows, where[p + 1] * pad, zero), splat(x[p + 1], zero), s1)
        s2 = multiply_add(load(rows, where[p + 2] * pad, zero), splat(x[p + 2], zero), s2)
        s3 = multiply_add(load(rows, where[p + 3] * pad, zero), splat(x[p + 3], zero), s3)
        p += 4
    while p < count:
        s0 = multiply_add(load(rows, where[p] * pad, zero), splat(x[p], zero), s0)
        p += 1
    return (s0 + s1) + (s2 + s3)


@inline
def _affine(theta, layer, weights, bias, u, r, col, where, x, count, scale, t, oo, zero):
    """scale (W~ x + u (t + oo) + r) + b; u < 0: there is no offset."""
    rows = advance(theta, layer[weights] + col)
    s = _weighted_rows(rows, layer[PAD], where, x, count, zero)
    if layer[u] >= 0:
        s = multiply_add(load(theta, layer[u] + col, zero), splat(t + oo, zero), s)
        s = s + load(theta, layer[r] + col, zero)
    return multiply_add(s, splat(scale, zero), load(theta, layer[bias] + col, zero))


@inline
def _quadratic_of_list(theta, layer, col, where, x, count, zero):
    """sum_i x_i (w_i + q_ii x_i + 2 sum_{j>i} q_ij x_j), over the listed inputs only."""
    n, pad = layer[N_IN], layer[PAD]
    s = zero
    for p in range(count):
        i, xi = where[p], splat(x[p], zero)
        row = advance(theta, layer[Q] + _pair_row(i, n) * pad + col)
        rest = _weighted_rows(
            row, pad, advance(where, p + 1), advance(x, p + 1), count - p - 1, zero
        )
        slope = multiply_add(load(row, i * pad, zero), xi, rest + rest)
        s = multiply_add(slope + load(theta, layer[W] + i * pad + col, zero), xi, s)
    return s


@inline
def _quadratic_with_V(theta, layer, work, col, x, zero):
    """V_i = sum_j q_ij x_j, kept for the backward pass; returns sum_i x_i (w_i + V_i).

    Two rows of the triangle a pass: every q_ij read serves V_i and V_j, and V_j is loaded and
    stored once for the two.
    """
    n, pad = layer[N_IN], layer[PAD]
    w, v = advance(theta, layer[W] + col), advance(work, layer[V] + col)
    for i in range(n):
        store(v, i * pad, zero)
    s = zero
    i = 0
    while i + 2 <= n:
        row0 = advance(theta, layer[Q] + _pair_row(i, n) * pad + col)
        row1 = advance(theta, layer[Q] + _pair_row(i + 1, n) * pad + col)
        x0, x1 = splat(x[i], zero), splat(x[i + 1], zero)
        q01 = load(row0, (i + 1) * pad, zero)
        v0 = multiply_add(load(row0, i * pad, zero), x0, load(v, i * pad, zero))
        v0 = multiply_add(q01, x1, v0)
        v1 = multiply_add(q01, x0, load(v, (i + 1) * pad, zero))
        v1 = multiply_add(load(row1, (i + 1) * pad, zero), x1, v1)
        for j in range(i + 2, n):
            q0, q1, xj = load(row0, j * pad, zero), load(row1, j * pad, zero), splat(x[j], zero)
            vj = multiply_add(q0, x0, load(v, j * pad, zero))
            store(v, j * pad, multiply_add(q1, x1, vj))
            v0 = multiply_add(q0, xj, v0)
            v1 = multiply_add(q1, xj, v1)
        store(v, i * pad, v0)
        store(v, (i + 1) * pad, v1)
        s = multiply_add(v0 + load(w, i * pad, zero), x0, s)
        s = multiply_add(v1 + load(w, (i + 1) * pad, zero), x1, s)
        i += 2
    if i < n:
        x0 = splat(x[i], zero)
        q = load(theta, layer[Q] + (_pair_row(i, n) + i) * pad + col, zero)
        v0 = multiply_add(q, x0, load(v, i * pad, zero))
        store(v, i * pad, v0)
        s = multiply_add(v0 + load(w, i * pad, zero), x0, s)
    return s


@block
def _forward_block(theta, layer, work, where, x, count, col, scale, t, oo, zero):
    """z and a of the block; false if a z is not finite."""
    kind = layer[KIND]
    if kind == QUADRATIC:
        if layer[V] < 0:
            s = _quadratic_of_list(theta, layer, col, where, x, count, zero)
        else:
            s = _quadratic_with_V(theta, layer, work, col, x, zero)
        z = multiply_add(s, splat(scale, zero), load(theta, layer[B] + col, zero))
    else:
        z = _affine(theta, layer, W, B, W_U, W_R, col, where, x, count, scale, t, oo, zero)
        if kind == REDUCED:
            v2 = _affine(theta, layer, U, C, U_U, U_R, col, where, x, count, scale, t, oo, zero)
            store(work, layer[V1] + col, z)
            store(work, layer[V2] + col, v2)
            z = z * v2
    store(work, layer[Z] + col, z)
    store(work, layer[A] + col, _activate(layer[ACTIVATION], z))
    return all_finite(z)


@block
def _backward_block(theta, layer, work, d_input, n, col, scale, zero):
    """Add the block's share of dL/da to d_input[:n].

    A reduced layer's v1 and v2 become delta v1 and delta v2: all that its updates need of them.
    """
    pad, kind = layer[PAD], layer[KIND]
    w = advance(theta, layer[W] + col)
    delta = load(work, layer[DELTA] + col, zero)
    if kind == REDUCED:
        u = advance(theta, layer[U] + col)
        to_u = delta * load(work, layer[V1] + col, zero)
        to_w = delta * load(work, layer[V2] + col, zero)
        store(work, layer[V1] + col, to_u)
        store(work, layer[V2] + col, to_w)
        for i in range(n):
            d = multiply_add(load(w, i * pad, zero), to_w, load(u, i * pad, zero) * to_u)
            d_input[i] += scale * total(d)
    elif kind == QUADRATIC:
        for i in range(n):
            v = load(work, layer[V] + i * pad + col, zero)
            d_input[i] += scale * total((load(w, i * pad, zero) + v + v) * delta)
    else:
        for i in range(n):
            d_input[i] += scale * total(load(w, i * pad, zero) * delta)


@inline
def _add_to_rows(rows, pad, where, x, count, step):
    """row_i += x_i step."""
    for p in range(count):
        row = where[p] * pad
        store(rows, row, multiply_add(splat(x[p], step), step, load(rows, row, step)))


@inline
def _update_affine(theta, layer, weights, bias, u, r, col, where, x, count, g, gb, t, d):
    """W, b (and the offset's u and r) take a step against the gradient; d is dL/d(W x + b)."""
    step = d * splat(g, d)
    _add_to_rows(advance(theta, layer[weights] + col), layer[PAD], where, x, count, step)
    if layer[u] >= 0:
        at_u, at_r = layer[u] + col, layer[r] + col
        store(theta, at_u, load(theta, at_u, d) + step)
        store(theta, at_r, multiply_add(step, splat(t, d), load(theta, at_r, d)))
    at_b = layer[bias] + col
    store(theta, at_b, multiply_add(d, splat(gb, d), load(theta, at_b, d)))


@inline
def _update_pairs(theta, layer, col, where, x, count, step):
    """q_ij += M(x)_ij step: x_i^2 on the diagonal, 2 x_i x_j off it."""
    n, pad = layer[N_IN], layer[PAD]
    for p in range(count):
        i = where[p]
        row = advance(theta, layer[Q] + _pair_row(i, n) * pad + col)
        xi = splat(x[p], step)
        along = xi * step
        store(row, i * pad, multiply_add(xi, along, load(row, i * pad, step)))
        _add_to_rows(
            row, pad, advance(where, p + 1), advance(x, p + 1), count - p - 1, along + along
        )


@inline
def _update_all_pairs(theta, layer, work, col, x, step):
    """The same where all inputs are listed: one run along the triangle, by its monomials."""
    n, pad = layer[N_IN], layer[PAD]
    rows, monomials = advance(theta, layer[Q] + col), advance(work, layer[MONOMIALS])
    for p in range(n * (n + 1) // 2):
        store(
            rows, p * pad, multiply_add(splat(monomials[p], step), step, load(rows, p * pad, step))
        )


@inline
def _monomials(layer, work, x, zero):
    """M(x) along the triangle: x_i^2 on the diagonal, 2 x_i x_j off it."""
    n, p = layer[N_IN], layer[MONOMIALS]
    for i in range(n):
        xi = x[i]
        for j in range(i, n, lane_count(zero)):  # what runs over the row's end is overwritten
            store(work, p + j - i, load(x, j, zero) * splat(xi + xi, zero))
        work[p] = xi * xi
        p += n - i


@block
def _update_block(theta, layer, work, where, x, count, col, g, gb, t, zero):
    """One SGD step of the block: g is -rate / scale (for weights), gb is -rate (for biases)."""
    kind = layer[KIND]
    d = load(work, (layer[V2] if kind == REDUCED else layer[DELTA]) + col, zero)
    _update_affine(theta, layer, W, B, W_U, W_R, col, where, x, count, g, gb, t, d)
    if kind == REDUCED:
        d = load(work, layer[V1] + col, zero)
        _update_affine(theta, layer, U, C, U_U, U_R, col, where, x, count, g, gb, t, d)
    elif kind == QUADRATIC and layer[MONOMIALS] >= 0:
        _update_all_pairs(theta, layer, work, col, x, d * splat(g, zero))
    elif kind == QUADRATIC:
        _update_pairs(theta, layer, col, where, x, count, d * splat(g, zero))


# --------------------------------------------------------------------------------------------
# One layer: blocks of two padding units while they fit, then of one
# --------------------------------------------------------------------------------------------


@inline
def _forward(theta, layer, work, where, x, count, scale, t, oo):
    wide, narrow = zeros(theta, 2), zeros(theta, 1)
    col, finite = 0, True
    while col + lane_count(wide) <= layer[PAD]:
        finite &= _forward_block(theta, layer, work, where, x, count, col, scale, t, oo, wide)
        col += lane_count(wide)
    if col < layer[PAD]:
        finite &= _forward_block(theta, layer, work, where, x, count, col, scale, t, oo, narrow)
    return finite


@inline
def _backward_layer(theta, layer, below, is_first, work, scale):
    """delta of the layer below; for the first layer only what its own update needs."""
    n = 0 if is_first else layer[N_IN]
    if is_first and layer[KIND] != REDUCED:
        return
    d_input = work if is_first else advance(work, below[DELTA])
    for i in range(n):
        d_input[i] = 0.0
    wide, narrow = zeros(theta, 2), zeros(theta, 1)
    col = 0
    while col + lane_count(wide) <= layer[PAD]:
        _backward_block(theta, layer, work, d_input, n, col, scale, wide)
        col += lane_count(wide)
    if col < layer[PAD]:
        _backward_block(theta, layer, work, d_input, n, col, scale, narrow)
    for col in range(0, 0 if is_first else below[PAD], lane_count(narrow)):
        a = load(work, below[A] + col, narrow)
        d = load(d_input, col, narrow)
        store(d_input, col, _times_slope(below[ACTIVATION], a, d))


@inline
def _update(theta, layer, work, where, x, count, g, gb, t):
    wide, narrow = zeros(theta, 2), zeros(theta, 1)
    if layer[MONOMIALS] >= 0:
        _monomials(layer, work, x, narrow)
    col = 0
    while col + lane_count(wide) <= layer[PAD]:
        _update_block(theta, layer, work, where, x, count, col, g, gb, t, wide)
        col += lane_count(wide)
    if col < layer[PAD]:
        _update_block(theta, layer, work, where, x, count, col, g, gb, t, narrow)


# --------------------------------------------------------------------------------------------
# The last layer's loss
# --------------------------------------------------------------------------------------------


@block
def _softmax(z, a, m, pad, zero):
    """a = softmax(z); returns (largest z, sum of exp(z - largest))."""
    peak = z[0]
    for k in range(1, m):
        peak = max(peak, z[k])
    for k in range(m, pad):
        z[k] = -math.inf  # padded lanes get no probability
    s = zero
    for col in range(0, pad, lane_count(zero)):
        e = _exp(load(z, col, zero) - splat(peak, zero))
        store(a, col, e)
        s = s + e
    sum_exp = total(s)
    for col in range(0, pad, lane_count(zero)):
        store(a, col, load(a, col, zero) / splat(sum_exp, zero))
    return peak, sum_exp


@block
def _loss_and_delta(loss, layer, work, y):
    """delta = dL/dz of the last layer, and the loss as (first) - log(second).

    The second part is a product of likelihoods: one logarithm serves many samples.
    """
    m, pad, zero = layer[N_OUT], layer[PAD], zeros(work, 1)
    z, a, delta = advance(work, layer[Z]), advance(work, layer[A]), advance(work, layer[DELTA])
    for k in range(m):
        delta[k] = y[k]
    for k in range(m, pad):
        delta[k] = 1.0
    if loss == CROSS_ENTROPY:
        peak, sum_exp = _softmax(z, a, m, pad, zero)
        value = 0.0
        for k in range(m):
            value += y[k] * (peak - z[k])
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
            d = _times_slope(layer[ACTIVATION], a_block, d)
        store(delta, col, d)
    if loss == CROSS_ENTROPY:
        return value, 1.0 / sum_exp
    return total(s) - logs, likelihood * product(likely)


# --------------------------------------------------------------------------------------------
# The sample at hand as a list of (index, value)
# --------------------------------------------------------------------------------------------


@inline
def _list_of_csr(indices, data, count, where, x):
    for p in range(count):
        where[p] = indices[p]
    for p in range(count):
        x[p] = data[p]


@inline
def _list_of_dense(row, n, where, x):
    """List the non-zero entries of a dense row; returns their number."""
    zero = zeros(row, 1)
    full = nonzero_mask(splat(1.0, zero))
    count, col = 0, 0
    while col + lane_count(zero) <= n:
        entries = load(row, col, zero)
        mask = nonzero_mask(entries)
        if mask == full:
            store(x, count, entries)
            for lane in range(lane_count(zero)):
                where[count + lane] = col + lane
            count += lane_count(zero)
            mask = numba.uint64(0)
        while mask != 0:
            i = col + lowest_bit(mask)
            where[count] = i
            x[count] = row[i]
            count += 1
            mask &= mask - numba.uint64(1)
        col += lane_count(zero)
    while col < n:
        if row[col] != 0.0:
            where[count] = col
            x[count] = row[col]
            count += 1
        col += 1
    return count


@inline
def _add_offset(offset, n, where, x, count):
    """Turn the listed non-zeros into all n inputs x = s + o (for a quadratic first layer)."""
    p = count - 1
    for i in range(n - 1, -1, -1):  # from the end: an entry is read before it is overwritten
        s = 0.0
        if p >= 0 and where[p] == i:
            s = x[p]
            p -= 1
        where[i] = i
        x[i] = s + offset[i]


@inline
def _squared_gradient(layer, work, x, count, t, oo):
    """The squared norm of one layer's gradient by its independent parameters, from its parts."""
    x2, x4 = 2.0 * t + oo, 0.0
    for p in range(count):
        x2 += x[p] * x[p]
        x4 += x[p] * x[p] * x[p] * x[p]
    per_neuron = x2 + 1.0  # the weights and the bias
    if layer[KIND] == QUADRATIC:
        per_neuron += 2.0 * x2 * x2 - x4  # sum over i <= j of M(x)_ij^2
    s = 0.0
    for k in range(layer[N_OUT]):
        if layer[KIND] == REDUCED:
            to_u, to_w = work[layer[V1] + k], work[layer[V2] + k]
            s += to_u * to_u + to_w * to_w
        else:
            s += work[layer[DELTA] + k] * work[layer[DELTA] + k]
    return per_neuron * s


# --------------------------------------------------------------------------------------------
# Dense rows that are mostly zeros, compressed once
# --------------------------------------------------------------------------------------------


@EntryPoint
def count_nonzeros(data, n, counts):
    """counts[i] = the number of non-zero entries of row i; `data` holds rows of length n."""
    p_data, zero = pointer(data), zeros(pointer(data), 1)
    for sample in range(counts.size):
        row = advance(p_data, sample * n)
        count, col = 0, 0
        while col + lane_count(zero) <= n:
            count += count_bits(nonzero_mask(load(row, col, zero)))
            col += lane_count(zero)
        while col < n:
            if row[col] != 0.0:
                count += 1
            col += 1
        counts[sample] = count


@EntryPoint
def compress_rows(data, n, indptr, indices, values):
    """Write the non-zero entries of each row, and their columns, from indptr[row] on."""
    p_data, p_indices, p_values = pointer(data), pointer(indices), pointer(values)
    for sample in range(indptr.size - 1):
        start = indptr[sample]
        _list_of_dense(
            advance(p_data, sample * n), n, advance(p_indices, start), advance(p_values, start)
        )


# --------------------------------------------------------------------------------------------
# The epoch
# --------------------------------------------------------------------------------------------


@EntryPoint
def sgd_epoch(
    theta, scale_of_theta, table, work, index, n_penalised,
    indptr, indices, data, Y, order, weights, offset, offset_dots,
    loss, rate, l2, clip, stopped,
):  # fmt: skip
    """Visit the samples in `order` and take one SGD step for each; returns the summed loss.

    theta        parameters, those under the L2 penalty first (`n_penalised` of them); in place.
                 These are what is stored times scale_of_theta[0], which an epoch leaves as it is
                 at its end: two half epochs give the same bits as a whole one
    indptr       of CSR input; empty: `data` holds dense rows one after the other
    weights      of the samples: a step of rate * weight; empty: all 1
    offset       added to every input; empty: none
    offset_dots  offset'x of each sample, where the first layer has its u and r; else empty
    l2, clip     penalty, and the largest gradient norm (infinite: no clipping)
    stopped      out: position in `order` and layer of the first non-finite z; else as it was
    """
    layers, width = table.shape
    n, outputs, n_samples = table[0, N_IN], Y.shape[1], order.size
    weighted, has_dots = weights.size > 0, offset_dots.size > 0
    sparse, add_offset = indptr.size > 0, offset.size > 0 and offset_dots.size == 0
    first_where, first_x = table[0, INPUT_AT], table[0, INPUT]
    p_theta, p_work, p_index, first = pointer(theta), pointer(work), pointer(index), pointer(table)
    p_indptr, p_indices, p_data = pointer(indptr), pointer(indices), pointer(data)
    p_Y, p_order, p_weights = pointer(Y), pointer(order), pointer(weights)
    p_offset, p_dots = pointer(offset), pointer(offset_dots)
    where, x = advance(p_index, first_where), advance(p_work, first_x)
    last = advance(first, (layers - 1) * width)

    oo = 0.0
    if has_dots:
        for i in range(n):
            oo += offset[i] * offset[i]
    scale, loss_sum, likelihood, t = scale_of_theta[0], 0.0, 1.0, 0.0
    for position in range(n_samples):
        sample = p_order[position]
        weight = p_weights[sample] * 1.0 if weighted else 1.0
        if weight == 0.0:
            continue
        if sparse:
            start = p_indptr[sample]
            count = p_indptr[sample + 1] - start
            _list_of_csr(advance(p_indices, start), advance(p_data, start), count, where, x)
        else:
            count = _list_of_dense(advance(p_data, sample * n), n, where, x)
        if add_offset:
            _add_offset(p_offset, n, where, x, count)
            count = n
        elif has_dots:
            t = p_dots[sample] * 1.0

        layer, inputs = first, count
        for l in range(layers):
            finite = _forward(
                p_theta, layer, p_work,
                advance(p_index, layer[INPUT_AT]), advance(p_work, layer[INPUT]),
                inputs, scale, t, oo,
            )  # fmt: skip
            if not finite:
                stopped[STOPPED_AT], stopped[STOPPED_LAYER] = position, l
                return loss_sum
            layer, inputs = advance(layer, width), layer[N_OUT]

        value, likely = _loss_and_delta(loss, last, p_work, advance(p_Y, sample * outputs))
        if not math.isfinite(value):
            stopped[STOPPED_AT], stopped[STOPPED_LAYER] = position, layers - 1
            return loss_sum
        if weight == 1.0:
            loss_sum += value
            likelihood *= likely
            if likelihood < 1e-100:
                loss_sum -= math.log(likelihood)
                likelihood = 1.0
        else:
            loss_sum += weight * (value - math.log(likely))

        layer = last
        for l in range(layers - 1, -1, -1):
            below = advance(layer, -width)
            _backward_layer(p_theta, layer, below, l == 0, p_work, scale)
            layer = below

        step = rate * weight
        if l2 > 0.0:
            scale *= 1.0 - step * l2
            if scale < 1e-4:  # too small, zero, or negative: shrink the weights themselves
                for p in range(n_penalised):
                    theta[p] *= scale
                scale = 1.0
        if clip < math.inf:
            squares = 0.0
            layer = first
            for l in range(layers):
                squares += _squared_gradient(
                    layer, p_work, advance(p_work, layer[INPUT]),
                    count if l == 0 else layer[N_IN],
                    t if l == 0 else 0.0, oo if l == 0 else 0.0,
                )  # fmt: skip
                layer = advance(layer, width)
            norm = weight * math.sqrt(squares)
            if norm > clip:
                step *= clip / norm
        layer, inputs = first, count
        for _ in range(layers):
            _update(
                p_theta, layer, p_work,
                advance(p_index, layer[INPUT_AT]), advance(p_work, layer[INPUT]),
                inputs, -step / scale, -step, t,
            )  # fmt: skip
            layer, inputs = advance(layer, width), layer[N_OUT]

    scale_of_theta[0] = scale
    return loss_sum - math.log(likelihood)
