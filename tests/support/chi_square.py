"""The distribution of F + g'x + sum lam_i x_i^2 in many digits, by another path of integration."""

import itertools

import mpmath as mp


def below(F, g, lam, digits=30, slope=0.5):
    """P(Y < 0), along a hyperbola whose asymptote has the given slope."""
    with mp.workdps(digits):
        F, g, lam = mp.mpf(F), [mp.mpf(v) for v in g], [mp.mpf(v) for v in lam]
        if F + sum(lam) < 0:
            return 1 - _below(-F, g, [-v for v in lam], slope)
        return _below(F, g, lam, slope)


def _below(F, g, lam, slope):
    def logarithm(s):
        terms = (
            gi**2 * s**2 / (2 * (1 - 2 * li * s)) - mp.log(1 - 2 * li * s) / 2
            for gi, li in zip(g, lam, strict=True)
        )
        return F * s + sum(terms)

    pole = min(lam)
    end = mp.mpf(10) ** 6 if pole >= 0 else -mp.mpf("0.49") / pole
    starts = [-end * mp.mpf(10) ** (-k / mp.mpf(4)) for k in range(40)]
    c = min(starts, key=lambda s: logarithm(s) - mp.log(-s))
    level = F - sum(gi**2 / (4 * li) for gi, li in zip(g, lam, strict=True))
    bend, size = (slope if level < 0 else -slope), -c

    def f(u):
        root = mp.sqrt(1 + u * u)
        s = c + size * mp.mpc(bend * (root - 1), u)
        return mp.exp(logarithm(s)) / s * size * mp.mpc(bend * u / root, 1)

    ends = [0, *(mp.mpf(2) ** k for k in range(-2, 60))]
    pieces = []
    for low, high in itertools.pairwise(ends):
        pieces.append(mp.quad(f, [low, high], maxdegree=6))
        if low > 4 and abs(pieces[-1]) < mp.mpf(10) ** -25 * abs(sum(pieces)):
            break
    return -mp.im(sum(pieces)) / mp.pi
