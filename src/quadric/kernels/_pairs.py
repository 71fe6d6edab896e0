"""x'Qx + w'x of one block of quadratic neurons, and the update of Q.

The first layer has sparse inputs: it visits the pairs of listed inputs. A hidden layer has all of
its inputs: it runs along the stored triangle, and keeps V = Q x for the backward pass and the
monomials M(x) for the update.
"""

from quadric.kernels._affine import add_to_rows, weighted_rows
from quadric.kernels._compiling import inline
from quadric.kernels._lanes import advance, lane_count, load, multiply_add, splat, store
from quadric.kernels._layout import Inputs


@inline
def _pair_row(i, n):
    """p such that row p + j of the triangle holds q_ij, for j >= i."""
    return i * n - (i * (i + 1)) // 2


@inline
def _after(inputs, p):
    """The inputs listed after position p."""
    where, x = advance(inputs.where, p + 1), advance(inputs.x, p + 1)
    return Inputs(where, x, inputs.size - p - 1, 0.0, 0.0)


# ---- pairs of listed inputs ----------------------------------------------------------------


@inline
def quadratic_of_list(theta, layer, inputs, col, zero):
    """sum_i x_i (w_i + q_ii x_i + 2 sum_{j>i} q_ij x_j), over the listed inputs only."""
    n, pad = layer.n_in, layer.pad
    s = zero
    for p in range(inputs.size):
        i, xi = inputs.where[p], splat(inputs.x[p], zero)
        row = advance(theta, layer.Q + _pair_row(i, n) * pad + col)
        rest = weighted_rows(row, pad, _after(inputs, p), zero)
        slope = multiply_add(load(row, i * pad, zero), xi, rest + rest)
        s = multiply_add(slope + load(theta, layer.W + i * pad + col, zero), xi, s)
    return s


@inline
def update_pairs(theta, layer, inputs, col, step):
    """q_ij += M(x)_ij step: x_i^2 on the diagonal, 2 x_i x_j off it."""
    n, pad = layer.n_in, layer.pad
    for p in range(inputs.size):
        i, xi = inputs.where[p], splat(inputs.x[p], step)
        row = advance(theta, layer.Q + _pair_row(i, n) * pad + col)
        along = xi * step
        store(row, i * pad, multiply_add(xi, along, load(row, i * pad, step)))
        add_to_rows(row, pad, _after(inputs, p), along + along)


# ---- all pairs -----------------------------------------------------------------------------


@inline
def quadratic_with_V(memory, layer, x, col, zero):
    """sum_i x_i (w_i + V_i), where V_i = sum_j q_ij x_j is kept for the backward pass.

    Two rows of the triangle per pass: every q_ij that is loaded serves V_i and V_j, and V_j is
    loaded and stored once for both rows.
    """
    n, pad, theta = layer.n_in, layer.pad, memory.theta
    w, v = advance(theta, layer.W + col), advance(memory.work, layer.V + col)
    for i in range(n):
        store(v, i * pad, zero)
    s = zero
    i = 0
    while i + 2 <= n:
        row0 = advance(theta, layer.Q + _pair_row(i, n) * pad + col)
        row1 = advance(theta, layer.Q + _pair_row(i + 1, n) * pad + col)
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
        q = load(theta, layer.Q + (_pair_row(i, n) + i) * pad + col, zero)
        v0 = multiply_add(q, x0, load(v, i * pad, zero))
        store(v, i * pad, v0)
        s = multiply_add(v0 + load(w, i * pad, zero), x0, s)
    return s


@inline
def write_monomials(work, layer, x, zero):
    """M(x) along the triangle: x_i^2 on the diagonal, 2 x_i x_j off it."""
    n, p = layer.n_in, layer.monomials
    for i in range(n):
        xi = x[i]
        # the last store may reach beyond the row: the next row overwrites it
        for j in range(i, n, lane_count(zero)):
            store(work, p + j - i, load(x, j, zero) * splat(xi + xi, zero))
        work[p] = xi * xi
        p += n - i


@inline
def update_all_pairs(memory, layer, col, step):
    """q_ij += M(x)_ij step, in one run along the triangle."""
    n, pad = layer.n_in, layer.pad
    rows, monomials = advance(memory.theta, layer.Q + col), advance(memory.work, layer.monomials)
    for p in range(n * (n + 1) // 2):
        q = load(rows, p * pad, step)
        store(rows, p * pad, multiply_add(splat(monomials[p], step), step, q))
