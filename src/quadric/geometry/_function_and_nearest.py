"""A quadratic function in any dimension: values, changes of coordinates, nearest zeros, equation.

The zero of F nearest to a point p is found with the secular equation. At this zero x,
``x - p`` is parallel to the gradient of F. Along the axes of Q the step d = x - p is
``d_i = -(nu/2) g_i / (1 + nu lambda_i)``, where g is the gradient at p. The nearest such x is the
one for which ``I + nu Q`` has no negative eigenvalue (J. Moré, Generalizations of the trust region
problem, 1993). In the range of nu where this holds,
``F(p + d)`` decreases strictly with nu, so its zero can be bracketed. If it has no zero (the "hard
case": p is a center or lies on an axis), nu is at the end of the range, and the rest of the step is
taken along the axis whose eigenvalue defines that end.

The range of nu is parametrized by r from 0 to infinity, such that
``d_i = -(r/2) (g_i/L) / (1 + r kappa_i)`` is accurate at both ends. If Q has a negative eigenvalue,
L is the magnitude of the lowest one, ``nu = r/(1+r)/L`` and ``kappa_i = 1 + lambda_i/L``.
Otherwise, L is the largest eigenvalue, ``nu = r/L`` and ``kappa_i = lambda_i/L``.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from quadric.checks import (
    CANCELLED,
    FLOAT64,
    Array,
    as_numbers,
    as_vector,
    axis_names,
    check_integer,
    check_number,
)

ITERATIONS = 200
CACHED = 2**14  # numbers in an array that stays in the processor's cache
EPS = float(np.finfo(FLOAT64).eps)
MAX_R = 1e100  # at larger r, a component of the gradient is practically zero


class AffineMap(NamedTuple):
    """The map x -> A x + t.

    If A is a vector, it represents a diagonal matrix. A vector is faster than a matrix, and exact
    for features whose units differ by many orders of magnitude.
    """

    A: Array
    t: Array

    @classmethod
    def simplest(cls, A: Array, t: Array) -> Self:
        """The map, with A stored as a vector if it is diagonal and invertible, else as a matrix."""
        diagonal = A if A.ndim == 1 else np.diag(A)
        if A.ndim == 1 or (A.shape[0] == A.shape[1] and not (A - np.diag(diagonal)).any()):
            return cls(diagonal.copy() if diagonal.all() else np.diag(diagonal), t)
        return cls(A, t)

    @property
    def matrix(self) -> Array:
        """A as a matrix."""
        return np.diag(self.A) if self.A.ndim == 1 else self.A

    @property
    def is_onto(self) -> bool:
        """Whether the rows of A are linearly independent, up to rounding errors."""
        if self.A.ndim == 1:
            return True
        A = self.A / self._units
        lengths = np.linalg.norm(A, axis=1, keepdims=True)
        if A.shape[0] > A.shape[1] or not lengths.all():
            return False
        return bool(np.linalg.svd(A / lengths, compute_uv=False)[-1] > 1e-10)

    @property
    def _units(self) -> Array:
        """The sizes of the columns of a square matrix, so that units do not matter; else 1."""
        n, k = self.A.shape
        lengths = np.linalg.norm(self.A, axis=0) if n == k else np.ones(k)
        return np.where(lengths > 0, lengths, 1.0)

    def apply(self, X: Array) -> Array:
        """A x + t for each row of X."""
        return (X * self.A if self.A.ndim == 1 else X @ self.A.T) + self.t

    def pull_back(self, G: Array) -> Array:
        """A'g for each row of G."""
        return G * self.A if self.A.ndim == 1 else G @ self.A

    def solve(self, y: Array) -> Array:
        """The x nearest to the origin with A x + t = y."""
        if self.A.ndim == 1:
            return (y - self.t) / self.A
        units = self._units
        if self.A.shape[0] == self.A.shape[1] and self.is_onto:
            # thin ellipsoids have rows of very different sizes
            sizes = np.linalg.norm(self.A / units, axis=1)
            return np.linalg.solve(self.A / units / sizes[:, None], (y - self.t) / sizes) / units
        return np.linalg.lstsq(self.A, y - self.t, rcond=None)[0]

    def after(self, first: Self) -> Self:
        """The map that applies `first` and then this map."""
        if first.A.ndim == 1:
            A = self.A * first.A
        else:
            A = self.A[:, None] * first.A if self.A.ndim == 1 else self.A @ first.A
        return self.simplest(A, self.apply(first.t))

    def split(self) -> tuple[Self, Self]:
        """The map as (second, first), where `first` is diagonal and `second` is well scaled.

        The columns of `second.A` have length 1, and `second.t` is the point of the image that is
        nearest to the origin.
        """
        lengths = np.linalg.norm(self.A, axis=0)
        lengths[lengths == 0] = 1.0
        A = self.A / lengths
        u = np.linalg.lstsq(A, -self.t, rcond=None)[0]
        return type(self)(A, A @ u + self.t), type(self)(lengths, -u)


