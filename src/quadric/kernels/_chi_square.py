"""The distribution of a quadratic function of normal variables, with a proven error.

Y = F + g'x + sum_i lam_i x_i^2, where the x_i are independent and standard normal, has the
generating function E exp(sY) = exp(K(s)), analytic outside the real axis:

    K(s) = E(s) - sum_i log(p_i)/2,   E(s) = F s + sum_i g_i^2 s^2 / (2 p_i),   p_i = 1 - 2 lam_i s

and P(Y < 0) = -1/(2 pi i) times the integral of f(s) = exp(K(s))/s from c - i oo to c + i oo, for
every c < 0 where all p_i are positive (J. Imhof, 1961; R. Davies, 1973, for c = 0). The integrand
is symmetric, so the upper half of the path is enough, and it may take any course there. It starts
at the saddle point c, and each straight piece follows the direction in which |f| falls fastest,
but always upwards. So |f| decays even where it would only oscillate on the vertical line.

Every piece is integrated with Gauss's rule of 16 nodes. If |f| <= M in the ellipse with foci at the
ends of the piece, whose half-axes add up to RHO times its half-length h, the error is at most
64/15 M h RHO^-30 / (1 - RHO^-2) (L. Trefethen, Approximation Theory and Approximation Practice,
theorem 19.3). The ellipse is inside a disc of radius R about the middle m of the piece, and there

    |p_i| >= |p_i(m)| - 2 |lam_i| R,
    |E(s) - E(m)| <= |E'(m)| R + sum_i g_i^2 R^2 / (2 |p_i(m)|^2 (|p_i(m)| - 2 |lam_i| R)).

Beyond the end a + iu of the path, the integral along the vertical line is bounded: 1/|s| and
one |p_i|^(-1/2) fall like powers of u, and all other factors fall, except exp(E) where p_i has a
negative real part, which is bounded by its limit.

The code is compiled without fastmath, because it bounds its own rounding errors.
"""

import numpy as np

from quadric.kernels._compiling import strict, strict_entry_point

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
RHO = 2.5
REACH = (RHO + 1 / RHO) / 2  # the radius of the disc, in half-lengths
GAUSS = 64 / 15 * RHO**-30 / (1 - RHO**-2)
GROWTH = 6.0  # of log |f| within a disc
STEEP = 0.45  # the lowest slope of a piece, as an angle with the real axis
PIECES = 600
FARTHEST = 1e10  # start of the path, in units of 1 / standard deviation of Y
EPS = 2.220446049250313e-16
LOWEST = -690.0  # logarithms of |f| below this count as zero
SMALLEST = 1e-299


@strict
def _exponent(F, g, lam, s):
    """K(s), and the magnitude of its terms."""
    total = F * s
    size = abs(F) * abs(s)
    product = 1.0 + 0.0j  # of p_i^(-1/2); the principal roots, because s is above the real axis
    for i in range(len(lam)):
        p = 1.0 - 2.0 * lam[i] * s
        if g[i] != 0.0:
            term = (g[i] * s) * (g[i] * s) / (2.0 * p)
            total += term
            size += abs(term) * (1.0 + abs(s * lam[i]) / abs(p))
        product /= np.sqrt(p)
    return total, size, product


@strict
def _slope(F, g, lam, s):
    """E'(s), and the logarithmic derivative of f."""
    first = F + 0.0j
    rest = -1.0 / s
    for i in range(len(lam)):
        p = 1.0 - 2.0 * lam[i] * s
        first += g[i] * g[i] * s * (1.0 - lam[i] * s) / (p * p)
        rest += lam[i] / p
    return first, first + rest


@strict
def _growth(F, g, lam, m, R, shift):
    """A bound on log |f(s)| - log |f(m)| in the disc of radius R about m; infinite if invalid."""
    first, _ = _slope(F, g, lam, m)
    total = (abs(first) + shift) * R
    left = 1.0 - R / abs(m)
    for i in range(len(lam)):
        size = abs(1.0 - 2.0 * lam[i] * m)
        rest = size - 2.0 * abs(lam[i]) * R
        if rest <= 1e-3 * size:
            return np.inf
        total += g[i] * g[i] * R * R / (2.0 * size * size * rest)
        left *= np.sqrt(rest / size)
    return total - np.log(left) if left > 1e-100 else np.inf


@strict
def _saddle(F, g, lam, shift):
    """The minimum of K(c) - log(-c) for c < 0, by bisection; any c is valid.

    Beyond 1 / shift, f would depend on the errors of Y.
    """
    lowest = 0.0
    for i in range(len(lam)):
        lowest = min(lowest, lam[i])
    end = FARTHEST if lowest == 0.0 else min(FARTHEST, -0.5 / lowest * (1.0 - 1e-9))
    end = min(end, max(1.0, 0.1 / shift)) if shift > 0.0 else end
    low, high = end * 1e-18, end
    for _ in range(48):
        t = np.sqrt(low * high)
        slope = F + 1.0 / t
        for i in range(len(lam)):
            p = 1.0 + 2.0 * lam[i] * t
            slope += lam[i] / p - g[i] * g[i] * t * (1.0 + lam[i] * t) / (p * p)
        if slope > 0.0:  # K(c) - log(-c) increases with c: the minimum is at a larger t
            low = t
        else:
            high = t
    return -low


