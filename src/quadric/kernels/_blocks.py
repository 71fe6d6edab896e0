"""Forward pass, backward pass and update of one layer of any kind, one block of neurons at a time.

Blocks are two registers wide as long as they fit into the padded row, and then one register wide.
`col` is the first neuron of a block. `zero` is a block of zeros whose type determines the width.
"""

from quadric.kernels._activations import activate, times_slope
from quadric.kernels._compiling import block, inline
from quadric.kernels._equations import (
    affine,
    first_map,
    quadratic_of_list,
    quadratic_with_V,
    second_map,
    update_affine,
    update_all_pairs,
    update_pairs,
    write_monomials,
)
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
from quadric.kernels._layout import QUADRATIC, REDUCED

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
def _backward_blocks(memory, layer, d_input, n, scale):
    wide, narrow = zeros(memory.theta, 2), zeros(memory.theta, 1)
    col = 0
    while col + lane_count(wide) <= layer.pad:
        _backward_block(memory, layer, d_input, n, scale, col, wide)
        col += lane_count(wide)
    if col < layer.pad:
        _backward_block(memory, layer, d_input, n, scale, col, narrow)


@inline
def backward(memory, layer, below, scale):
    """Compute delta of the layer `below`."""
    work, d_input = memory.work, advance(memory.work, below.delta)
    for i in range(layer.n_in):
        d_input[i] = 0.0
    _backward_blocks(memory, layer, d_input, layer.n_in, scale)
    zero = zeros(memory.theta, 1)
    for col in range(0, below.pad, lane_count(zero)):
        a, d = load(work, below.a + col, zero), load(d_input, col, zero)
        store(d_input, col, times_slope(below.activation, a, d))


@inline
def backward_first(memory, layer, scale):
    """Prepare the update of the first layer; the gradient of its inputs is not needed."""
    if layer.kind == REDUCED:
        _backward_blocks(memory, layer, memory.work, 0, scale)


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
    wide, narrow = zeros(memory.theta, 2), zeros(memory.theta, 1)
    if layer.monomials >= 0:
        write_monomials(memory.work, layer, inputs.x, narrow)
    col = 0
    while col + lane_count(wide) <= layer.pad:
        _update_block(memory, layer, inputs, rates, col, wide)
        col += lane_count(wide)
    if col < layer.pad:
        _update_block(memory, layer, inputs, rates, col, narrow)


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
