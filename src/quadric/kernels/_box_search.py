"""The minimum of F + g'y + y'Ay over the box of all |y_i| <= 1, by branch and bound.

A node is a part of the box. Coordinates with A_ii < 0 are only ever divided into their two ends,
because a minimum is there. In a node, with D >= 0 diagonal such that A + D has no negative
eigenvalue,

    q(y) + sum_i D_i (y_i - low_i)(y_i - high_i) <= q(y),

and the left-hand side is convex. Its minimum is approximated by coordinate descent, and the plane
that touches it there is a lower bound. So neither this minimum nor D need be accurate. D has
nearly the smallest weighted trace that is possible. The weights are first equal, and then those of
the coordinates that are not at their ends, where D loosens the bound. D is found by the mixing
method for the dual problem (P. Wang, W. Chang, Z. Kolter, 2017), which minimizes the sum of
A_ij v_i'v_j over vectors v_i of length at most 1.

A node without a stationary point of the whole problem is discarded: the derivative along a
coordinate has one sign in the node, which does not touch the end of the box where this is possible,
or A has a negative eigenvalue for coordinates that are inside the box. If the derivative has one
sign and the node touches that end, the coordinate is fixed there.

Every comparison allows for rounding errors. The code is compiled without fastmath.
"""

import numpy as np

from quadric.kernels._compiling import strict, strict_entry_point

EPS = 2.220446049250313e-16
SWEEPS = 60  # of coordinate descent
MIXES = 24  # sweeps of the mixing method
WIDTH = 8  # components of its vectors
TRIALS = 4  # choices of D in a node
LEAST = 0.05  # weight of a coordinate at its end
CENTRAL = 0.6  # where a coordinate is divided, at most, in half-widths from the middle
ENDS = 1000.0  # preference for coordinates that are at an end after a division
ROUNDS = 4  # of fixing coordinates


@strict
def _value(F, g, A, y):
    """q(y), and the sum of the magnitudes of its terms."""
    total, size = F, abs(F)
    for i in range(len(y)):
        row, rough = g[i], abs(g[i])
        for j in range(len(y)):
            row += A[i, j] * y[j]
            rough += abs(A[i, j] * y[j])
        total += row * y[i]
        size += rough * abs(y[i])
    return total, size


@strict
def _descend(g, A, y, low, high):
    """Minimize q along one coordinate at a time, in place."""
    n = len(y)
    gradient = g.copy()
    for i in range(n):
        for j in range(n):
            gradient[i] += 2.0 * A[i, j] * y[j]
    for _ in range(SWEEPS):
        best = 0.0
        for i in range(n):
            if low[i] == high[i]:
                continue
            a, slope = A[i, i], gradient[i]
            if a > 0.0:
                end = min(max(y[i] - slope / (2.0 * a), low[i]), high[i])
            else:
                down, up = low[i] - y[i], high[i] - y[i]
                end = low[i] if (slope + a * down) * down <= (slope + a * up) * up else high[i]
            step = end - y[i]
            gain = -(slope + a * step) * step
            if gain > 0.0:
                best = max(best, gain)
                y[i] = end
                for j in range(n):
                    gradient[j] += 2.0 * A[j, i] * step
        if best <= 1e-13:
            break


@strict
def _fix(g, A, low, high):
    """Fix coordinates whose derivative has one sign; return whether the node can be discarded."""
    n = len(g)
    for _ in range(ROUNDS):
        changed = False
        for i in range(n):
            if low[i] == high[i]:
                continue
            middle, spread, size = g[i], 0.0, abs(g[i])
            for j in range(n):
                middle += A[i, j] * (low[j] + high[j])
                spread += abs(A[i, j]) * (high[j] - low[j])
                size += 2.0 * abs(A[i, j])
            margin = spread + (4.0 * n + 16.0) * EPS * size
            if middle > margin:
                if low[i] > -1.0:
                    return True
                high[i] = low[i]
                changed = True
            elif -middle > margin:
                if high[i] < 1.0:
                    return True
                low[i] = high[i]
                changed = True
        if not changed:
            break
    return False


@strict
def _lowest_eigenvalue(H):
    """A proven lower bound on the eigenvalues of a symmetric matrix."""
    size = 0.0
    for i in range(len(H)):
        for j in range(len(H)):
            size += H[i, j] * H[i, j]
    return np.linalg.eigvalsh(H)[0] - (8.0 * len(H) + 32.0) * EPS * np.sqrt(size)


