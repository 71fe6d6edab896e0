r"""The quadratic form z_k = x'Q_k x for a batch and its gradients, with samples or inputs as lanes.

`packed` P has a row for each pair i <= j with the q_ij of m neurons (see `core._quadratic_form`).
Nothing is unpacked, and no intermediate values are kept for the backward pass. Each loop does half
of the multiplications that full matrices need, and is organized like a matrix product: six sums,
each one block of lanes, stay in registers while a number from Q (or D) multiplies a block of x.

`values_of_samples`             columns c = (i, k), lanes are samples:
                       u_c = q_iik x_i / 2 + sum_{j > i} q_ijk x_j,    z_k = 2 sum_i x_i u_c
`input_gradient_of_samples`     columns are pairs (i, j), lanes are samples:
                       a_ij = sum_k q_ijk dz_k,    dx_i = 2 sum_j a_ij x_j
                   up to three neurons: dx_i += 2 dz_k u_c, dx_j += 2 q_ijk x_i dz_k, u_c as above
`packed_gradient_over_inputs`   columns c = (i, k), lanes are inputs j, sums over samples:
                       D_c = x_i dz_k,    dq_ijk = sum D_c x_j, twice that off the diagonal

How the triangle is cut, for groups of G rows (so that 6 divides G m, for m neurons of the ticket)
and blocks of inputs j:

        j  ->
    i   \####|........|........|      #  near the diagonal: q_ii is halved, entries below are 0
    |     \##|........|........|      .  the rest of the rows; six columns are copied at a time
    v       \|........|........|

Inputs are first copied into tiles: [tile][input][lane] for z and dx, where a lane is a sample, and
[panel][sample][lane] for dP, where a lane is an input. WIDTH, CHUNK and J_BLOCK are small enough
that data stays in the caches until it is used again.

Threads share the work by tickets. The results do not depend on the number of threads, because every
entry is computed within one ticket, in the same order, and all threads flush denormal numbers.
"""

from collections import namedtuple

from llvmlite import binding

from quadric.kernels._compiling import inline
from quadric.kernels._lanes import (
    address,
    advance,
    integers,
    lane_count,
    load,
    multiply_add,
    splat,
    store,
    zeros,
)
from quadric.kernels._layout import pair_row

# Six sums of UNITS * 64 bytes occupy 12 of 16 registers with AVX2, and 12 of 32 with AVX-512.
UNITS = 2 if binding.get_host_cpu_features().get("avx512f") else 1
COLUMNS = 6
WIDTH = 256  # number of samples in tiles at once
CHUNK = 256  # number of samples in panels at once
APART = CHUNK + 8  # numbers between rows of CHUNK samples; powers of two cause cache conflicts
J_BLOCK = 128  # number of inputs j at once
FEW = 3  # largest number of neurons for which the loop for few neurons is faster


