"""The quadratic form with neurons as lanes, for few rows, and for dL/dP in most shapes.

`_quadratic_form_loops` fills lanes with samples or inputs. It copies Q into columns, and stores
dL/dP number by number. For few rows, most lanes would be empty, and copying Q would take longer
than the arithmetic. Here, a block of lanes is q_ijk for consecutive neurons k, as `packed` stores
them. Of a block that extends past the last neuron, only the neurons are loaded and stored.

    z     items are blocks of neurons of a sample, six at once:
              u_k = q_iik x_i / 2 + sum_{j > i} q_ijk x_j,    z_k = 2 sum_i x_i u_k
          several threads divide the rows i of few items, and store u_k; the sums come afterwards
    dx    a lane of dx_i sums some of the neurons:
              dx_i = 2 sum_{jk} q_ijk x_j dz_k
    dP    six inputs j at once, sums over samples:
              D_k = x_i dz_k,    dq_ijk = sum D_k x_j, twice that off the diagonal

For z and dP, each number is computed with the operations of `_quadratic_form_loops`, in the same
order and with the same blocks of inputs and samples. The bits are the same, so the choice of the
form (`_forms`) does not change them.
"""

from quadric.kernels._compiling import inline
from quadric.kernels._lanes import (
    advance,
    lane_count,
    load,
    load_some,
    multiply_add,
    prefetch,
    splat,
    store,
    store_some,
    total,
    zeros,
)
from quadric.kernels._layout import pair_row
from quadric.kernels._quadratic_form_loops import (
    APART,
    CHUNK,
    COLUMNS,
    J_BLOCK,
    add_products,
    clear,
    rows_of_ticket,
    share,
    six_apart,
    six_times,
    to_columns,
)

AHEAD = 2  # rows i after which prefetched memory is used, for blocks of inputs of a long row


