"""Per-sample SGD: a sample as a list of inputs, and one epoch in one compiled function per dtype.

The functions take arrays and numbers, update the arrays in place and return numbers. The loops do
not use strings or Python objects, and do not allocate memory. `_layout` describes the memory
layout, and `_blocks` computes one layer.
"""

import math
from collections import namedtuple

import numba

from quadric.kernels._activations_and_losses import LossTerms, add_loss, loss_and_delta
from quadric.kernels._blocks import backward, backward_first, forward, squared_gradient, update
from quadric.kernels._compiling import EntryPoint, inline
from quadric.kernels._lanes import (
    addresses,
    advance,
    count_bits,
    lane_count,
    load,
    lowest_bit,
    nonzero_mask,
    pointer,
    splat,
    store,
    zeros,
)
from quadric.kernels._layout import (
    ADDED_TO_INPUTS,
    CSR,
    FOLDED_INTO_WEIGHTS,
    Inputs,
    Rates,
    inputs_of,
)

# The sum of the losses; the position in `order` of the first sample with a non-finite z or loss, or
# -1; the first layer with a non-finite z, the last layer for a non-finite loss, or -1.
EpochResult = namedtuple("EpochResult", "loss_sum position layer")

# ---- one sample ----------------------------------------------------------------------------


@inline
def _list_csr(indices, data, size, where, x):
    for p in range(size):
        where[p] = indices[p]
    for p in range(size):
        x[p] = data[p]


@inline
def _list_dense(row, n, where, x):
    """List the non-zero entries of a dense row; return their number."""
    zero = zeros(row, 1)
    full = nonzero_mask(splat(1.0, zero))
    size, col = 0, 0
    while col + lane_count(zero) <= n:
        entries = load(row, col, zero)
        mask = nonzero_mask(entries)
        if mask == full:
            store(x, size, entries)
            for lane in range(lane_count(zero)):
                where[size + lane] = col + lane
            size += lane_count(zero)
            mask = numba.uint64(0)
        while mask != 0:
            i = col + lowest_bit(mask)
            where[size] = i
            x[size] = row[i]
            size += 1
            mask &= mask - numba.uint64(1)
        col += lane_count(zero)
    while col < n:
        if row[col] != 0.0:
            where[size] = col
            x[size] = row[col]
            size += 1
        col += 1
    return size


@inline
def _add_offset(offset, n, where, x, size):
    """Turn the listed non-zeros s into all n inputs x = s + o."""
    p = size - 1
    for i in range(n - 1, -1, -1):  # backwards, so that an entry is read before it is overwritten
        s = 0.0
        if p >= 0 and where[p] == i:
            s = x[p]
            p -= 1
        where[i] = i
        x[i] = s + offset[i]


@inline
def list_sample(samples, i, memory, first, offset_square):
    """Write the inputs of sample i where the `first` layer reads them."""
    where, x = advance(memory.where, first.where), advance(memory.work, first.x)
    n, offset_dot = first.n_in, 0.0
    if samples.form == CSR:
        start = samples.indptr[i]
        size = samples.indptr[i + 1] - start
        _list_csr(advance(samples.indices, start), advance(samples.data, start), size, where, x)
    else:
        size = _list_dense(advance(samples.data, i * n), n, where, x)
    if samples.offset_use == ADDED_TO_INPUTS:
        _add_offset(samples.offset, n, where, x, size)
        size = n
    elif samples.offset_use == FOLDED_INTO_WEIGHTS:
        offset_dot = samples.offset_dots[i] * 1.0  # float64, whatever the dtype
    return Inputs(where, x, size, offset_dot, offset_square)


# ---- one epoch -----------------------------------------------------------------------------


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


# ---- dense rows compressed to CSR ------------------------------------------------------------


@EntryPoint
def count_nonzeros(data, n, counts):
    """counts[i] = the number of non-zero entries of row i; `data` holds rows of length n."""
    p_data, zero = pointer(data), zeros(pointer(data), 1)
    for sample in range(counts.size):
        row = advance(p_data, sample * n)
        size, col = 0, 0
        while col + lane_count(zero) <= n:
            size += count_bits(nonzero_mask(load(row, col, zero)))
            col += lane_count(zero)
        while col < n:
            if row[col] != 0.0:
                size += 1
            col += 1
        counts[sample] = size


@EntryPoint
def compress_rows(data, n, indptr, indices, values):
    """Write the non-zero entries of each row, and their columns, starting at indptr[row]."""
    p_data, p_indices, p_values = pointer(data), pointer(indices), pointer(values)
    for sample in range(indptr.size - 1):
        start = indptr[sample]
        row = advance(p_data, sample * n)
        _list_dense(row, n, advance(p_indices, start), advance(p_values, start))
