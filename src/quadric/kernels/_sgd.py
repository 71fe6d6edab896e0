"""One epoch of per-sample SGD: one compiled function per dtype, for every architecture.

The function takes arrays and numbers, updates the arrays in place and returns numbers. The loop
does not use strings or Python objects, and does not allocate memory. `_layout` describes the memory
layout, and `_blocks` computes one layer.
"""

import math
from typing import Any, NamedTuple

from quadric.kernels._activations_and_losses import LossTerms, add_loss, loss_and_delta
from quadric.kernels._blocks import backward, backward_first, forward, squared_gradient, update
from quadric.kernels._compiling import EntryPoint, inline
from quadric.kernels._lanes import addresses, advance
from quadric.kernels._layout import FOLDED_INTO_WEIGHTS, Rates, inputs_of
from quadric.kernels._rows import list_sample


class EpochResult(NamedTuple):
    """The result of an epoch."""

    loss_sum: Any
    position: Any  # position in `order` of the first sample with a non-finite z or loss, or -1
    layer: Any  # first layer with a non-finite z, the last layer for a non-finite loss, or -1


@inline
def _squared_norm(offset, n):
    s = 0.0
    for i in range(n):
        s += offset[i] * offset[i]
    return s


@inline
def _fold_small_scale(memory, scale):
    """Multiply the weights by a scale that is small, zero or negative; return the new scale."""
    if scale < 1e-4:
        for p in range(memory.n_penalized):
            memory.theta[p] *= scale
        scale = 1.0
    return scale


@inline
def _gradient_norm(memory, table, sample):
    squares = 0.0
    for l in range(table.size):
        inputs = inputs_of(memory, table[l], l == 0, sample)
        squares += squared_gradient(memory.work, table[l], inputs)
    return math.sqrt(squares)


@EntryPoint
def sgd_epoch(memory, table, samples, order, step):
    """Take one SGD step for each of the samples in `order`; stop at the first non-finite z or loss.

    memory   `Memory`, updated in place. scale[0] is not reset at the end of an epoch, so that two
             half epochs and one whole epoch give bit-identical results
    table    one `LAYER` record for each layer
    samples  `SampleArrays`
    order    indices of samples
    step     `Step`
    """
    memory, samples = addresses(memory), addresses(samples)
    first, last, n_layers = table[0], table[table.size - 1], table.size
    offset_square = 0.0
    if samples.offset_use == FOLDED_INTO_WEIGHTS:
        offset_square = _squared_norm(samples.offset, first.n_in)
    scale, loss_sum = memory.scale[0], LossTerms(0.0, 1.0)

    for position in range(order.size):
        i = order[position]
        weight = samples.weights[i] * 1.0  # float64, whatever the dtype
        if weight == 0.0:
            continue
        sample = list_sample(samples, i, memory, first, offset_square)

        for l in range(n_layers):
            inputs = inputs_of(memory, table[l], l == 0, sample)
            if not forward(memory, table[l], inputs, scale):
                return EpochResult(loss_sum.value, position, l)
        y = advance(samples.Y, i * last.n_out)
        loss = loss_and_delta(step.loss, last, memory.work, y)
        if not math.isfinite(loss.value):
            return EpochResult(loss_sum.value, position, n_layers - 1)
        loss_sum = add_loss(loss_sum, loss, weight)
        for l in range(n_layers - 1, 0, -1):
            backward(memory, table[l], table[l - 1], scale)
        backward_first(memory, first, scale)

        rate = step.rate * weight
        if step.l2 > 0.0:
            scale = _fold_small_scale(memory, scale * (1.0 - rate * step.l2))
        if step.clip < math.inf:
            norm = weight * _gradient_norm(memory, table, sample)
            if norm > step.clip:
                rate *= step.clip / norm
        rates = Rates(-rate / scale, -rate)
        for l in range(n_layers):
            update(memory, table[l], inputs_of(memory, table[l], l == 0, sample), rates)

    memory.scale[0] = scale
    return EpochResult(loss_sum.value - math.log(loss_sum.likelihood), -1, -1)