def room_of_rows(B: int, n: int, m: int) -> int:
    """The numbers of memory for u_k of all samples, rows and blocks of inputs."""
    return B * n * m * -(-n // J_BLOCK)


def room_over_neurons(B: int, n: int, m: int, lanes: int) -> int:
    """The numbers of scratch memory that a ticket needs.

    For z, they are the sums of all items; for dx, a block for each sample and input; for dP, a
    block for each of CHUNK samples, and the columns of x, six of which may be read past the last.
    """
    return max(lanes * B * -(-m // lanes), lanes * B * n, CHUNK * lanes + (n + COLUMNS) * APART)


@inline
def _ahead(given, i):
    """How far the memory of row i + AHEAD is from that of row i."""
    return (pair_row(i + AHEAD, given.n) - pair_row(i, given.n)) * given.m


@inline
def _six_indices(c, last):
    """Six numbers that begin with c, none of which is larger than `last`."""
    return (
        c,
        min(c + 1, last),
        min(c + 2, last),
        min(c + 3, last),
        min(c + 4, last),
        min(c + 5, last),
    )


# ---- z -------------------------------------------------------------------------------------


@inline
def _item(given, c, lanes):
    """Sample, first neuron and number of neurons of the item c = (sample, block)."""
    blocks = (given.m + lanes - 1) // lanes
    k = c % blocks * lanes
    return c // blocks, k, min(lanes, given.m - k)


@inline
def _add_product(given, item, row, j, u):
    """u + q_ijk x_j for the neurons k of an item."""
    b, k, count = item
    q = load_some(row, j * given.m + k, count, u)
    return multiply_add(q, splat(given.x[b * given.stride + j], u), u)


@inline
def _half_square(given, item, row, i, zero):
    """q_iik x_i / 2 for the neurons k of an item."""
    b, k, count = item
    half = load_some(row, i * given.m + k, count, zero) * splat(0.5, zero)
    return multiply_add(half, splat(given.x[b * given.stride + i], zero), zero)


@inline
def _add_to_item(given, c, item, z, place, u):
    """z += x_i u for the neurons of the item c."""
    i, z = place[0], advance(z, c * lane_count(u))
    x_i = splat(given.x[item[0] * given.stride + i], u)
    store(z, 0, multiply_add(u, x_i, load(z, 0, u)))


@inline
def _kept(given, item, place):
    """The place of u_k in the memory of all rows: [block of inputs][sample][row][neuron]."""
    (b, k, _), (i, j0, _) = item, place
    return ((j0 // J_BLOCK * given.B + b) * given.n + i) * given.m + k


@inline
def _keep(given, c, item, memory, place, u):
    """Store u for the neurons of an item."""
    store_some(memory, _kept(given, item, place), item[2], u)


@inline
def _values_of_one(given, c, memory, place, zero, add):
    """Compute u for one item, and call `add` with it."""
    (i, j0, j1), lanes = place, lane_count(zero)
    row, item, u = advance(given.P, pair_row(i, given.n) * given.m), _item(given, c, lanes), zero
    if i >= j0:
        u = _half_square(given, item, row, i, zero)
    ahead = _ahead(given, i) + item[1]
    for j in range(max(j0, i + 1), j1):
        prefetch(row, ahead + j * given.m)
        u = _add_product(given, item, row, j, u)
    add(given, c, item, memory, place, u)


@inline
def _values_of_six(given, c, last, memory, place, zero, add):
    """Compute u for up to six items, and call `add` with them; the rest are discarded."""
    (i, j0, j1), lanes = place, lane_count(zero)
    row, u = advance(given.P, pair_row(i, given.n) * given.m), six_times(zero)
    c0, c1, c2, c3, c4, c5 = _six_indices(c, last)
    items = (
        _item(given, c0, lanes),
        _item(given, c1, lanes),
        _item(given, c2, lanes),
        _item(given, c3, lanes),
        _item(given, c4, lanes),
        _item(given, c5, lanes),
    )
    if i >= j0:
        u = (
            _half_square(given, items[0], row, i, zero),
            _half_square(given, items[1], row, i, zero),
            _half_square(given, items[2], row, i, zero),
            _half_square(given, items[3], row, i, zero),
            _half_square(given, items[4], row, i, zero),
            _half_square(given, items[5], row, i, zero),
        )
    for j in range(max(j0, i + 1), j1):
        u = (
            _add_product(given, items[0], row, j, u[0]),
            _add_product(given, items[1], row, j, u[1]),
            _add_product(given, items[2], row, j, u[2]),
            _add_product(given, items[3], row, j, u[3]),
            _add_product(given, items[4], row, j, u[4]),
            _add_product(given, items[5], row, j, u[5]),
        )
    for o in range(COLUMNS):
        if c + o <= last:
            add(given, c + o, items[o], memory, place, u[o])


@inline
def _over_items(given, first, last, memory, place, zero, add):
    """Call `add` with u of each of the items, for one row and block of inputs."""
    for c in range(first, last, COLUMNS):
        if c + 1 < last:
            _values_of_six(given, c, last - 1, memory, place, zero, add)
        else:
            _values_of_one(given, c, memory, place, zero, add)


@inline
def values_of_items(given, ticket):
    """z, shape (B, m); each ticket covers some of the items."""
    n, m, zero = given.n, given.m, zeros(given.x, 1)
    lanes = lane_count(zero)
    z = advance(given.memory, ticket * given.room)
    items = given.B * ((m + lanes - 1) // lanes)
    first, last = share(ticket, given.tickets, items, 1)
    clear(advance(z, first * lanes), last - first, zero)
    for j0 in range(0, n, J_BLOCK):
        j1 = min(j0 + J_BLOCK, n)
        for i in range(j1):
            _over_items(given, first, last, z, (i, j0, j1), zero, _add_to_item)
    for c in range(first, last):
        b, k, count = _item(given, c, lanes)
        u = load(z, c * lanes, zero)
        store_some(given.z, b * m + k, count, u + u)


@inline
def rows_of_items(given, ticket):
    """u_k of all items; each ticket covers some of the rows."""
    n, zero = given.n, zeros(given.x, 1)
    lanes = lane_count(zero)
    items = given.B * ((given.m + lanes - 1) // lanes)
    first, last = rows_of_ticket(ticket, given.tickets, n, 1)
    for j0 in range(0, n, J_BLOCK):
        j1 = min(j0 + J_BLOCK, n)
        for i in range(first, min(last, j1)):
            _over_items(given, 0, items, given.memory, (i, j0, j1), zero, _keep)


@inline
def sums_of_rows(given):
    """z, shape (B, m), from u_k of all rows, added as in `values_of_items`."""
    n, m, zero = given.n, given.m, zeros(given.x, 1)
    lanes = lane_count(zero)
    for c in range(given.B * ((m + lanes - 1) // lanes)):
        item, z = _item(given, c, lanes), zero
        b, k, count = item
        for j0 in range(0, n, J_BLOCK):
            for i in range(min(j0 + J_BLOCK, n)):
                u = load_some(given.memory, _kept(given, item, (i, j0, 0)), count, zero)
                z = multiply_add(u, splat(given.x[b * given.stride + i], zero), z)
        store_some(given.z, b * m + k, count, z + z)


# ---- dL/dx ---------------------------------------------------------------------------------


@inline
def _input_gradient_of_item(given, b, k, dx, place, zero):
    """Add q_ijk x_j dz_k to dx_i, and q_ijk x_i dz_k to dx_j; a lane of dx sums some neurons k."""
    (i, j0, j1), m, lanes = place, given.m, lane_count(zero)
    count, x = min(lanes, m - k), advance(given.x, b * given.stride)
    row, dz = advance(given.P, pair_row(i, given.n) * m + k), advance(given.z, b * m + k)
    dz_k, u, v, j = load_some(dz, 0, count, zero), zero, zero, j0
    w = dz_k * splat(x[i], zero)
    if i >= j0:
        u, j = load_some(row, i * m, count, zero) * splat(x[i], zero), i + 1
    ahead = _ahead(given, i)
    while j + 1 < j1:  # two sums, because each addition waits for the last one
        prefetch(row, ahead + j * m)
        prefetch(row, ahead + j * m + m)
        q, r = load_some(row, j * m, count, zero), load_some(row, (j + 1) * m, count, zero)
        u = multiply_add(q, splat(x[j], zero), u)
        v = multiply_add(r, splat(x[j + 1], zero), v)
        store(dx, j * lanes, multiply_add(q, w, load(dx, j * lanes, zero)))
        store(dx, (j + 1) * lanes, multiply_add(r, w, load(dx, (j + 1) * lanes, zero)))
        j += 2
    if j < j1:
        q = load_some(row, j * m, count, zero)
        u = multiply_add(q, splat(x[j], zero), u)
        store(dx, j * lanes, multiply_add(q, w, load(dx, j * lanes, zero)))
    store(dx, i * lanes, multiply_add(u + v, dz_k, load(dx, i * lanes, zero)))


@inline
def input_gradient_over_neurons(given, ticket):
    """dL/dx, shape (B, n); each ticket covers some of the samples."""
    n, m, zero = given.n, given.m, zeros(given.x, 1)
    lanes = lane_count(zero)
    sums = advance(given.memory, ticket * given.room)  # [sample][input][lane]
    first, last = share(ticket, given.tickets, given.B, 1)
    clear(sums, (last - first) * n, zero)
    for j0 in range(0, n, J_BLOCK):
        j1 = min(j0 + J_BLOCK, n)
        for i in range(j1):
            for b in range(first, last):
                dx = advance(sums, (b - first) * n * lanes)
                for k in range(0, m, lanes):
                    _input_gradient_of_item(given, b, k, dx, (i, j0, j1), zero)
    for b in range(first, last):
        for i in range(n):
            at = ((b - first) * n + i) * lanes
            given.dx[b * n + i] = 2 * total(load(sums, at, zero))


# ---- dL/dP ---------------------------------------------------------------------------------


@inline
def _store_row(given, place, o, u, is_first):
    """Store dq_ijk for the neurons from k on, where j is the o-th input after `start`."""
    (i, start, k), m = place, given.m
    j = start + o
    count, at = min(lane_count(u), m - k), (pair_row(i, given.n) + j) * m + k
    if j > i:
        u = u + u
    if not is_first:
        u = u + load_some(given.dP, at, count, u)
    store_some(given.dP, at, count, u)
    prefetch(given.dP, at + _ahead(given, i))


@inline
def packed_gradient_over_neurons(given, ticket):
    """dL/dP, shape (n(n+1)/2, m); each ticket covers some of the rows i."""
    n, m, zero = given.n, given.m, zeros(given.x, 1)
    lanes = lane_count(zero)
    D = advance(given.memory, ticket * given.room)
    x_columns = advance(D, CHUNK * lanes)
    first, last = rows_of_ticket(ticket, given.tickets, n, 1)
    for s in range(0, given.B, CHUNK):
        count = min(CHUNK, given.B - s)
        to_columns(advance(given.x, s * given.stride), given.stride, count, n, x_columns)
        for i in range(first, last):
            for k in range(0, m, lanes):
                for b in range(count):
                    x_i = splat(x_columns[i * APART + b], zero)
                    dz = load_some(given.z, (s + b) * m + k, min(lanes, m - k), zero)
                    store(D, b * lanes, dz * x_i)
                for j in range(i, n, COLUMNS):
                    sums, columns = six_times(zero), advance(x_columns, j * APART)
                    for b in range(count):
                        d = load(D, b * lanes, zero)
                        sums = add_products(sums, six_apart(columns, b, APART), d)
                    for o in range(COLUMNS):
                        if j + o < n:
                            _store_row(given, (i, j, k), o, sums[o], s == 0)
