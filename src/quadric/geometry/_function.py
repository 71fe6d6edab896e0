"""A quadratic function in any dimension: values, changes of coordinates and its equation."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

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
from quadric.geometry._affine_map import AffineMap


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
            tolerance = max(2e-14, len(w) * float(np.finfo(FLOAT64).eps))
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
        Y, eps = np.abs(X), float(np.finfo(FLOAT64).eps)
        if self._origin is not None:
            source, change = self._origin
            moved = (n + 2) * eps * (Y @ np.abs(change.matrix).T + np.abs(change.t))
            Y = np.abs(change.apply(X)) + moved
        Q, w = np.abs(source.Q), np.abs(source.w)
        terms = ((Y @ Q + w) * Y).sum(axis=1) + abs(source.b)
        return (2 * n + 8) * eps * terms + ((2 * Y @ Q + w) * moved).sum(axis=1)

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
        precision = check_integer("precision", precision, at_least=1)
        style = _latex_style(names) if latex else _text_style(names)
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
        terms = []
        for k in shown.tolist():
            factors = [k - len(rows)] if k >= len(rows) else [rows[k], columns[k]]
            terms.append(style.term(coefficients[k], factors, precision))
        if omitted:
            terms.append(f"+ {style.omitted(omitted)}")
        if self.b != 0 or not terms:
            terms.append(style.term(self.b, [], precision))
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


@dataclass(frozen=True)
class _Style:
    names: list[str]
    times: str
    joint: str
    square: str
    number: Callable[[str], str]
    omitted: Callable[[int], str]

    def term(self, coefficient: float, factors: list[int], precision: int) -> str:
        """The sign, the number and the monomial; a factor of 1 is not written."""
        monomial = self.joint.join(self.names[i] for i in factors)
        if len(factors) == 2 and factors[0] == factors[1]:
            monomial = self.names[factors[0]] + self.square
        number = self.number(f"{abs(coefficient):.{precision}g}")
        if monomial:
            number = monomial if number == "1" else f"{number}{self.times}{monomial}"
        return f"{'-' if coefficient < 0 else '+'} {number}"


def plain_name(name: str) -> str:
    """A name in an equation; one that is not a single word is put in brackets."""
    return name if re.fullmatch(r"\w+", name) else f"[{name}]"


def _text_style(names: Sequence[str]) -> _Style:
    """4 x² - 2 x·y; a name that is not one word is put in brackets."""
    letters = all(re.fullmatch(r"[^\W\d_]", name) for name in names)
    return _Style(
        names=[plain_name(name) for name in names],
        times=" ",
        joint="" if letters else "·",
        square="²",
        number=str,
        omitted=lambda count: f"({count} smaller term{'s' if count > 1 else ''})",
    )


SPECIAL = {c: rf"\{c}" for c in "{}%&#$_"} | {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
}


def _latex_style(names: Sequence[str]) -> _Style:
    r"""4\,x_{1}^{2}; longer names as upright text."""
    return _Style(
        names=[_latex_name(name) for name in names],
        times=r"\,",
        joint=r"\,",
        square="^{2}",
        number=lambda text: re.sub("e(.*)", lambda match: rf" \times 10^{{{int(match[1])}}}", text),
        omitted=lambda count: rf"\cdots\;(\text{{{count} smaller}})",
    )


def _latex_name(name: str) -> str:
    letter = re.fullmatch(r"([^\W\d_])_?(\d*)", name)
    if letter:
        return letter[1] + (f"_{{{letter[2]}}}" if letter[2] else "")
    return r"\text{" + "".join(SPECIAL.get(c, c) for c in name) + "}"
