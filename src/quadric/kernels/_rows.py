"""Rows of samples: one row as a list of (index, value) pairs, and dense rows compressed to CSR."""

import numba

from quadric.kernels._compiling import EntryPoint, inline
from quadric.kernels._lanes import (
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
from quadric.kernels._layout import ADDED_TO_INPUTS, CSR, FOLDED_INTO_WEIGHTS, Inputs

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


# ---- all samples ---------------------------------------------------------------------------


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