def roundings(n: int) -> int:
    """The largest number of roundings between an input and z = x'Qx, for n inputs.

    A product q_ijk x_j is added to at most J_BLOCK others. The product of the sum and x_i is added
    to z once for each input i and block of inputs j. Without FMA, products are rounded, too.
    """
    return n * -(-n // J_BLOCK) + min(n, J_BLOCK) + 2


# The arguments, all int64. There are B samples of n inputs, `stride` numbers apart, and m neurons.
# A loop processes `group` rows of a triangle at once, and each ticket has `room` numbers of
# `memory`. The rest are addresses. For the gradients, z holds dz, and the address of a gradient
# that is not wanted is 0. The neurons are divided into `ranges`, for z with samples as lanes.
# The bits of `forms` say which results are computed with neurons as lanes (`_forms`).
Arguments = namedtuple(
    "Arguments", "counter tickets B n m stride group room memory x P z dx dP forms ranges"
)
DX, DP = Arguments._fields.index("dx"), Arguments._fields.index("dP")

# Up to WIDTH samples in `count` tiles: their inputs, z or dz, and dx; `spare` is scratch memory.
Tiles = namedtuple("Tiles", "count x z dx spare")


@inline
def arguments_at(like):
    """The arguments at an address whose type determines the dtype of the numbers."""
    given = integers(like)
    return Arguments(
        given,
        given[1],
        given[2],
        given[3],
        given[4],
        given[5],
        given[6],
        given[7],
        address(given[8], like),
        address(given[9], like),
        address(given[10], like),
        address(given[11], like),
        address(given[12], like),
        address(given[13], like),
        given[14],
        given[15],
    )


# ---- pieces of the loops -------------------------------------------------------------------


@inline
def share(ticket, tickets, count, unit):
    """The ticket's part of range(count), in whole units except possibly at the end."""
    units = (count + unit - 1) // unit
    first, last = ticket * units // tickets, (ticket + 1) * units // tickets
    return first * unit, min(last * unit, count)


@inline
def _to_tiles(rows, stride, count, n, tiles, lanes):
    """tiles[s // lanes, i, s % lanes] = rows[s, i]; the last tile is padded with zeros."""
    for s in range(count):
        to, row = advance(tiles, s // lanes * n * lanes + s % lanes), advance(rows, s * stride)
        for i in range(n):
            to[i * lanes] = row[i]
    for s in range(count, (count + lanes - 1) // lanes * lanes):
        to = advance(tiles, s // lanes * n * lanes + s % lanes)
        for i in range(n):
            to[i * lanes] = 0


@inline
def _twice_from_tiles(tiles, count, place, rows, lanes):
    """rows[s, i] = 2 tiles[s // lanes, i, s % lanes] for a range of i; a row has n numbers."""
    n, (first, last) = place
    for s in range(count):
        row, tile = advance(rows, s * n), advance(tiles, s // lanes * n * lanes + s % lanes)
        for i in range(first, last):
            row[i] = 2 * tile[i * lanes]


@inline
def six_times(zero):
    return zero, zero, zero, zero, zero, zero


@inline
def add_products(sums, numbers, x):
    """Add the block x, multiplied by each of six numbers, to six sums."""
    a, b, c, d, e, f = numbers
    return (
        multiply_add(splat(a, x), x, sums[0]),
        multiply_add(splat(b, x), x, sums[1]),
        multiply_add(splat(c, x), x, sums[2]),
        multiply_add(splat(d, x), x, sums[3]),
        multiply_add(splat(e, x), x, sums[4]),
        multiply_add(splat(f, x), x, sums[5]),
    )


@inline
def six_apart(address, at, apart):
    """Six numbers at intervals of `apart`, starting at `at`."""
    return (
        address[at],
        address[at + apart],
        address[at + 2 * apart],
        address[at + 3 * apart],
        address[at + 4 * apart],
        address[at + 5 * apart],
    )


@inline
def _store_six(to, sums, lanes):
    for o in range(COLUMNS):
        store(to, o * lanes, sums[o])


@inline
def _column(c, i0, neurons):
    """Column c = (i, k) of the group that begins in row i0, for a range of neurons k."""
    m = neurons[1] - neurons[0]
    return i0 + c // m, neurons[0] + c % m


@inline
def _six_columns(c, i0, neurons):
    """Column c of the group that begins in row i0, and the next five."""
    return (
        _column(c, i0, neurons),
        _column(c + 1, i0, neurons),
        _column(c + 2, i0, neurons),
        _column(c + 3, i0, neurons),
        _column(c + 4, i0, neurons),
        _column(c + 5, i0, neurons),
    )


@inline
def _copy_corner(P, column, size, j0, j1, copy):
    """copy[j - j0, 0] = q_ijk, halved on the diagonal, and 0 below it and past the last row."""
    i, (n, m) = column[0], size
    first = min(max(i, j0), j1) if i < n else j1
    for j in range(j0, first):
        copy[(j - j0) * COLUMNS] = 0
    q = _column_start(P, column, size)
    for j in range(first, j1):
        copy[(j - j0) * COLUMNS] = q[j * m]
    if first == i and i < j1:
        copy[(i - j0) * COLUMNS] = q[i * m] / 2


@inline
def _column_start(P, column, size):
    """The address whose j-th row of m numbers begins with q_ijk for the column (i, k)."""
    (i, k), (n, m) = column, size
    return advance(P, pair_row(i, n) * m + k)


@inline
def _copy_columns(P, columns, size, j0, j1, copy):
    """copy[j - j0, o] = q_ijk of the column o, halved on the diagonal, and 0 below it."""
    m = size[1]
    corner = min(max(columns[5][0] + 1, j0), j1)  # from there on, all columns have a q_ijk
    for o in range(COLUMNS):
        _copy_corner(P, columns[o], size, j0, corner, advance(copy, o))
    starts = (
        _column_start(P, columns[0], size),
        _column_start(P, columns[1], size),
        _column_start(P, columns[2], size),
        _column_start(P, columns[3], size),
        _column_start(P, columns[4], size),
        _column_start(P, columns[5], size),
    )
    for j in range(corner, j1):
        for o in range(COLUMNS):
            copy[(j - j0) * COLUMNS + o] = starts[o][j * m]


# ---- z -------------------------------------------------------------------------------------


@inline
def clear(tiles, count, zero):
    for t in range(count):
        store(tiles, t * lane_count(zero), zero)


@inline
def _rows_of_group(m):
    """The smallest number of rows whose columns are a multiple of six, for m neurons."""
    return COLUMNS // ((3 - 2 * (m % 3 > 0)) * (2 - m % 2))


@inline
def _over_columns(given, neurons, tiles, zero, compute):
    """Copy six columns (i, k) at a time, and call `compute` with them for every tile of samples."""
    n, count = given.n, neurons[1] - neurons[0]
    group = _rows_of_group(count)
    q, size = advance(tiles.spare, COLUMNS * lane_count(zero)), (n, given.m)
    for block in range(0, n, J_BLOCK):
        j1 = min(block + J_BLOCK, n)
        for i0 in range(0, j1, group):
            j0 = max(i0, block)
            for c in range(0, min(group, n - i0) * count, COLUMNS):
                columns = _six_columns(c, i0, neurons)
                _copy_columns(given.P, columns, size, j0, j1, q)
                for t in range(tiles.count):
                    compute(tiles, t, size, columns, q, j0, j1, zero)


@inline
def _add_to_neuron(z, x, n, column, u):
    """z_k += x_i u for the column (i, k)."""
    i, k = column
    if i < n:
        at = k * lane_count(u)
        store(z, at, multiply_add(u, load(x, i * lane_count(u), u), load(z, at, u)))


@inline
def _add_values(tiles, t, size, columns, q, j0, j1, zero):
    """Add x_i u_c to z_k for the six columns c = (i, k) and the samples of tile t."""
    (n, m), lanes = size, lane_count(zero)
    x, z = advance(tiles.x, t * n * lanes), advance(tiles.z, t * m * lanes)
    u = six_times(zero)
    for j in range(j0, j1):
        u = add_products(u, six_apart(q, (j - j0) * COLUMNS, 1), load(x, j * lanes, zero))
    for o in range(COLUMNS):
        _add_to_neuron(z, x, n, columns[o], u[o])


@inline
def values_of_samples(given, ticket):
    """z, shape (B, m); each ticket covers some of the samples and of the neurons.

    The neurons are divided if there are fewer blocks of samples than threads.
    """
    n, m, zero = given.n, given.m, zeros(given.x, UNITS)
    lanes = lane_count(zero)
    x_tiles = advance(given.memory, ticket * given.room)
    z_tiles = advance(x_tiles, n * WIDTH)
    spare = advance(z_tiles, m * WIDTH)
    parts = given.tickets // given.ranges
    first, last = share(ticket % parts, parts, given.B, lanes)
    neurons = share(ticket // parts, given.ranges, m, 1)
    for s in range(first, last, WIDTH):
        count = min(WIDTH, last - s)
        tiles = Tiles((count + lanes - 1) // lanes, x_tiles, z_tiles, x_tiles, spare)
        _to_tiles(advance(given.x, s * given.stride), given.stride, count, n, x_tiles, lanes)
        clear(z_tiles, tiles.count * m, zero)
        if given.ranges == 1:  # faster, because the compiler knows the first neuron
            _over_columns(given, (0, m), tiles, zero, _add_values)
        else:
            _over_columns(given, neurons, tiles, zero, _add_values)
        _twice_from_tiles(tiles.z, count, (m, neurons), advance(given.z, s * m), lanes)


# ---- dL/dx ---------------------------------------------------------------------------------


@inline
def _add_pair(x, dx, at, a, x_i, dx_i):
    """Add a_ij x_i to dx_j, where x_j is at `at`; return dx_i + a_ij x_j."""
    store(dx, at, multiply_add(a, x_i, load(dx, at, a)))
    return multiply_add(a, load(x, at, a), dx_i)


@inline
def _add_pairs(given, tiles, zero):
    """Add sum_j a_ij x_j to dx_i, where a_ij = sum_k q_ijk dz_k."""
    n, m, lanes = given.n, given.m, lane_count(zero)
    for j0 in range(0, n, J_BLOCK):
        j1 = min(j0 + J_BLOCK, n)
        for i in range(j1):
            row = advance(given.P, pair_row(i, n) * m)
            for t in range(tiles.count):
                xt, dxt = advance(tiles.x, t * n * lanes), advance(tiles.dx, t * n * lanes)
                dzt = advance(tiles.z, t * m * lanes)
                x_i, dx_i = load(xt, i * lanes, zero), load(dxt, i * lanes, zero)
                for j in range(max(i, j0), j1, COLUMNS):
                    q, rest = advance(row, j * m), j1 - j
                    # past the block, its last pair is computed again and discarded
                    o1, o2 = min(1, rest - 1) * m, min(2, rest - 1) * m
                    o3, o4 = min(3, rest - 1) * m, min(4, rest - 1) * m
                    o5 = min(5, rest - 1) * m
                    a = six_times(zero)
                    for k in range(m):
                        q_k = q[k], q[o1 + k], q[o2 + k], q[o3 + k], q[o4 + k], q[o5 + k]
                        a = add_products(a, q_k, load(dzt, k * lanes, zero))
                    for o in range(COLUMNS):
                        if o < rest:
                            dx_i = _add_pair(xt, dxt, (j + o) * lanes, a[o], x_i, dx_i)
                # this overwrites what the pair (i, i) stored, so that the pair counts only once
                store(dxt, i * lanes, dx_i)


@inline
def _start_column(D, x, dz, n, column, zero):
    """D = x_i dz_k for the column (i, k), or 0 past the last row."""
    (i, k), lanes = column, lane_count(zero)
    product = zero
    if i < n:
        product = load(x, i * lanes, zero) * load(dz, k * lanes, zero)
    store(D, 0, product)


@inline
def _add_to_input(dx, dz, n, column, u):
    """dx_i += dz_k u for the column (i, k)."""
    (i, k), lanes = column, lane_count(u)
    if i < n:
        at = i * lanes
        store(dx, at, multiply_add(u, load(dz, k * lanes, u), load(dx, at, u)))


@inline
def _add_row(numbers, D, lanes, d):
    """d plus the sum of six numbers times the blocks D_o."""
    a, b, c, e, f, g = numbers
    d = multiply_add(splat(a, d), load(D, 0, d), d)
    d = multiply_add(splat(b, d), load(D, lanes, d), d)
    d = multiply_add(splat(c, d), load(D, 2 * lanes, d), d)
    d = multiply_add(splat(e, d), load(D, 3 * lanes, d), d)
    d = multiply_add(splat(f, d), load(D, 4 * lanes, d), d)
    return multiply_add(splat(g, d), load(D, 5 * lanes, d), d)


@inline
def _add_columns(tiles, t, size, columns, q, j0, j1, zero):
    """Add dz_k u_c to dx_i and q_ijk x_i dz_k to dx_j.

    For few neurons, this is faster than `_add_pairs`.
    """
    (n, m), lanes, D = size, lane_count(zero), tiles.spare
    x, dx = advance(tiles.x, t * n * lanes), advance(tiles.dx, t * n * lanes)
    dz = advance(tiles.z, t * m * lanes)
    for o in range(COLUMNS):
        _start_column(advance(D, o * lanes), x, dz, n, columns[o], zero)
    u = six_times(zero)
    for j in range(j0, j1):
        q_j = six_apart(q, (j - j0) * COLUMNS, 1)
        u = add_products(u, q_j, load(x, j * lanes, zero))
        store(dx, j * lanes, _add_row(q_j, D, lanes, load(dx, j * lanes, zero)))
    for o in range(COLUMNS):
        _add_to_input(dx, dz, n, columns[o], u[o])


@inline
def input_gradient_of_samples(given, ticket):
    """dL/dx, shape (B, n); each ticket covers some of the samples."""
    n, m, stride, zero = given.n, given.m, given.stride, zeros(given.x, UNITS)
    lanes = lane_count(zero)
    x_tiles = advance(given.memory, ticket * given.room)
    dx_tiles = advance(x_tiles, n * WIDTH)
    dz_tiles = advance(dx_tiles, n * WIDTH)
    first, last = share(ticket, given.tickets, given.B, lanes)
    for s in range(first, last, WIDTH):
        count = min(WIDTH, last - s)
        n_tiles = (count + lanes - 1) // lanes
        _to_tiles(advance(given.x, s * stride), stride, count, n, x_tiles, lanes)
        _to_tiles(advance(given.z, s * m), m, count, m, dz_tiles, lanes)
        clear(dx_tiles, n_tiles * n, zero)
        tiles = Tiles(n_tiles, x_tiles, dz_tiles, dx_tiles, advance(dz_tiles, m * WIDTH))
        if m <= FEW:
            _over_columns(given, (0, m), tiles, zero, _add_columns)
        else:
            _add_pairs(given, tiles, zero)
        _twice_from_tiles(dx_tiles, count, (n, (0, n)), advance(given.dx, s * n), lanes)


# ---- dL/dP ---------------------------------------------------------------------------------


@inline
def rows_of_ticket(ticket, tickets, n, group):
    """The rows i of a ticket: whole groups with roughly an equal share of the pairs."""
    first, last, pairs = n, n, n * (n + 1) // 2
    for i in range(0, n, group):
        before = pair_row(i, n) + i
        if first == n and before >= pairs * ticket // tickets:
            first = i
        if last == n and before >= pairs * (ticket + 1) // tickets:
            last = i
    return first, last


@inline
def _to_panels(rows, stride, count, n, panels, zero):
    """panels[j // lanes, s, j % lanes] = rows[s, j]; the last panel is padded with zeros."""
    lanes = lane_count(zero)
    whole = n // lanes * lanes
    for s in range(count):
        row, panel = advance(rows, s * stride), advance(panels, s * lanes)
        for j in range(0, whole, lanes):
            store(panel, j * CHUNK, load(row, j, zero))
        if whole < n:
            store(panel, whole * CHUNK, zero)
            for j in range(whole, n):
                panel[whole * CHUNK + j - whole] = row[j]


@inline
def to_columns(rows, stride, count, n, columns):
    """columns[j, s] = rows[s, j]."""
    for s in range(count):
        for j in range(n):
            columns[j * APART + s] = rows[s * stride + j]


@inline
def _store_row(found, o, row, start, place, is_first):
    """Store dq_ijk for the j of one panel, from block o of `found`; `row` belongs to (i, k)."""
    i, n, m, lanes = place
    what, to = advance(found, o * lanes), advance(row, start * m)
    if start > i and start + lanes <= n:
        for j in range(lanes):
            to[j * m] = 2 * what[j] if is_first else to[j * m] + 2 * what[j]
    else:
        for j in range(max(i - start, 0), min(n - start, lanes)):
            value = what[j] if start + j == i else 2 * what[j]
            to[j * m] = value if is_first else to[j * m] + value


@inline
def packed_gradient_over_inputs(given, ticket):
    """dL/dP, shape (n(n+1)/2, m); each ticket covers some of the rows i."""
    n, m, stride, zero = given.n, given.m, given.stride, zeros(given.x, UNITS)
    lanes = lane_count(zero)
    padded = (n + lanes - 1) // lanes * lanes
    panels = advance(given.memory, ticket * given.room)
    x_columns = advance(panels, padded * CHUNK)
    dz_columns = advance(x_columns, n * APART)
    D = advance(dz_columns, m * APART)
    found = advance(D, COLUMNS * APART)
    first, last = rows_of_ticket(ticket, given.tickets, n, given.group)
    for s in range(0, given.B, CHUNK):
        count = min(CHUNK, given.B - s)
        _to_panels(advance(given.x, s * stride), stride, count, n, panels, zero)
        to_columns(advance(given.x, s * stride), stride, count, n, x_columns)
        to_columns(advance(given.z, s * m), m, count, m, dz_columns)
        for j0 in range(0, padded, J_BLOCK):
            j1 = min(j0 + J_BLOCK, padded)
            for i0 in range(first, min(last, j1), given.group):
                columns = min(given.group, n - i0) * m
                for c in range(0, columns, COLUMNS):
                    used = min(COLUMNS, columns - c)
                    for o in range(used):
                        xi = advance(x_columns, (i0 + (c + o) // m) * APART)
                        dk = advance(dz_columns, (c + o) % m * APART)
                        for b in range(0, count, lanes):
                            store(D, o * APART + b, load(xi, b, zero) * load(dk, b, zero))
                    for start in range(max(j0, i0 // lanes * lanes), j1, lanes):
                        panel = advance(panels, start * CHUNK)
                        sums = six_times(zero)
                        for b in range(count):
                            xj = load(panel, b * lanes, zero)
                            sums = add_products(sums, six_apart(D, b, APART), xj)
                        _store_six(found, sums, lanes)
                        for o in range(used):
                            i, k = _column(c + o, i0, (0, m))
                            row = advance(given.dP, pair_row(i, n) * m + k)
                            _store_row(found, o, row, start, (i, n, m, lanes), s == 0)