@strict
def _shift(H, D):
    """Increase D by the same number until H + D has no negative eigenvalue."""
    M = H.copy()
    for i in range(len(D)):
        M[i, i] += D[i]
    least = _lowest_eigenvalue(M)
    if least < 0.0:
        for i in range(len(D)):
            D[i] += -least * (1.0 + 4.0 * EPS)


@strict
def _mixed(H):
    """A diagonal D >= 0 of nearly the smallest trace for which H + D is positive semidefinite."""
    f = len(H)
    V, total, D = np.zeros((f, WIDTH)), np.empty(WIDTH), np.empty(f)
    state = 12345.0
    for i in range(f):
        length = 0.0
        for k in range(WIDTH):
            state = (state * 16807.0) % 2147483647.0
            V[i, k] = state / 2147483647.0 - 0.5
            length += V[i, k] * V[i, k]
        for k in range(WIDTH):
            V[i, k] /= np.sqrt(length)
    for _ in range(MIXES):
        for i in range(f):
            for k in range(WIDTH):
                total[k] = 0.0
            for j in range(f):
                if j != i:
                    for k in range(WIDTH):
                        total[k] += H[i, j] * V[j, k]
            length = 0.0
            for k in range(WIDTH):
                length += total[k] * total[k]
            length = np.sqrt(length)
            D[i] = max(0.0, length - H[i, i])
            scale = length if H[i, i] <= length else H[i, i]
            for k in range(WIDTH):
                V[i, k] = -total[k] / scale if scale > 0.0 else 0.0
    _shift(H, D)
    return D


@strict
def _bound(constant, slope, H, D, t):
    """A lower bound on constant + slope't + t'Ht for all |t_i| <= 1, from a convex function."""
    f = len(t)
    M = H.copy()
    for i in range(f):
        M[i, i] += D[i]
        constant -= D[i]
    low, high = np.full(f, -1.0), np.full(f, 1.0)
    _descend(slope, M, t, low, high)
    bound, size = _value(constant, slope, M, t)
    for i in range(f):
        gradient, rough = slope[i], abs(slope[i])
        for j in range(f):
            gradient += 2.0 * M[i, j] * t[j]
            rough += 2.0 * abs(M[i, j])
        bound += min(gradient * (-1.0 - t[i]), gradient * (1.0 - t[i]))
        size += 2.0 * rough + D[i]
    return bound - (4.0 * f + 32.0) * EPS * size


@strict
def _improved(F, g, A, point, best, y):
    """Descend from a point; return the smallest value so far, whose point is y."""
    _descend(g, A, point, np.full(len(g), -1.0), np.full(len(g), 1.0))
    value, _ = _value(F, g, A, point)
    if value < best:
        y[:] = point
        return value
    return best


@strict
def _local(F, g, A, low, high, free):
    """The function of the free coordinates in a node, from the middle in half-widths."""
    n, f = len(g), len(free)
    center = 0.5 * (low + high)
    constant, size = _value(F, g, A, center)
    slope, H = np.empty(f), np.empty((f, f))
    for a in range(f):
        i = free[a]
        half = 0.5 * (high[i] - low[i])
        slope[a] = g[i]
        size += abs(g[i]) * half
        for j in range(n):
            slope[a] += 2.0 * A[i, j] * center[j]
            size += 2.0 * abs(A[i, j]) * half
        slope[a] *= half
        for b in range(f):
            H[a, b] = A[i, free[b]] * half * (0.5 * (high[free[b]] - low[free[b]]))
    return constant, slope, H, size


@strict
def _best_bound(constant, slope, H, t, D, enough):
    """The best lower bound for several choices of D; t and D become those of the best one.

    D is the first choice.
    """
    f = len(t)
    least = _lowest_eigenvalue(H)
    if least >= 0.0:
        D[:] = 0.0
        return _bound(constant, slope, H, D, t)
    weights, scaled = np.ones(f), np.empty((f, f))
    _shift(H, D)
    bound = _bound(constant, slope, H, D, t)
    for _ in range(TRIALS):
        if bound >= enough:
            break
        for a in range(f):
            for b in range(f):
                scaled[a, b] = H[a, b] * np.sqrt(weights[a] * weights[b])
        other, end = _mixed(scaled) / weights, t.copy()
        _shift(H, other)
        found = _bound(constant, slope, H, other, end)
        if found > bound:
            bound = found
            t[:], D[:] = end, other
        # more weight where the bound is loose
        for a in range(f):
            weights[a] = 0.5 * weights[a] + 0.5 * (LEAST + 1.0 - end[a] * end[a])
    return bound