class QuadraticFunction:
    """The function F(x) = x'Qx + w'x + b; see `Quadric` for the parameters."""

    def __init__(self, Q: Any, w: Any, b: Any, *, tolerance: float | None = None) -> None:
        Q, w = as_numbers("Q", Q, FLOAT64), as_numbers("w", w, FLOAT64)
        if Q.ndim != 2 or Q.shape[0] != Q.shape[1] or not len(Q) or w.shape != Q.shape[:1]:
            raise ValueError(
                "Q must have shape (n, n) and w shape (n,), with n at least 1. "
                f"Got {Q.shape} and {w.shape} instead."
            )
        self.Q: Array = Q * 0.5 + Q.T * 0.5
        self.w: Array = w.copy()
        scalar = isinstance(b, np.ndarray) and b.size == 1
        self.b = check_number("b", b.item() if scalar else b)
        if tolerance is None:  # about 100 eps; rounding errors add up in many dimensions
            tolerance = max(2e-14, len(w) * EPS)
        self.tolerance = check_number("tolerance", tolerance, at_least=0, below=1)
        self.Q.flags.writeable = self.w.flags.writeable = False
        # (source, map): F(x) = source(map(x)). The source uses well-scaled coordinates, so
        # values, kind and center are computed there. The map is onto.
        self._origin: tuple[Self, AffineMap] | None = None

    @property
    def n_dims(self) -> int:
        """Dimension of the space."""
        return len(self.w)

    def value(self, X: Any) -> Any:
        """Compute F(x).

        Parameters
        ----------
        X : array of shape (n_points, n) or (n,)
            Points at which to compute F, or a single point.

        Returns
        -------
        array of shape (n_points,) or float
            F at each point.
        """
        X, single = self._points(X)
        F, _ = self._value_and_gradient(X)
        return float(F[0]) if single else F

    def gradient(self, X: Any) -> Array:
        """Compute the gradient 2Qx + w.

        Parameters
        ----------
        X : array of shape (n_points, n) or (n,)
            Points at which to compute the gradient, or a single point.

        Returns
        -------
        array of the same shape as X
            The gradient at each point.
        """
        X, single = self._points(X)
        _, g = self._value_and_gradient(X)
        return g[0] if single else g

    def _value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        if self._origin is not None:
            source, to_source = self._origin
            F, g = source._value_and_gradient(to_source.apply(X))
            return F, to_source.pull_back(g)
        V = X @ self.Q
        return ((V + self.w) * X).sum(axis=1) + self.b, 2 * V + self.w

    def _rounding(self, X: Array) -> Array:
        """A bound on the rounding errors of `value(X)`, except for numbers that underflow.

        With K = 2 n + 8 roundings in each term, it is 2 K times the unit roundoff times the sum of
        the magnitudes of all terms (N. Higham, Accuracy and Stability of Numerical Algorithms,
        section 3.1). The map to the source moves the points by its own rounding errors.
        """
        n, source, moved = self.n_dims, self, np.zeros_like(X)
        Y = np.abs(X)
        if self._origin is not None:
            source, change = self._origin
            moved = (n + 2) * EPS * (Y @ np.abs(change.matrix).T + np.abs(change.t))
            Y = np.abs(change.apply(X)) + moved
        Q, w = np.abs(source.Q), np.abs(source.w)
        terms = ((Y @ Q + w) * Y).sum(axis=1) + abs(source.b)
        return (2 * n + 8) * EPS * terms + ((2 * Y @ Q + w) * moved).sum(axis=1)

    def equation(
        self,
        names: Sequence[str] | None = None,
        precision: int = 3,
        *,
        latex: bool = False,
        max_terms: int | None = None,
        sizes: Any = 1.0,
    ) -> str:
        """Write the equation F(x) = 0 as text or in LaTeX.

        Parameters
        ----------
        names : sequence of str, optional
            Names of the coordinates. The default is x, y, z in up to three dimensions, and
            x1, x2, ... in more.
        precision : int
            Number of significant digits.
        latex : bool
            Whether to write LaTeX.
        max_terms : int, optional
            Maximum number of terms. The largest terms are shown, followed by the number of terms
            that are omitted.
        sizes : array of shape (n,) or float
            Typical sizes of the coordinates, used to decide which terms are the largest.

        Returns
        -------
        str
            The equation.
        """
        n, sizes = self.n_dims, np.abs(as_vector("sizes", sizes, self.n_dims, FLOAT64))
        names = axis_names(names, n)
        style = _Style(names, check_integer("precision", precision, at_least=1), latex)
        rows, columns = np.triu_indices(n)
        coefficients = np.concatenate(
            [np.where(rows == columns, 1.0, 2.0) * self.Q[rows, columns], self.w]
        )
        shown, omitted = np.flatnonzero(coefficients), 0
        if max_terms is not None:
            max_terms = check_integer("max_terms", max_terms, at_least=1)
            omitted = max(0, len(shown) - max_terms)
            effects = np.abs(coefficients) * np.concatenate([sizes[rows] * sizes[columns], sizes])
            shown = np.sort(shown[np.argsort(-effects[shown], kind="stable")[:max_terms]])
        terms = [
            style.term(coefficients[k], [rows[k], columns[k]] if k < len(rows) else [k - len(rows)])
            for k in shown.tolist()
        ]
        if omitted:
            terms.append(style.omitted(omitted))
        if self.b != 0 or not terms:
            terms.append(style.term(self.b, []))
        text = " ".join(terms).removeprefix("+ ")
        return ("-" + text[2:] if text.startswith("- ") else text) + " = 0"

    def preimage(self, A: Any, t: Any = 0.0) -> Self:
        """Find the set of all x for which A x + t is on the surface.

        Parameters
        ----------
        A : array of shape (n, k) or (n,)
            Matrix of the map, or the diagonal of a diagonal matrix.
        t : array of shape (n,) or float
            Offset of the map.

        Returns
        -------
        Quadric
            The set, a surface in k dimensions.
        """
        A = as_numbers("A", A, FLOAT64)
        if A.ndim not in (1, 2) or A.shape[0] != self.n_dims or not A.size:
            raise ValueError(f"A must have shape ({self.n_dims}, k). Got {A.shape} instead.")
        return self._preimage(AffineMap.simplest(A, as_vector("t", t, self.n_dims, FLOAT64)))

    def transform(self, scale: Any = 1.0, shift: Any = 0.0) -> Self:
        """Compute the image of the surface under x -> scale * x + shift.

        ``transform(scaler.scale_, scaler.mean_)`` converts a surface learned on standardized
        features to the user's units.

        Parameters
        ----------
        scale : array of shape (n,), array of shape (n, n) or float
            Nonzero factors, or an invertible matrix for x -> scale @ x + shift.
        shift : array of shape (n,) or float
            Offset of the map.

        Returns
        -------
        Quadric
            The image.
        """
        shift = as_vector("shift", shift, self.n_dims, FLOAT64)
        scale = as_numbers("scale", scale, FLOAT64)
        if scale.ndim == 2:
            if scale.shape != self.Q.shape or np.linalg.matrix_rank(scale) < self.n_dims:
                raise ValueError(
                    f"scale must be an invertible matrix of shape {self.Q.shape}. "
                    f"Got shape {scale.shape}, or a singular matrix."
                )
            A = np.linalg.inv(scale)
            return self._preimage(AffineMap.simplest(A, -A @ shift))
        scale = as_vector("scale", scale, self.n_dims, FLOAT64)
        if not scale.all():
            raise ValueError("scale must not be zero. Got a zero; omit constant features.")
        return self._preimage(AffineMap(1 / scale, -shift / scale))

    def _preimage(self, change: AffineMap) -> Self:
        """Compute the preimage in one step, from the source of this surface."""
        source, change = self._from_source(change)
        if not change.is_onto:  # a section, which becomes the new source
            section, change = change.split()
            source = source._substitute(section)
        return source._seen_through(change)

    def _from_source(self, change: AffineMap) -> tuple[Self, AffineMap]:
        """The source of this surface, and the map to it by way of the coordinates here."""
        if self._origin is None:
            return self, change
        source, to_source = self._origin
        return source, to_source.after(change)

    def _seen_through(self, change: AffineMap) -> Self:
        """The preimage under a map that is onto, which keeps this surface as its source."""
        image = self._substitute(change)
        image._origin = self, change
        return image

    def _substitute(self, change: AffineMap) -> Self:
        """F(A x + t), with coefficients computed directly."""
        with np.errstate(all="ignore"):
            F, g = self._value_and_gradient(change.t[None])
            Q = change.pull_back(change.pull_back(self.Q).T)
            w = change.pull_back(g)[0]
        if not (np.isfinite(Q).all() and np.isfinite(w).all() and np.isfinite(F[0])):
            raise ValueError(
                "the surface is larger than floating-point numbers can represent. Its coefficients "
                "overflow in the new coordinates; measure the inputs in other units."
            )
        return type(self)(Q, w, F[0], tolerance=self.tolerance)

    def _cancelled(self, change: AffineMap) -> Self:
        """F(A x + t), with zeros in place of coefficients that are only rounding errors."""
        found, A, t = self._substitute(change), np.abs(change.matrix), np.abs(change.t)
        Q, w, b = np.abs(self.Q), np.abs(self.w), abs(self.b)

        def kept(value: Any, size: Any) -> Array:
            return np.where(np.abs(value) <= CANCELLED * size, 0.0, value)

        return type(self)(
            kept(found.Q, A.T @ Q @ A),
            kept(found.w, (2 * Q @ t + w) @ A),
            kept(found.b, (Q @ t + w) @ t + b),
            tolerance=self.tolerance,
        )

    def _points(self, X: Any) -> tuple[Array, bool]:
        X = as_numbers("X", X, FLOAT64)
        if X.ndim not in (1, 2) or X.shape[-1] != self.n_dims:
            raise ValueError(
                f"X must have shape (n_points, {self.n_dims}), or ({self.n_dims},) for one point. "
                f"Got shape {X.shape} instead."
            )
        return np.atleast_2d(X), X.ndim == 1


