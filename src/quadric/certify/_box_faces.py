"""The nearest zeros of quadratic functions within a box: on every face, or by a local minimizer.

The nearest point of ``{F <= 0}`` within a box is in the interior of exactly one face, on which some
coordinates are at a bound and the others are free. There, it is a local minimum of the length of
the step d, so that ``(A + mu I) d = -g/2`` for a mu > 0, where g is the gradient of F at the start
and A its second-order part along the face. At most one eigenvalue of ``A + mu I`` is negative,
because the second-order condition holds on the tangent plane (J. Martínez, Local minimizers of
quadratic functions on Euclidean balls and spheres, 1994). This leaves few candidates per face:

- the nearest zero, for which no eigenvalue is negative. It is the root of F(d(mu)), which increases
  there. If g has no component along the lowest eigenvector (the "hard case"), there are two.
- one more local minimum, for which one eigenvalue is negative. Between two poles, |d(mu)| is
  convex, and F(d(mu)) increases exactly where |d(mu)| decreases. So there is one root at most on
  the side of the pole of the lowest eigenvalue, and the root on the other side is no minimum.
- the point where the gradient of F vanishes along the face, if F is zero or less there.

If an eigenvalue is multiple, the nearest zeros may be a whole sphere. Either all of it is within
the bounds, or it crosses another face, which has fewer free coordinates.

`descend` is for boxes with too many faces, and for points where several functions are negative.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import Bounds, minimize

from quadric.checks import Array

NARROW = 1e-100  # ratio of the ends of a bracket
EDGE = 1e-9  # distance from a bound, relative to the step, that counts as rounding error
FLAT = 1e-13  # eigenvalues that count as zero, relative to the largest
LEVEL = 1e-9  # values of F that count as zero, relative to its terms
MOST_BOUNDED = 39  # faces are numbered in 64 bits
MOST_INPUTS = 200
LEAD = 1e-7  # how far below zero, relative to the values at the row
SAMPLES, NUMBERS = 4096, 2**22  # random steps, and numbers in the matrix products for them
STARTS = (4, 16)  # random steps that are starts of the minimizer: fewer for many inputs


@dataclass(frozen=True)
class Tie:
    """The function F(s) = F + g's + s'As of steps s from a row."""

    F: float
    g: Array
    A: Array

    @classmethod
    def of(cls, F: float, g: Array, A: Array) -> "Tie":
        """The function, divided by its largest coefficient."""
        size = max(abs(F), float(np.abs(g).max(initial=0)), float(np.abs(A).max(initial=0)))
        return cls(F / size, g / size, A / size) if size > 0 else cls(F, g, A)

    def at(self, steps: Array) -> Array:
        """F at each step."""
        return np.asarray(self.F + ((steps @ self.A + self.g) * steps).sum(axis=-1))

    def slope(self, steps: Array) -> Array:
        """The gradient at each step."""
        return 2 * steps @ self.A + self.g


class Walk:
    """Visits the faces of a box, from those with the fewest coordinates at bounds.

    A face is left out if no zero of F in its plane is closer than the best known step, because this
    is also true of all faces within it.

    Parameters
    ----------
    tie : Tie
        The function F.
    low, high : arrays
        The bounds of the steps; infinite where there is none.
    """

    def __init__(self, tie: Tie, low: Array, high: Array) -> None:
        self.tie, self.low, self.high = tie, low, high
        self.sides = np.zeros((1, len(low)), dtype=np.int8)  # -1 and 1: at a bound
        self.floors = np.zeros(1)
        self.shortest = np.inf  # the length of the shortest candidate
        self.bounded = np.flatnonzero(np.isfinite(low) | np.isfinite(high))

    @property
    def work(self) -> float:
        """An estimate of the time that the next visit needs."""
        count, n = self.sides.shape
        m = n - np.count_nonzero(self.sides[:1])
        return np.inf if len(self.bounded) > MOST_BOUNDED and m < n else count * (1e3 + m**3)

    def problems(self) -> tuple[Array, Array, Array]:
        """F, its gradient and its second-order part on each face, at the point next to the row."""
        self.base = np.where(self.sides < 0, self.low, np.where(self.sides > 0, self.high, 0.0))
        m = self.low.size - np.count_nonzero(self.sides[:1])
        self.free = np.argsort(self.sides != 0, axis=1, kind="stable")[:, :m]
        g = np.take_along_axis(self.tie.slope(self.base), self.free, axis=1)
        A = self.tie.A[self.free[:, :, None], self.free[:, None, :]]
        return self.tie.at(self.base), g, A

    def candidates(self, found: Array, nearest: Array) -> Array:
        """The steps within the bounds, from the local minima on all faces."""
        steps = np.repeat(self.base[:, None], found.shape[1], axis=1)
        np.put_along_axis(steps, np.broadcast_to(self.free[:, None], found.shape), found, axis=2)
        self.floors = np.hypot(np.linalg.norm(self.base, axis=1), nearest)
        self.nearest = steps[:, 0]
        exists = np.isfinite(steps).all(axis=2)
        if not found.shape[2]:  # a corner
            exists &= np.isfinite(nearest)[:, None]
        steps = steps[exists]
        edge = EDGE * np.linalg.norm(steps, axis=1)[:, None]
        inside = (steps >= self.low - edge) & (steps <= self.high + edge)
        steps = steps[inside.all(axis=1)].clip(self.low, self.high)
        self.shortest = float(np.linalg.norm(steps, axis=1).min(initial=self.shortest))
        return steps

    def advance(self, best: float) -> bool:
        """Go to the faces with one more coordinate at a bound; whether there are any."""
        parents = self.sides[self.floors < best * (1 - EDGE)]
        powers = np.zeros(self.low.size, dtype=np.int64)
        powers[self.bounded] = 3 ** np.arange(len(self.bounded), dtype=np.int64)
        found = [parents[:0]]
        for i in self.bounded:
            # each face is made once, from its parent without the last coordinate
            some = parents[~parents[:, i:].any(axis=1)]
            for side, end in ((-1, self.low[i]), (1, self.high[i])):
                if np.isfinite(end):
                    more = some.copy()
                    more[:, i] = side
                    found.append(more)
        sides = np.concatenate(found)
        known, numbers, kept = parents % 3 @ powers, sides % 3 @ powers, np.full(len(sides), True)
        for i in self.bounded:
            parent = numbers - sides[:, i] % 3 * powers[i]
            kept &= (sides[:, i] == 0) | np.isin(parent, known)
        self.sides = sides[kept]
        return bool(len(self.sides))

    def clamp(self, best: float) -> Array:
        """The candidates on a few faces: coordinates that leave the bounds are moved to them."""
        walk, found = Walk(self.tie, self.low, self.high), []
        while True:
            found += visit([walk])
            step = walk.nearest[0]
            out = np.sign((step > self.high) * 1 - (step < self.low) * 1)
            if not out.any() or walk.floors[0] >= best:
                return np.concatenate(found)
            walk.sides = (walk.sides + out).astype(np.int8)


def visit(walks: Sequence[Walk]) -> list[Array]:
    """The candidates of several walks on the faces that they have reached.

    All walks have the same number of coordinates at bounds.
    """
    problems = [walk.problems() for walk in walks]
    found, nearest = local_minima(*(np.concatenate(part) for part in zip(*problems, strict=True)))
    ends = np.cumsum([len(walk.sides) for walk in walks])[:-1]
    parts = zip(walks, np.split(found, ends), np.split(nearest, ends), strict=True)
    return [walk.candidates(*part) for walk, *part in parts]


def local_minima(F: Array, g: Array, A: Array) -> tuple[Array, Array]:
    """Steps to all local minima of |d| where F is zero or less, and the length of the shortest.

    Parameters
    ----------
    F, g, A : arrays of shape (N,), (N, m) and (N, m, m)
        The coefficients of N functions.

    Returns
    -------
    array of shape (N, 4, m)
        The steps; NaN where there are fewer. The first is the nearest.
    array of shape (N,)
        The length of the nearest step; infinite if F has no zero.
    """
    count, m = g.shape
    if not m:
        return np.empty((count, 1, 0)), np.where(F > 0, np.inf, 0.0)
    lam, V = np.linalg.eigh(A)
    G = (V.transpose(0, 2, 1) @ g[:, :, None])[:, :, 0]
    with np.errstate(all="ignore"):
        problems = _Problems(F, G, lam)
        others = np.stack([problems.other(), problems.flat()], axis=1)
        found = np.concatenate([problems.nearest(), others], axis=1)
    length = np.linalg.norm(found[:, 0], axis=1)
    return found @ V.transpose(0, 2, 1), np.where(np.isnan(length), np.inf, length)


@dataclass(frozen=True)
class _Problems:
    """Functions F + G'd + d'diag(lam)d, with the eigenvalues lam in ascending order."""

    F: Array
    G: Array
    lam: Array

    def at(self, d: Array) -> Array:
        return np.asarray(self.F + ((self.G + self.lam * d) * d).sum(axis=1))

    def nearest(self) -> Array:
        """The nearest zeros, of shape (N, 2, m): one, or two in the hard case."""
        kappa = self.lam - np.minimum(self.lam[:, :1], 0.0)
        squares = (self.G**2).sum(axis=1)
        top = np.fmax(squares / self.F, np.abs(self.lam).max(axis=1))  # F is positive beyond
        top = np.clip(top, 1e-150, 1e150)

        def step(t: Array) -> Array:
            return -self.G / (2 * (kappa + t[:, None]))

        t = _root(lambda t: self.at(step(t)), top * NARROW, top)
        found = np.full((len(t), 2, self.G.shape[1]), np.nan)
        found[:, 0] = step(t)
        hard = self.at(step(top * NARROW)) > 0
        rest = step(top * NARROW)
        rest[:, 0] = 0.0
        far = np.sqrt(self.at(rest) / -self.lam[:, 0])
        far[~(self.lam[:, 0] < 0)] = np.nan
        found[hard] = rest[hard, None]
        found[hard, 0, 0], found[hard, 1, 0] = far[hard], -far[hard]
        found[self.F <= 0] = np.nan
        found[self.F <= 0, 0] = 0.0
        return found

    def other(self) -> Array:
        """The local minima for which one eigenvalue of A + mu I is negative."""
        kappa = self.lam - self.lam[:, :1]
        gap = kappa[:, 1] if kappa.shape[1] > 1 else np.full(len(kappa), np.inf)
        top = np.fmin(-self.lam[:, 0], gap) * (1 - 1e-15)
        there = top > 0
        top = np.where(there, top, 1.0)

        def step(t: Array) -> Array:
            return -self.G / (2 * (kappa - t[:, None]))

        def longer(t: Array) -> Array:
            return np.asarray((self.G**2 / (kappa - t[:, None]) ** 3).sum(axis=1))

        # |d| decreases up to `end`, and F increases
        end = _root(longer, top * NARROW, top)
        end = np.where(longer(top) < 0, top, end)
        t = _root(lambda t: self.at(step(t)), end * NARROW, end)
        found = step(t)
        there &= (self.at(step(end * NARROW)) < 0) & (self.at(step(end)) >= 0)
        found[~there] = np.nan
        return found

    def flat(self) -> Array:
        """The points where the gradient vanishes, if F is zero or less there."""
        curved = np.abs(self.lam) > FLAT * np.abs(self.lam).max(axis=1, keepdims=True)
        d = np.where(curved, -self.G / (2 * self.lam), 0.0)
        terms = np.abs(self.F) + np.abs(self.G * d).sum(axis=1)
        d[~(self.at(d) <= LEVEL * terms)] = np.nan
        return d


def _root(f: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """The points between positive ends where an increasing function changes its sign."""
    for _ in range(66):  # halvings of the exponent of a bracket, until its ends are equal
        middle = np.sqrt(low) * np.sqrt(high)
        below = f(middle) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high


# ---------------------------------------------------------------------- local minimizer


def descend(ties: Sequence[Tie], low: Array, high: Array, starts: Array) -> Array:
    """Short steps within bounds at which all functions are negative, not verified.

    Parameters
    ----------
    ties : sequence of Tie
        The functions.
    low, high : arrays of shape (n,)
        The bounds of the steps.
    starts : array of shape (N, n)
        Steps to start from, besides random ones.
    """
    n = len(low)
    if n > MOST_INPUTS:
        return np.empty((0, n))
    # the minimizer stops at absolute differences, so steps are measured in those that are known
    unit = float(np.linalg.norm(starts, axis=1).max(initial=0.0)) or 1.0
    ties = [Tie.of(tie.F, tie.g * unit, tie.A * unit**2) for tie in ties]
    low, high, starts = low / unit, high / unit, starts / unit
    F, g, A = (np.array([getattr(tie, name) for tie in ties]) for name in ("F", "g", "A"))
    # a small lead, so that the solution is inside the region where several functions are zero
    least = LEAD * float(np.abs(F).max())
    constraint: Any = {
        "type": "ineq",
        "fun": lambda s: -((A @ s + g) @ s + F) - least,
        "jac": lambda s: -(2 * A @ s + g),
    }
    found = []
    for start in np.concatenate([starts, _random_steps(ties, low, high)]):
        solved = minimize(
            lambda s: (s @ s, 2 * s),
            start.clip(low, high),
            jac=True,
            method="SLSQP",
            bounds=Bounds(low, high),
            constraints=[constraint],
            options={"ftol": 1e-10},
        )
        if np.isfinite(solved.x).all():
            found.append(solved.x.clip(low, high) * unit)
    return np.array(found).reshape(-1, n)


def _random_steps(ties: Sequence[Tie], low: Array, high: Array) -> Array:
    """Random steps within the bounds: the shortest with negative values, and almost negative ones.

    Most of them differ from zero in a few coordinates only.
    """
    n, rng = len(low), np.random.default_rng(0)
    shape = (int(np.clip(NUMBERS // n**2, STARTS[1], SAMPLES)), n)
    # lengths of about 0.1 to 30, relative to the given ones
    steps = rng.normal(size=shape) * 10 ** rng.uniform(-1.0, 1.5, size=(shape[0], 1))
    boxed = np.isfinite(low) & np.isfinite(high)
    inside = rng.uniform(np.where(boxed, low, 0.0), np.where(boxed, high, 0.0), size=shape)
    steps = np.where(boxed & (rng.random(shape) < 0.5), inside, steps)
    steps = np.where(rng.random(shape) < rng.random((shape[0], 1)) ** 2, 0.0, steps)
    steps = steps.clip(low, high)
    values = np.max([tie.at(steps) for tie in ties], axis=0)
    order = np.lexsort([np.linalg.norm(steps, axis=1), np.maximum(values, 0.0)])
    return steps[order[: int(np.clip(256 // n, *STARTS))]]
