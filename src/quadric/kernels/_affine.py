"""v = W x + b of one block of neurons, and its update.

A linear layer has one such map, a reduced layer two. `col` is the first neuron of the block; `zero`
is a block of zeros, which tells its width.
"""

from typing import Any, NamedTuple

from quadric.kernels._compiling import inline
from quadric.kernels._lanes import advance, load, multiply_add, splat, store


class Affine(NamedTuple):
    """Where an affine map is stored in `theta`, see `layout.LAYER`."""

    weights: Any
    bias: Any
    u: Any
    r: Any
    pad: Any


@inline
def first_map(layer):
    """W x + b."""
    return Affine(layer.W, layer.b, layer.W_u, layer.W_r, layer.pad)


@inline
def second_map(layer):
    """U x + c, of a reduced layer."""
    return Affine(layer.U, layer.c, layer.U_u, layer.U_r, layer.pad)


@inline
def weighted_rows(rows, pad, inputs, zero):
    """sum_i x_i row_i: four rows per pass, so that no product waits for the previous one."""
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
