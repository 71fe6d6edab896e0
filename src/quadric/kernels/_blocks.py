"""Forward pass, backward pass and update of one layer of any kind, one block of neurons at a time.

A linear layer has one affine map, and a reduced layer has two. A quadratic layer that is the first
layer of a network visits the pairs of listed inputs, which may be sparse. A later quadratic layer
gets a value for every input. It runs along the stored triangle and keeps V = Q x for the backward
pass and the monomials M(x) for the update.

Blocks are two registers wide as long as they fit into the padded row, and then one register wide.
`col` is the first neuron of a block. `zero` is a block of zeros whose type determines the width.
"""

from collections import namedtuple

from quadric.kernels._activations_and_losses import activate, times_slope
from quadric.kernels._compiling import block, inline
from quadric.kernels._lanes import (
    advance,
    all_finite,
    lane_count,
    load,
    multiply_add,
    splat,
    store,
    total,
    zeros,
)
from quadric.kernels._layout import QUADRATIC, REDUCED, Inputs, pair_row

# ---- affine maps ---------------------------------------------------------------------------


# Where an affine map is stored in `theta`; see `_layout.LAYER`.
AffineMap = namedtuple("AffineMap", "weights bias u r pad")


@inline
def first_map(layer):
    """Return the map W x + b."""
    return AffineMap(layer.W, layer.b, layer.W_u, layer.W_r, layer.pad)


@inline
def second_map(layer):
    """Return the map U x + c of a reduced layer."""
    return AffineMap(layer.U, layer.c, layer.U_u, layer.U_r, layer.pad)


@inline
def weighted_rows(rows, pad, inputs, zero):
    """sum_i x_i row_i, four rows per pass, so that no product waits for the previous one."""
    where, x = inputs.where, inputs.x
    s0, s1, s2, s3 = zero, zero, zero, zero
    p = 0
    while p + 4 <= inputs.size:
        s0 = multiply_add(load(rows, where[p] * pad, zero), splat(x[p], zero), s0)
        s1 = multiply_add(load(rows, where[p + 1] * pad, zero), splat(x[p + 1], zero), s1)
        s2 = multiply_add(load(rows, where[p + 2] * pad, zero), splat(x[p + 2], zero), s2)
        s3 = multiply_add(load(rows, where[p + 3] * pad, zero), splat(x[p + 3], zero), s3)
        p += 4
    while p < inputs.size:
        s0 = multiply_add(load(rows, where[p] * pad, zero), splat(x[p], zero), s0)
        p += 1
    return (s0 + s1) + (s2 + s3)


@inline
def add_to_rows(rows, pad, inputs, step):
    """row_i += x_i step."""
    for p in range(inputs.size):
        row = inputs.where[p] * pad
        store(rows, row, multiply_add(splat(inputs.x[p], step), step, load(rows, row, step)))


@inline
def affine(theta, at, inputs, scale, col, zero):
    """scale (W~ s + u (o's + o'o) + r) + b; without a folded offset, scale W x + b."""
    s = weighted_rows(advance(theta, at.weights + col), at.pad, inputs, zero)
    if at.u >= 0:
        along_u = splat(inputs.offset_dot + inputs.offset_square, zero)
        s = multiply_add(load(theta, at.u + col, zero), along_u, s)
        s = s + load(theta, at.r + col, zero)
    return multiply_add(s, splat(scale, zero), load(theta, at.bias + col, zero))


@inline
def update_affine(theta, at, inputs, rates, col, d):
    """Move W, b (and the u and r of a folded offset) against the gradient; d is dL/d(W x + b)."""
    step = d * splat(rates.weights, d)
    add_to_rows(advance(theta, at.weights + col), at.pad, inputs, step)
    if at.u >= 0:
        at_u, at_r = at.u + col, at.r + col
        store(theta, at_u, load(theta, at_u, d) + step)
        along_r = splat(inputs.offset_dot, d)
        store(theta, at_r, multiply_add(step, along_r, load(theta, at_r, d)))
    at_b = at.bias + col
    store(theta, at_b, multiply_add(d, splat(rates.biases, d), load(theta, at_b, d)))


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
        row = advance(theta, layer.packed + pair_row(i, n) * pad + col)
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
        row = advance(theta, layer.packed + pair_row(i, n) * pad + col)
        along = xi * step
        store(row, i * pad, multiply_add(xi, along, load(row, i * pad, step)))
        add_to_rows(row, pad, _after(inputs, p), along + along)


