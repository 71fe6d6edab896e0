"""One epoch of per-sample SGD: a compiled function per dtype, for every architecture.

It takes arrays and numbers, updates in place and returns a number. No string, no allocation and no
Python object is used in the loop. `layout` describes the memory, `blocks` computes one layer.
"""

from __future__ import annotations

import math

from quadric.kernels.blocks import backward, backward_first, forward, squared_gradient, update
from quadric.kernels.compiling import EntryPoint, inline
from quadric.kernels.lanes import addresses, advance
from quadric.kernels.layout import FOLDED_INTO_WEIGHTS, Rates, inputs_of
from quadric.kernels.losses import Loss, add_loss, loss_and_delta
from quadric.kernels.rows import list_sample

# Positions in `stopped`, see `sgd_epoch`.
STOPPED_AT, STOPPED_LAYER = 0, 1


@inline
def _shrink(theta, n_penalised, scale):
    """Multiply the weights themselves by a scale that is too small, zero or negative."""
    if scale < 1e-4:
        for p in range(n_penalised):
            theta[p] *= scale
        scale = 1.0
    return scale


@EntryPoint
def sgd_epoch(memory, table, samples, order, step, stopped):
    """Take one SGD step for each of the samples in `order`; returns the sum of their losses.

    memory   `Memory`, updated in place. scale[0] is not reset at the end of an epoch: two half
             epochs give the same bits as one whole epoch
    table    one `LAYER` record for each layer
    samples  `Samples`
    step     `Step`
    stopped  output: position in `order` and layer of the first non-finite z; else unchanged
    """
    arrays, data = addresses(memory), addresses(samples)
    first, last, n_layers = table[0], table[table.size - 1], table.size
    offset_square = 0.0
    if samples.offset_use == FOLDED_INTO_WEIGHTS:
        for i in range(first.n_in):
            offset_square += samples.offset[i] * samples.offset[i]
    scale, loss_sum = memory.scale[0], Loss(0.0, 1.0)

    for position in range(order.size):
        sample = order[position]
        weight = data.weights[sample] * 1.0
        if weight == 0.0:
            continue
        x = list_sample(data, sample, arrays, first, offset_square)

        for l in range(n_layers):
            layer = table[l]
            if not forward(arrays, layer, inputs_of(arrays, layer, l == 0, x), scale):
                stopped[STOPPED_AT], stopped[STOPPED_LAYER] = position, l
                return loss_sum.value
        loss = loss_and_delta(step.loss, last, arrays.work, advance(data.Y, sample * last.n_out))
        if not math.isfinite(loss.value):
            stopped[STOPPED_AT], stopped[STOPPED_LAYER] = position, n_layers - 1
            return loss_sum.value
        loss_sum = add_loss(loss_sum, loss, weight)
        for l in range(n_layers - 1, 0, -1):
            backward(arrays, table[l], table[l - 1], scale)
        backward_first(arrays, first, scale)

        rate = step.rate * weight
        if step.l2 > 0.0:
            scale = _shrink(arrays.theta, memory.n_penalised, scale * (1.0 - rate * step.l2))
        if step.clip < math.inf:
            squares = 0.0
            for l in range(n_layers):
                layer = table[l]
                squares += squared_gradient(
                    arrays.work, layer, inputs_of(arrays, layer, l == 0, x)
                )
            norm = weight * math.sqrt(squares)
            if norm > step.clip:
                rate *= step.clip / norm
        rates = Rates(-rate / scale, -rate)
        for l in range(n_layers):
            layer = table[l]
            update(arrays, layer, inputs_of(arrays, layer, l == 0, x), rates)

    memory.scale[0] = scale
    return loss_sum.value - math.log(loss_sum.likelihood)
