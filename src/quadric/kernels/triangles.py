"""z_k = x'Q_k x of a batch, straight from the triangles of Q, and its derivatives.

A triangle T has a row for each pair i <= j, in row-major order, and in it the q_ij of m neurons.
Nothing is unpacked and nothing is kept for the backward pass: all three loops compute in registers,
a lane for each sample, with half of the multiplications that the full matrices would take.

- `forward`: u_i = sum of q_ij x_j over j >= i, the diagonal halved; z = 2 sum of x_i u_i.
- `backward_x`: with a_ij = sum of q_ij dz over the neurons, dx_i = 2 sum of a_ij x_j.
- `backward_T`: dq_ij = sum of x_i x_j dz over the samples, twice that off the diagonal.

Samples, or pairs, are shared among threads by tickets; the numbers do not depend on how.

Tensors come as addresses of contiguous rows; x may be columns of a wider one, whose rows are
`stride` numbers apart. Each ticket has `room` numbers of its own to work in; the functions
`..._room` say how many it needs, for `width` samples at once.
"""

from __future__ import annotations

from quadric.kernels.compiling import SharedLoop, inline
from quadric.kernels.lanes import (
    UNIT_BYTES,
    address,
    advance,
    four_totals,
    integers,
    lane_count,
    load,
    multiply_add,
    splat,
    store,
    take_ticket,
    zeros,
)

AT_ONCE = 4  # neurons or pairs
SAMPLES_AT_ONCE = 256  # in `backward_T`, at most: what belongs to them stays in a near cache


def tile(item: int) -> int:
    """How many samples `forward` and `backward_x` take at once: two registers of `item` bytes."""
    return 2 * UNIT_BYTES // item


def forward_room(n: int, m: int, width: int) -> int:
    return (n + m + AT_ONCE) * width


def backward_x_room(n: int, m: int, width: int) -> int:
    return (2 * n + m + AT_ONCE) * width


