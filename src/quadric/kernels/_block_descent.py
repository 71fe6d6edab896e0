"""Block coordinate descent for a quadratic function plus a sum of norms of groups."""

import numpy as np

from quadric.kernels._compiling import EntryPoint, block

NEWTON_STEPS = 60  # for the norm of one group, far more than needed
SMALLEST = 1e-14  # relative change of a norm


@block
def _radius(c, values, weight):
    """The norm r of the minimizer: sum (c_i / (values_i r + weight))^2 = 1."""
    r = 0.0
    for _ in range(NEWTON_STEPS):
        # Newton's method for the concave function f(r)^(-1/2) - 1 never passes the solution
        total, slope = 0.0, 0.0
        for i in range(len(c)):
            scale = 1.0 / (values[i] * r + weight)
            square = (c[i] * scale) ** 2
            total += square
            slope += square * values[i] * scale
        if slope <= 0.0:
            break
        step = (total - np.sqrt(total)) * np.sqrt(total) / slope
        r += step
        if abs(step) <= SMALLEST * r:
            break
    return r


@block
def _update(H, gradient, x, keys, weight, vectors, values, work):
    """Minimize over one group; return the largest change of the gradient within it."""
    size = len(x)
    c, turned, new = work[0, :size], work[1, :size], work[2, :size]
    norm = 0.0
    for i in range(size):
        c[i] = -gradient[keys[i]]
        for j in range(size):
            c[i] += H[keys[i], keys[j]] * x[j]
        norm += c[i] * c[i]
    norm = np.sqrt(norm)
    for i in range(size):
        new[i] = 0.0
    if norm > weight and size == 1:
        new[0] = c[0] * (1.0 - weight / norm) / max(values[0], 1e-300)
    elif norm > weight:
        for i in range(size):
            turned[i] = 0.0
            for j in range(size):
                turned[i] += vectors[j, i] * c[j]
        r = _radius(turned, values[:size], weight)
        for i in range(size):
            turned[i] *= r / (values[i] * r + weight)
        for i in range(size):
            for j in range(size):
                new[i] += vectors[i, j] * turned[j]
    changed = 0.0
    for i in range(size):
        change = new[i] - x[i]
        if change != 0.0:
            x[i] = new[i]
            row = H[keys[i]]
            for j in range(len(gradient)):
                gradient[j] += change * row[j]
            changed = max(changed, abs(change) * row[keys[i]])
    return changed


@EntryPoint
def block_descent(H, gradient, x, keys, starts, weights, vectors, values, tol, most):
    """Minimize gradient'(b - b0) + (b - b0)'H(b - b0)/2 + sum weights_g |x_g| from x = x0.

    b sums the coordinates with the same key: b_k = sum of x_c with keys_c = k. Group g has the
    coordinates starts[g] to starts[g + 1] - 1, of which there are at most three, with different
    keys. `vectors` and `values` are the eigenvectors and eigenvalues of its block of H, whose rows
    may be longer than `gradient`. `x` and `gradient` are updated in place. After a sweep over all
    groups, those that are not zero are repeated until no entry of the gradient changes by more than
    `tol`. Returns the number of sweeps.
    """
    groups = len(weights)
    work = np.empty((3, 3))
    active = np.zeros(groups, np.bool_)
    whole, sweeps = True, 0
    while sweeps < most:
        sweeps += 1
        changed = 0.0
        for g in range(groups):
            if not (whole or active[g]):
                continue
            some = slice(starts[g], starts[g + 1])
            own = x[some]
            changed = max(
                changed,
                _update(H, gradient, own, keys[some], weights[g], vectors[g], values[g], work),
            )
            active[g] = False
            for i in range(len(own)):
                if own[i] != 0.0:
                    active[g] = True
        if changed > tol:
            whole = False
        elif whole:
            break
        else:
            whole = True
    return sweeps