# ------------------------------------------------------------------- nearest zeros


def steps_to_surface(eigenvalues: Array, value: Array, gradient: Array, *, touches: bool) -> Array:
    """The shortest d with F(p + d) = 0, one row per point p; NaN if there is none.

    Parameters
    ----------
    eigenvalues : array of shape (n,)
        Eigenvalues of Q, exactly zero where Q is singular. The coordinates are those of its
        eigenvectors.
    value, gradient : arrays of shape (N,) and (N, n)
        F and its gradient at the points p.
    touches : bool
        Whether F has zeros but never changes sign, as for a point or a double plane. The nearest
        zero is then the nearest extremum of F.
    """
    d = np.zeros_like(gradient)
    if touches:
        curved = eigenvalues != 0
        d[:, curved] = -gradient[:, curved] / (2 * eigenvalues[curved])
        return d
    for sign in (1.0, -1.0):
        above = np.flatnonzero(sign * value > 0)
        count = max(1, CACHED // len(eigenvalues))
        for start in range(0, len(above), count):
            rows = above[start : start + count]
            d[rows] = _steps_down(sign * eigenvalues, sign * value[rows], sign * gradient[rows])
    return d


def _steps_down(lam: Array, F: Array, g: Array) -> Array:
    """Steps for points with F > 0; the module's docstring explains r, L and kappa."""
    lowest = float(lam.min())
    L = abs(lowest) if lowest < 0 else float(np.abs(lam).max()) or 1.0
    lam, F, g = lam / L, F / L, g / L
    kappa = lam - min(lowest / L, 0.0)
    if lowest < 0:
        kappa[kappa <= 4 * EPS] = 0.0  # equal to the lowest eigenvalue, up to rounding

    r = _solve_secular(lam, kappa, F, g)
    hard = np.isnan(r)
    d = np.empty_like(g)
    d[~hard] = _step(r[~hard, None], kappa, g[~hard])
    d[hard] = _hard_steps(lam, kappa, F[hard], g[hard]) if lowest < 0 else np.nan
    return d


def _step(r: Array, kappa: Array, g: Array) -> Array:
    return -r / 2 * g / (1 + r * kappa)


def _solve_secular(lam: Array, kappa: Array, F: Array, g: Array) -> Array:
    """The r with F(p + d(r)) = 0, by Newton's method within a bracket; NaN in the hard case."""

    def excess(rows: Array, r: Array) -> tuple[Array, Array]:
        """F(p + d(r)) and its derivative with respect to r."""
        r = r[:, None]
        d = _step(r, kappa, g[rows])
        slope = -g[rows] / 2 / (1 + r * kappa) ** 2
        return (
            F[rows] + ((g[rows] + lam * d) * d).sum(axis=1),
            (slope * (g[rows] + 2 * lam * d)).sum(axis=1),
        )

    low, high = np.full(len(F), 1 / MAX_R), np.full(len(F), MAX_R)
    r = np.ones(len(F))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        hard = ~(excess(np.arange(len(F)), high)[0] < 0)
        active = np.flatnonzero(~hard)
        for _ in range(ITERATIONS):
            if not len(active):
                break
            now = r[active]
            f, slope = excess(active, now)
            low[active] = lower = np.where(f > 0, now, low[active])
            high[active] = upper = np.where(f > 0, high[active], now)
            # r may have any magnitude: first bisect its exponent, then take Newton steps
            wide = upper > 4 * lower
            middle = np.where(wide, np.sqrt(lower) * np.sqrt(upper), (lower + upper) / 2)
            newton = now - f / slope
            usable = ~wide & (newton > lower) & (newton < upper)
            following = np.where(usable, newton, middle)
            r[active] = following
            done = (np.abs(following - now) <= EPS * now) | (upper - lower <= 2 * EPS * lower)
            active = active[~done]
    r[hard] = np.nan
    return r


def _hard_steps(lam: Array, kappa: Array, F: Array, g: Array) -> Array:
    """Steps for r = infinity: the gradient has no component along axes with kappa = 0."""
    free = kappa == 0
    d = np.zeros_like(g)
    d[:, ~free] = -g[:, ~free] / (2 * kappa[~free])
    rest = F + ((g + lam * d) * d).sum(axis=1)
    d[:, np.flatnonzero(free)[0]] = np.sqrt(np.maximum(rest, 0.0))
    return d


# ------------------------------------------------------------------------ equation


class _Style:
    r"""Terms as text, such as 4 x² - 2 x·y, or in LaTeX, such as 4\,x_{1}^{2}."""

    def __init__(self, names: Sequence[str], precision: int, latex: bool) -> None:
        self.names = [_latex_name(name) if latex else plain_name(name) for name in names]
        self.precision, self.latex = precision, latex
        joint = "" if all(re.fullmatch(r"[^\W\d_]", name) for name in names) else "·"
        self.times, self.joint, self.square = (r"\,", r"\,", "^{2}") if latex else (" ", joint, "²")

    def term(self, coefficient: float, factors: list[int]) -> str:
        """The sign, the number and the monomial; a factor of 1 is not written."""
        monomial = self.joint.join(self.names[i] for i in factors)
        if len(factors) == 2 and factors[0] == factors[1]:
            monomial = self.names[factors[0]] + self.square
        number = f"{abs(coefficient):.{self.precision}g}"
        if self.latex:
            number = re.sub("e(.*)", lambda match: rf" \times 10^{{{int(match[1])}}}", number)
        if monomial:
            number = monomial if number == "1" else f"{number}{self.times}{monomial}"
        return f"{'-' if coefficient < 0 else '+'} {number}"

    def omitted(self, count: int) -> str:
        """A note about terms that are not shown."""
        words = f"({count} smaller term{'s' if count > 1 else ''})"
        return rf"+ \cdots\;(\text{{{count} smaller}})" if self.latex else f"+ {words}"


def plain_name(name: str) -> str:
    """A name in an equation; one that is not a single word is put in brackets."""
    return name if re.fullmatch(r"\w+", name) else f"[{name}]"


SPECIAL = {c: rf"\{c}" for c in "{}%&#$_"} | {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
}


def _latex_name(name: str) -> str:
    letter = re.fullmatch(r"([^\W\d_])_?(\d*)", name)
    if letter:
        return letter[1] + (f"_{{{letter[2]}}}" if letter[2] else "")
    return r"\text{" + "".join(SPECIAL.get(c, c) for c in name) + "}"