@strict
def _is_saddle(A, low, high):
    """Whether A has a negative eigenvalue for the coordinates that are inside the box."""
    inside = np.flatnonzero((low > -1.0) & (high < 1.0))
    if len(inside) < 2:
        return False
    H = np.empty((len(inside), len(inside)))
    size = 0.0
    for a in range(len(inside)):
        for b in range(len(inside)):
            H[a, b] = A[inside[a], inside[b]]
            size += H[a, b] * H[a, b]
    return np.linalg.eigvalsh(H)[0] < -(8.0 * len(H) + 32.0) * EPS * np.sqrt(size)


@strict
def _divide(lows, highs, floors, count, low, high, i, at, curve, bound):
    """Put the two parts of a node on the stack, the more promising last; return their number."""
    middle, half = 0.5 * (low[i] + high[i]), 0.5 * (high[i] - low[i])
    first_high = low[i] if curve < 0.0 else middle + half * min(max(at, -CENTRAL), CENTRAL)
    second_low = high[i] if curve < 0.0 else first_high
    if curve >= 0.0 and not low[i] < first_high < high[i]:
        return 0  # too small to be divided
    for turn in range(2):
        lows[count + turn], highs[count + turn], floors[count + turn] = low, high, bound
        if (turn == 0) == (at > 0.0):
            highs[count + turn, i] = first_high
        else:
            lows[count + turn, i] = second_low
    return 2


@strict_entry_point
def minimize_over_box(F, g, A, starts, gap, unit, most, found, y):
    """Find the minimum of F + g'y + y'Ay over all |y_i| <= 1.

    `starts` are points from which a local search begins. The search stops when the bound is within
    `gap` times max(unit, |value|) of the value, or after `most` nodes. `y` becomes the best point,
    and `found` holds its value, the bound and the number of nodes.
    """
    n, best, lowest, nodes, count = len(g), np.inf, np.inf, 0, 1
    for row in range(len(starts)):
        best = _improved(F, g, A, starts[row].copy(), best, y)
    root, depth = _mixed(A.copy()), 4 * n + 4000
    lows, highs = np.full((depth, n), -1.0), np.full((depth, n), 1.0)
    floors = np.full(depth, -np.inf)
    while count > 0:
        count -= 1
        low, high, floor = lows[count].copy(), highs[count].copy(), floors[count]
        enough = best - 0.5 * gap * max(unit, abs(best))
        if floor >= enough or nodes >= most or count + 4 >= depth:
            lowest = min(lowest, floor)
            continue
        nodes += 1
        if _fix(g, A, low, high) or _is_saddle(A, low, high):
            continue
        free = np.flatnonzero(low < high)
        constant, slope, H, size = _local(F, g, A, low, high, free)
        f = len(free)
        t, D, bound = np.zeros(f), np.zeros(f), constant
        rough = (4.0 * n + 32.0) * EPS * size
        for a in range(f):
            D[a] = root[free[a]] * (0.5 * (high[free[a]] - low[free[a]])) ** 2
        if f > 0:
            bound = _best_bound(constant, slope, H, t, D, enough + rough)
        bound = max(floor, bound - rough)
        point = 0.5 * (low + high)
        for a in range(f):
            point[free[a]] += 0.5 * (high[free[a]] - low[free[a]]) * t[a]
        best = _improved(F, g, A, point, best, y)
        if f == 0 or bound >= best - 0.5 * gap * max(unit, abs(best)):
            lowest = min(lowest, bound)
            continue
        # D has a part that does not shrink with the node, so wide coordinates come first
        wide = (high - low)[free]
        gains = D * (1.001 - t * t) * wide * wide
        for a in range(f):
            if A[free[a], free[a]] < 0.0:
                gains[a] *= ENDS
        chosen = np.argmax(gains)
        i = free[chosen]
        parts = _divide(lows, highs, floors, count, low, high, i, t[chosen], A[i, i], bound)
        count += parts
        if parts == 0:
            lowest = min(lowest, bound)
    found[0], found[1], found[2] = best, min(lowest, best), nodes