@strict
def _tail(g, lam, s, size):
    """A bound on the integral of |f| along the vertical line above s, where |f(s)| = size."""
    a, u = s.real, s.imag
    least, growth, normal = np.inf, 0.0, 0.0
    for i in range(len(lam)):
        if lam[i] == 0.0:
            normal += g[i] * g[i]
        else:
            p = 1.0 - 2.0 * lam[i] * s
            least = min(least, (p.real / (2.0 * lam[i] * u)) ** 2)
            if p.real < 0.0:
                growth += (g[i] / lam[i]) ** 2 / 8.0 * -p.real / (abs(p) * abs(p))
    if growth > 300.0:
        return np.inf
    length = 2.0 * u * (1.0 + least) ** 0.25 * np.sqrt(1.0 + (a / u) ** 2)
    if normal > 0.0:  # the integral of exp(-normal (v^2 - u^2) / 2) over v > u
        length = min(length, 1.0 / (normal * u))
    return size * length * np.exp(growth)


@strict
def _integrate(F, g, lam, shift):
    """P(Y < 0), P(Y < -shift), P(Y < shift) and a bound on the error of each, if E Y >= 0."""
    n = len(lam)
    c = _saddle(F, g, lam, shift)
    total, size, product = _exponent(F, g, lam, c + 0.0j)
    log_start = total.real + np.log(abs(product)) - np.log(-c)
    if log_start + size * 1e-12 + shift * -c < LOWEST:
        return 0.0, 0.0, 0.0, SMALLEST
    if shift * -c > 100.0:  # the errors of Y exceed its variation
        return 0.0, 0.0, 1.0, np.inf
    s = c + 0.0j
    middle, down, up = 0.0j, 0.0j, 0.0j
    error, whole, h = 0.0, 0.0, 0.25 * -c
    at_end = np.inf
    for piece in range(PIECES):
        if piece == 0:
            direction = 1.0j
        else:
            _, D = _slope(F, g, lam, s)
            angle = np.arctan2(D.imag, -D.real)  # of -conj(D)
            if angle < -0.5 * np.pi:
                angle = np.pi
            angle = min(max(angle, STEEP), np.pi - STEEP)
            direction = np.exp(1.0j * angle)
        h *= 2.0
        grown = np.inf
        for _ in range(200):
            grown = _growth(F, g, lam, s + h * direction, REACH * h, shift)
            if grown <= GROWTH:
                break
            h *= 0.7
        if grown > GROWTH:
            break
        m = s + h * direction
        at_m, _, product_m = _exponent(F, g, lam, m)
        log_m = at_m.real + np.log(abs(product_m)) - np.log(abs(m))
        error += GAUSS * h * np.exp(min(log_m + grown + abs(m) * shift, 700.0))
        rough, weight = 0.0, 0.0
        for k in range(len(NODES)):
            z = m + h * NODES[k] * direction
            at, size, product = _exponent(F, g, lam, z)
            f = np.exp(at) * product / z * (WEIGHTS[k] * h) * direction
            bend = np.exp(z * shift)
            middle += f
            down += f * bend
            up += f / bend
            larger = abs(f) * max(abs(bend), 1.0 / abs(bend))
            weight += larger
            rough += larger * ((8.0 * n + 40.0) + (2.0 * n + 12.0) * (size + abs(z) * shift)) * EPS
        whole += weight
        error += rough
        s += 2.0 * h * direction
        at, size, product = _exponent(F, g, lam, s)
        here = np.exp(at.real) * abs(product) / abs(s)
        at_end = _tail(g, lam, s, here * np.exp(abs(s.real) * shift))
        if at_end < 1e-13 * whole or at_end < 0.1 * rough or abs(s) * shift > 3.0:
            break
    error = (error + at_end) * 1.001 / np.pi + SMALLEST
    return -middle.imag / np.pi, -down.imag / np.pi, -up.imag / np.pi, error


@strict_entry_point
def chi_square_below(F, G, lam, levels, shifts, found):
    """P(Y < 0), P(Y < -shift), P(Y < shift) and the error, for each row of G, into `found`.

    Y = F + level g'x + level^2 sum_i lam_i x_i^2.
    """
    n = len(lam)
    g, l = np.empty(n), np.empty(n)
    for row in range(len(F)):
        variance, mean = 0.0, F[row]
        largest = 0.0
        for i in range(n):
            g[i] = levels[row] * G[row, i]
            l[i] = levels[row] * levels[row] * lam[i]
            largest = max(largest, abs(g[i]), abs(l[i]))
        if not largest > 0.0:
            found[row, 0] = found[row, 1] = found[row, 3] = 0.0
            found[row, 2] = 0.0 if F[row] > shifts[row] else 1.0
            continue
        for i in range(n):
            variance += (g[i] / largest) ** 2 + 2.0 * (l[i] / largest) ** 2
            mean += l[i]
        unit = largest * np.sqrt(variance)
        sign = 1.0 if mean >= 0.0 else -1.0
        for i in range(n):
            g[i] /= unit
            l[i] *= sign / unit
        shift = shifts[row] / unit
        middle, down, up, error = _integrate(sign * F[row] / unit, g, l, shift)
        if sign < 0.0:
            middle, down, up = 1.0 - middle, 1.0 - up, 1.0 - down
            error += 4.0 * EPS
        found[row, 0], found[row, 1], found[row, 2], found[row, 3] = middle, down, up, error