def backward_T_width(B: int, item: int) -> int:
    lanes = UNIT_BYTES // item
    return min(SAMPLES_AT_ONCE, (B + lanes - 1) // lanes * lanes)


def backward_T_room(n: int, m: int, width: int) -> int:
    return (n + m + 2 * AT_ONCE) * width + AT_ONCE * (m + AT_ONCE)


@inline
def _share(ticket, tickets, count, unit):
    """The part of range(count) that belongs to the ticket, in whole units but for the last."""
    units = (count + unit - 1) // unit
    first, last = ticket * units // tickets, (ticket + 1) * units // tickets
    return first * unit, min(last * unit, count)


@inline
def _transpose(rows, stride, count, n, columns, width):
    """columns[i, s] = rows[s, i] for `count` samples; the rest, up to `width` of them, is 0."""
    for s in range(count):
        for i in range(n):
            columns[i * width + s] = rows[s * stride + i]
    for s in range(count, width):
        for i in range(n):
            columns[i * width + s] = 0


@inline
def _transpose_back(columns, width, count, n, rows):
    """rows[s, i] = columns[i, s]."""
    for s in range(count):
        for i in range(n):
            rows[s * n + i] = columns[i * width + s]


@inline
def _eight(zero):
    return zero, zero, zero, zero, zero, zero, zero, zero


@inline
def _add_products(sums, q, o1, o2, o3, x0, x1):
    """Add to eight sums the numbers q[0], q[o1], q[o2], q[o3], each times the blocks x0 and x1."""
    a0, a1, b0, b1, c0, c1, d0, d1 = sums
    a, b, c, d = splat(q[0], x0), splat(q[o1], x0), splat(q[o2], x0), splat(q[o3], x0)
    return (
        multiply_add(a, x0, a0), multiply_add(a, x1, a1),
        multiply_add(b, x0, b0), multiply_add(b, x1, b1),
        multiply_add(c, x0, c0), multiply_add(c, x1, c1),
        multiply_add(d, x0, d0), multiply_add(d, x1, d1),
    )  # fmt: skip


@inline
def _add_weighted(sums, u, x0, x1):
    """Add to eight sums the eight blocks u, times x0 and x1 in turn."""
    a0, a1, b0, b1, c0, c1, d0, d1 = sums
    return (
        multiply_add(u[0], x0, a0), multiply_add(u[1], x1, a1),
        multiply_add(u[2], x0, b0), multiply_add(u[3], x1, b1),
        multiply_add(u[4], x0, c0), multiply_add(u[5], x1, c1),
        multiply_add(u[6], x0, d0), multiply_add(u[7], x1, d1),
    )  # fmt: skip


@inline
def _store_eight(to, sums, lanes):
    a0, a1, b0, b1, c0, c1, d0, d1 = sums
    store(to, 0, a0)
    store(to, lanes, a1)
    store(to, 2 * lanes, b0)
    store(to, 3 * lanes, b1)
    store(to, 4 * lanes, c0)
    store(to, 5 * lanes, c1)
    store(to, 6 * lanes, d0)
    store(to, 7 * lanes, d1)


@SharedLoop
def forward(like):
    """z, shape (B, m); a ticket is for some of the samples."""
    given = integers(like)
    tickets, B, n, m, stride = given[1], given[2], given[3], given[4], given[5]
    width, room = given[6], given[7]
    x, T, z = address(given[8], like), address(given[9], like), address(given[10], like)
    zero = zeros(like, 1)
    lanes = lane_count(zero)
    half, one = splat(0.5, zero), splat(1.0, zero)
    ticket = take_ticket(given)
    while ticket < tickets:
        xt = advance(address(given[11], like), ticket * room)
        zt = advance(xt, n * width)
        first, last = _share(ticket, tickets, B, width)
        for s in range(first, last, width):
            count = min(width, last - s)
            _transpose(advance(x, s * stride), stride, count, n, xt, width)
            for k in range(0, m, AT_ONCE):
                # past the last neuron it is computed again, into rows that are not copied back
                o1, o2, o3 = min(1, m - 1 - k), min(2, m - 1 - k), min(3, m - 1 - k)
                sums = _eight(zero)
                q = advance(T, k)
                for i in range(n):
                    x0, x1 = load(xt, i * width, zero), load(xt, i * width + lanes, zero)
                    u = _add_products(_eight(zero), q, o1, o2, o3, half * x0, half * x1)
                    q = advance(q, m)
                    for j in range(i + 1, n):
                        xj0, xj1 = load(xt, j * width, zero), load(xt, j * width + lanes, zero)
                        u = _add_products(u, q, o1, o2, o3, xj0, xj1)
                        q = advance(q, m)
                    sums = _add_weighted(sums, u, x0, x1)
                sums = _add_weighted(sums, sums, one, one)
                _store_eight(advance(zt, k * width), sums, lanes)
            _transpose_back(zt, width, count, m, advance(z, s * m))
        ticket = take_ticket(given)


@SharedLoop
def backward_x(like):
    """dL/dx, shape (B, n), from dL/dz; a ticket is for some of the samples."""
    given = integers(like)
    tickets, B, n, m, stride = given[1], given[2], given[3], given[4], given[5]
    width, room = given[6], given[7]
    x, T = address(given[8], like), address(given[9], like)
    dz, dx = address(given[10], like), address(given[11], like)
    zero = zeros(like, 1)
    lanes = lane_count(zero)
    ticket = take_ticket(given)
    while ticket < tickets:
        xt = advance(address(given[12], like), ticket * room)
        dxt = advance(xt, n * width)
        dzt = advance(dxt, n * width)
        a = advance(dzt, m * width)
        first, last = _share(ticket, tickets, B, width)
        for s in range(first, last, width):
            count = min(width, last - s)
            _transpose(advance(x, s * stride), stride, count, n, xt, width)
            _transpose(advance(dz, s * m), m, count, m, dzt, width)
            for i in range(2 * n):
                store(dxt, i * lanes, zero)
            q = T
            for i in range(n):
                x0, x1 = load(xt, i * width, zero), load(xt, i * width + lanes, zero)
                d0, d1 = load(dxt, i * width, zero), load(dxt, i * width + lanes, zero)
                for j in range(i, n, AT_ONCE):
                    pairs = min(AT_ONCE, n - j)
                    o1, o2, o3 = min(1, pairs - 1) * m, min(2, pairs - 1) * m, min(3, pairs - 1) * m
                    sums = _eight(zero)
                    for k in range(m):
                        g0, g1 = load(dzt, k * width, zero), load(dzt, k * width + lanes, zero)
                        sums = _add_products(sums, advance(q, k), o1, o2, o3, g0, g1)
                    _store_eight(a, sums, lanes)
                    q = advance(q, pairs * m)
                    for p in range(pairs):
                        a0, a1 = load(a, p * width, zero), load(a, p * width + lanes, zero)
                        at = (j + p) * width
                        d0 = multiply_add(a0, load(xt, at, zero), d0)
                        d1 = multiply_add(a1, load(xt, at + lanes, zero), d1)
                        store(dxt, at, multiply_add(a0, x0, load(dxt, at, zero)))
                        store(dxt, at + lanes, multiply_add(a1, x1, load(dxt, at + lanes, zero)))
                # over what the pair (i, i) stored there, which so counts once
                store(dxt, i * width, d0 + d0)
                store(dxt, i * width + lanes, d1 + d1)
            _transpose_back(dxt, width, count, n, advance(dx, s * n))
        ticket = take_ticket(given)


@inline
def _add_four(sums, v, g0, g1, g2, g3):
    """Add to four sums the blocks v g0, v g1, v g2 and v g3."""
    return (
        multiply_add(v, g0, sums[0]), multiply_add(v, g1, sums[1]),
        multiply_add(v, g2, sums[2]), multiply_add(v, g3, sums[3]),
    )  # fmt: skip


@inline
def _store_totals(to, at, sums):
    store(to, at, four_totals(sums[0], sums[1], sums[2], sums[3]))


@inline
def _row_and_column(pair, n):
    """(i, j) of a pair of the triangle."""
    i, j = 0, pair
    while j >= n:  # the columns of row i begin at i
        i += 1
        j -= n - i
    return i, j


@SharedLoop
def backward_T(like):
    """dL/dT from dL/dz; a ticket is for some of the pairs."""
    given = integers(like)
    tickets, B, n, m, stride = given[1], given[2], given[3], given[4], given[5]
    width, room = given[6], given[7]
    x, dz, dT = address(given[8], like), address(given[9], like), address(given[10], like)
    zero = zeros(like, 1)
    lanes = lane_count(zero)
    padded = (m + AT_ONCE - 1) // AT_ONCE * AT_ONCE
    one, two = splat(1.0, zero), splat(2.0, zero)
    ticket = take_ticket(given)
    while ticket < tickets:
        xt = advance(address(given[11], like), ticket * room)
        dzt = advance(xt, n * width)
        monomials = advance(dzt, padded * width)
        found = advance(monomials, AT_ONCE * width)
        for k in range(m * width, padded * width):
            dzt[k] = 0
        first, last = _share(ticket, tickets, n * (n + 1) // 2, AT_ONCE)
        for s in range(0, B, width):
            count = min(width, B - s)
            _transpose(advance(x, s * stride), stride, count, n, xt, width)
            _transpose(advance(dz, s * m), m, count, m, dzt, width)
            i, j = _row_and_column(first, n)
            for pair in range(first, last, AT_ONCE):
                pairs = min(AT_ONCE, last - pair)
                for p in range(pairs):
                    factor = one if i == j else two
                    for b in range(0, count, lanes):
                        v = load(xt, i * width + b, zero) * load(xt, j * width + b, zero)
                        store(monomials, p * width + b, factor * v)
                    j += 1
                    if j == n:
                        i += 1
                        j = i
                for k in range(0, m, AT_ONCE):
                    sums0 = zero, zero, zero, zero
                    sums1, sums2, sums3 = sums0, sums0, sums0
                    for b in range(0, count, lanes):
                        g0 = load(dzt, k * width + b, zero)
                        g1 = load(dzt, (k + 1) * width + b, zero)
                        g2 = load(dzt, (k + 2) * width + b, zero)
                        g3 = load(dzt, (k + 3) * width + b, zero)
                        v = load(monomials, b, zero)
                        sums0 = _add_four(sums0, v, g0, g1, g2, g3)
                        v = load(monomials, width + b, zero)
                        sums1 = _add_four(sums1, v, g0, g1, g2, g3)
                        v = load(monomials, 2 * width + b, zero)
                        sums2 = _add_four(sums2, v, g0, g1, g2, g3)
                        v = load(monomials, 3 * width + b, zero)
                        sums3 = _add_four(sums3, v, g0, g1, g2, g3)
                    _store_totals(found, k, sums0)
                    _store_totals(found, padded + k, sums1)
                    _store_totals(found, 2 * padded + k, sums2)
                    _store_totals(found, 3 * padded + k, sums3)
                for p in range(pairs):
                    to, what = advance(dT, (pair + p) * m), advance(found, p * padded)
                    for k in range(m):
                        to[k] = what[k] if s == 0 else to[k] + what[k]
        ticket = take_ticket(given)