# ---- all pairs -----------------------------------------------------------------------------


@inline
def quadratic_with_V(memory, layer, x, col, zero):
    """sum_i x_i (w_i + V_i), where V_i = sum_j q_ij x_j is kept for the backward pass.

    A pass processes two rows of the triangle. Each loaded q_ij is used for both V_i and V_j, and
    V_j is loaded and stored once for both rows.
    """
    n, pad, theta = layer.n_in, layer.pad, memory.theta
    w, v = advance(theta, layer.W + col), advance(memory.work, layer.V + col)
    for i in range(n):
        store(v, i * pad, zero)
    s = zero
    i = 0
    while i + 2 <= n:
        row0 = advance(theta, layer.packed + pair_row(i, n) * pad + col)
        row1 = advance(theta, layer.packed + pair_row(i + 1, n) * pad + col)
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
        q = load(theta, layer.packed + (pair_row(i, n) + i) * pad + col, zero)
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
        # the last store may extend beyond the row; the next row overwrites the excess
        for j in range(i, n, lane_count(zero)):
            store(work, p + j - i, load(x, j, zero) * splat(xi + xi, zero))
        work[p] = xi * xi
        p += n - i


@inline
def update_all_pairs(memory, layer, col, step):
    """q_ij += M(x)_ij step, in one pass along the triangle."""
    n, pad = layer.n_in, layer.pad
    rows = advance(memory.theta, layer.packed + col)
    monomials = advance(memory.work, layer.monomials)
    for p in range(n * (n + 1) // 2):
        q = load(rows, p * pad, step)
        store(rows, p * pad, multiply_add(splat(monomials[p], step), step, q))


# ---- forward -------------------------------------------------------------------------------


@block
def _forward_block(memory, layer, inputs, scale, col, zero):
    """Compute z and a of the block; return whether all z are finite."""
    theta, work = memory.theta, memory.work
    if layer.kind == QUADRATIC:
        if layer.V < 0:
            s = quadratic_of_list(theta, layer, inputs, col, zero)
        else:
            s = quadratic_with_V(memory, layer, inputs.x, col, zero)
        z = multiply_add(s, splat(scale, zero), load(theta, layer.b + col, zero))
    else:
        z = affine(theta, first_map(layer), inputs, scale, col, zero)
        if layer.kind == REDUCED:
            v2 = affine(theta, second_map(layer), inputs, scale, col, zero)
            store(work, layer.v1 + col, z)
            store(work, layer.v2 + col, v2)
            z = z * v2
    store(work, layer.z + col, z)
    store(work, layer.a + col, activate(layer.activation, z))
    return all_finite(z)


@inline
def forward(memory, layer, inputs, scale):
    """Compute z and a of the layer; return whether all z are finite."""
    wide, narrow = zeros(memory.theta, 2), zeros(memory.theta, 1)
    col, finite = 0, True
    while col + lane_count(wide) <= layer.pad:
        finite &= _forward_block(memory, layer, inputs, scale, col, wide)
        col += lane_count(wide)
    if col < layer.pad:
        finite &= _forward_block(memory, layer, inputs, scale, col, narrow)
    return finite


@inline
def _over_blocks(compute, memory, layer, *arguments):
    """Call compute(memory, layer, *arguments, col, zero) for every block of the layer's neurons."""
    wide, narrow = zeros(memory.theta, 2), zeros(memory.theta, 1)
    col = 0
    while col + lane_count(wide) <= layer.pad:
        compute(memory, layer, *arguments, col, wide)
        col += lane_count(wide)
    if col < layer.pad:
        compute(memory, layer, *arguments, col, narrow)


# ---- backward ------------------------------------------------------------------------------


@block
def _backward_block(memory, layer, d_input, n, scale, col, zero):
    """Add the block's share of dL/dx to d_input[:n].

    For a reduced layer, v1 and v2 are replaced by delta v1 and delta v2, which the update needs.
    """
    work, pad = memory.work, layer.pad
    w = advance(memory.theta, layer.W + col)
    delta = load(work, layer.delta + col, zero)
    if layer.kind == REDUCED:
        u = advance(memory.theta, layer.U + col)
        to_u = delta * load(work, layer.v1 + col, zero)
        to_w = delta * load(work, layer.v2 + col, zero)
        store(work, layer.v1 + col, to_u)
        store(work, layer.v2 + col, to_w)
        for i in range(n):
            d = multiply_add(load(w, i * pad, zero), to_w, load(u, i * pad, zero) * to_u)
            d_input[i] += scale * total(d)
    elif layer.kind == QUADRATIC:
        for i in range(n):
            v = load(work, layer.V + i * pad + col, zero)
            d_input[i] += scale * total((load(w, i * pad, zero) + v + v) * delta)
    else:
        for i in range(n):
            d_input[i] += scale * total(load(w, i * pad, zero) * delta)


@inline
def backward(memory, layer, below, scale):
    """Compute delta of the layer `below`."""
    work, d_input = memory.work, advance(memory.work, below.delta)
    for i in range(layer.n_in):
        d_input[i] = 0.0
    _over_blocks(_backward_block, memory, layer, d_input, layer.n_in, scale)
    zero = zeros(memory.theta, 1)
    for col in range(0, below.pad, lane_count(zero)):
        a, d = load(work, below.a + col, zero), load(d_input, col, zero)
        store(d_input, col, times_slope(below.activation, a, d))


@inline
def backward_first(memory, layer, scale):
    """Prepare the update of the first layer; the gradient of its inputs is not needed."""
    if layer.kind == REDUCED:
        _over_blocks(_backward_block, memory, layer, memory.work, 0, scale)


# ---- update --------------------------------------------------------------------------------


@block
def _update_block(memory, layer, inputs, rates, col, zero):
    """Take an SGD step on the block's parameters."""
    theta, work = memory.theta, memory.work
    d = load(work, (layer.v2 if layer.kind == REDUCED else layer.delta) + col, zero)
    update_affine(theta, first_map(layer), inputs, rates, col, d)
    if layer.kind == REDUCED:
        d = load(work, layer.v1 + col, zero)
        update_affine(theta, second_map(layer), inputs, rates, col, d)
    elif layer.kind == QUADRATIC and layer.monomials >= 0:
        update_all_pairs(memory, layer, col, d * splat(rates.weights, zero))
    elif layer.kind == QUADRATIC:
        update_pairs(theta, layer, inputs, col, d * splat(rates.weights, zero))


@inline
def update(memory, layer, inputs, rates):
    """Take an SGD step on the layer's parameters."""
    if layer.monomials >= 0:
        write_monomials(memory.work, layer, inputs.x, zeros(memory.theta, 1))
    _over_blocks(_update_block, memory, layer, inputs, rates)


@inline
def squared_gradient(work, layer, inputs):
    """Return the squared norm of the gradient for the layer's independent parameters."""
    x2, x4 = 2.0 * inputs.offset_dot + inputs.offset_square, 0.0
    for p in range(inputs.size):
        x = inputs.x[p]
        x2 += x * x
        x4 += x * x * x * x
    per_neuron = x2 + 1.0  # the weights and the bias
    if layer.kind == QUADRATIC:
        per_neuron += 2.0 * x2 * x2 - x4  # sum over i <= j of M(x)_ij^2
    s = 0.0
    for k in range(layer.n_out):
        if layer.kind == REDUCED:
            to_u, to_w = work[layer.v1 + k], work[layer.v2 + k]
            s += to_u * to_u + to_w * to_w
        else:
            s += work[layer.delta + k] * work[layer.delta + k]
    return per_neuron * s
