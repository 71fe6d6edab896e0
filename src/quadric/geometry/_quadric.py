"""A quadric surface, in any dimension."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from quadric._utils import checks
from quadric._utils.arrays import Array, as_numbers, as_vector
from quadric.geometry import _equation as equations
from quadric.geometry._canonical_form import CentralForm, Shape, central_form, default_tolerance
from quadric.geometry._graded import graded_eigh
from quadric.geometry._kinds import kind_of
from quadric.geometry._nearest import steps_to_surface

FLOAT = np.dtype(np.float64)


class Origin(NamedTuple):
    """x is on the surface where A x + t is on `source`; a vector A stands for a diagonal matrix.

    A matrix has independent rows, so that the signs of `source` are those of the surface.
    """

    source: Quadric
    A: Array
    t: Array

    def there(self, X: Array) -> Array:
        """The points A x + t."""
        return (X * self.A if self.A.ndim == 1 else X @ self.A.T) + self.t

    def here(self, c: Array) -> Array:
        """The x nearest to the origin with A x + t = c."""
        if self.A.ndim == 1:
            return (c - self.t) / self.A
        return np.linalg.lstsq(self.A, c - self.t, rcond=None)[0]


class Axes(NamedTuple):
    """The principal axes: `directions[i]` is a unit vector, `half_lengths[i]` its half-length.

    The longest comes first. Where the surface is straight the half-length is infinite; a cone has
    zeros, and a paraboloid, which has no centre to measure from, NaN.
    """

    directions: Array
    half_lengths: Array


class Quadric:
    """The set F(x) = x'Qx + w'x + b = 0.

    Parameters
    ----------
    Q : array of shape (n, n)
        An unsymmetric one is replaced by (Q + Q')/2, which is the same function.
    w : array of shape (n,)
    b : float
    tolerance : float, optional
        How exact the coefficients are, relative to the size of Q, of w and of b: what a change
        of that size could make zero counts as zero. The default is about a hundred rounding
        errors; give a larger one for rounded or measured coefficients.

    Examples
    --------
    >>> q = Quadric([[1, 0], [0, 4]], [-2, 0], -3)
    >>> q.kind, q.center.tolist(), q.axes.half_lengths.tolist()
    ('ellipse', [1.0, 0.0], [2.0, 1.0])
    >>> q.equation(["x", "y"])
    'x² + 4 y² - 2 x - 3 = 0'
    >>> q.distance([1, 0]), q.encloses([[0, 0], [4, 0]]).tolist()
    (1.0, [True, False])
    """

    Q: Array
    w: Array
    b: float
    tolerance: float

    def __init__(self, Q: Any, w: Any, b: Any, *, tolerance: float | None = None) -> None:
        Q, w = as_numbers("Q", Q, FLOAT), as_numbers("w", w, FLOAT)
        if Q.ndim != 2 or Q.shape[0] != Q.shape[1] or not len(Q) or w.shape != Q.shape[:1]:
            raise ValueError(
                "Q must have shape (n, n) and w shape (n,), n at least 1. "
                f"Got {Q.shape} and {w.shape} instead."
            )
        self.Q = Q * 0.5 + Q.T * 0.5
        self.w = w.copy()
        scalar = isinstance(b, np.ndarray) and b.size == 1
        self.b = checks.check_number("b", b.item() if scalar else b)
        if tolerance is None:
            tolerance = default_tolerance(len(w))
        self.tolerance = checks.check_number("tolerance", tolerance, at_least=0, below=1)
        self.Q.flags.writeable = self.w.flags.writeable = False
        # where this surface comes from: values, signs and centre are found there, in coordinates
        # in which the coefficients are of one size
        self._origin: Origin | None = None

    @property
    def n_dims(self) -> int:
        """The dimension of the space."""
        return len(self.w)

    # ---- the function ----

    def value(self, X: Any) -> Any:
        """F(x), for one point of shape (n,) or for each row of X."""
        X, single = self._points(X)
        F, _ = self._value_and_gradient(X)
        return float(F[0]) if single else F

    def gradient(self, X: Any) -> Array:
        """2Qx + w, for one point of shape (n,) or for each row of X."""
        X, single = self._points(X)
        _, g = self._value_and_gradient(X)
        return g[0] if single else g

    def _value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        if self._origin is not None:
            F, g = self._origin.source._value_and_gradient(self._origin.there(X))
            return F, g * self._origin.A if self._origin.A.ndim == 1 else g @ self._origin.A
        V = X @ self.Q
        return ((V + self.w) * X).sum(axis=1) + self.b, 2 * V + self.w

    # ---- what it is ----

    @cached_property
    def _form(self) -> CentralForm:
        """The axes, in these coordinates; signs and centre from where the surface comes from."""
        if self._origin is None:
            return central_form(self.Q, self.w, self.b, self.tolerance)
        source, A, _ = self._origin
        there, shape = source._form, self._shape
        form = central_form(self.Q, self.w, self.b, self.tolerance, shape)
        if shape.slanted or shape.rank == 0:
            return form
        eigenvalues, directions = form.eigenvalues, form.directions
        if source.n_dims in (shape.positive, shape.negative):
            # Q = R R' or -R R': the singular values of R are the roots, to twice the digits
            R = there.directions.T * np.sqrt(np.abs(there.eigenvalues))
            R = A[:, None] * R if A.ndim == 1 else A.T @ R
            U, sigma, _ = np.linalg.svd(R)
            eigenvalues = np.zeros(self.n_dims)
            eigenvalues[: len(sigma)] = sigma**2 if shape.positive else -(sigma**2)
            directions = U.T
        elif A.ndim == 1 and np.abs(A).max() > 1e3 * np.abs(A).min():
            eigenvalues, directions = graded_eigh(self.Q, shape.rank)
        center = self._origin.here(there.origin)
        return CentralForm(shape, eigenvalues, directions, center, there.level, 0.0, 0)

    @cached_property
    def _shape(self) -> Shape:
        if self._origin is None:
            return self._form.shape
        return replace(self._origin.source._shape, n=self.n_dims)

    @cached_property
    def kind(self) -> str:
        """What the surface is called, at the given tolerance.

        In the plane: ellipse, circle, parabola, hyperbola, crossing, parallel or coincident lines,
        line, point, empty, everything. In space: the seventeen quadrics, for example 'hyperboloid
        of one sheet', those without real points as 'empty (imaginary ellipsoid)' and so on. Beyond:
        'ellipsoid', 'hyperboloid of signature (p, q)', 'paraboloid', 'cylinder over an ellipse' ...
        """
        name = kind_of(self._shape)
        if name == "ellipse":
            low, high = np.sort(np.abs(self._form.eigenvalues))
            # lengths are compared: half the relative difference of the eigenvalues
            return "circle" if high - low <= 2 * self.tolerance * high else name
        return name

    @property
    def rank(self) -> int:
        """The rank of Q."""
        return self._shape.rank

    @property
    def signature(self) -> tuple[int, int]:
        """How many eigenvalues of Q are positive, and how many negative."""
        return self._shape.positive, self._shape.negative

    @property
    def center(self) -> Array | None:
        """The centre of symmetry (of several, that nearest to the origin), or None."""
        if self._shape.slanted or self._shape.rank == 0:
            return None
        return self._form.origin.copy()

    @property
    def axes(self) -> Axes:
        """The principal axes, the longest first."""
        form = self._form
        curved = form.eigenvalues != 0
        half_lengths = np.full(self.n_dims, np.inf)
        half_lengths[curved] = (
            np.nan
            if self._shape.slanted
            else np.sqrt(np.abs(form.level) / np.abs(form.eigenvalues[curved]))
        )
        order = np.argsort(-half_lengths, kind="stable")
        return Axes(form.directions[order], half_lengths[order])

    @property
    def is_ellipsoid(self) -> bool:
        """Whether the surface is an ellipsoid (an ellipse, a circle): bounded, with an inside."""
        return self._shape.met == (self.n_dims, 0) and self._shape.level != 0

    @property
    def is_empty(self) -> bool:
        """Whether no point is on the surface."""
        return self._shape.level != 0 and self._shape.met[0] == 0

    # ---- where it is ----

    def encloses(self, X: Any) -> Any:
        """Whether a point is inside an ellipsoid, or on it: whichever sign Q has."""
        if not self.is_ellipsoid:
            raise ValueError(
                f"only an ellipsoid encloses anything, and this is: {self.kind}. Use the sign of "
                "value(X) to tell its sides apart."
            )
        inside = np.asarray(self.value(X)) * (1 if self.signature[0] else -1) <= 0
        return bool(inside) if inside.ndim == 0 else inside

    def nearest(self, X: Any) -> Array:
        """The point of the surface that is nearest to each row of X (one of them, if several are).

        The true Euclidean one, by the secular equation; exact also from centres and focal points.
        """
        if self.is_empty:
            raise ValueError(f"there is no nearest point: the surface is {self.kind}.")
        X, single = self._points(X)
        nearest = X + self._steps(X)
        return nearest[0] if single else nearest

    def distance(self, X: Any) -> Any:
        """The Euclidean distance of each row of X from the surface; infinite if that is empty."""
        X, single = self._points(X)
        if self.is_empty:
            distance = np.full(len(X), np.inf)
        else:
            distance = np.linalg.norm(self._steps(X), axis=1)
        return float(distance[0]) if single else distance

    def _steps(self, X: Array) -> Array:
        """The shortest way to the surface, from each row of X."""
        form = self._form
        # F and its gradient in the coordinates of the axes, by the axes: they fit each other
        # exactly, whatever was rounded on the way to them
        y = (X - form.origin) @ form.directions.T
        if self.rank == 0:  # a plane: straight down; or everything, which every point is on
            return -y[:, [form.flat]] * form.directions[form.flat] * bool(form.slope)
        F = (form.eigenvalues * y**2).sum(axis=1) + form.level
        g = 2 * form.eigenvalues * y
        if form.slope:
            F += form.slope * y[:, form.flat]
            g[:, form.flat] += form.slope
        touches = self._shape.level == 0 and self._shape.met[1] == 0 and not self._shape.slanted
        along = steps_to_surface(form.eigenvalues, F, g, touches=touches and self.rank > 0)
        steps = along @ form.directions
        return steps if touches else self._onto(X, steps)

    def _onto(self, X: Array, steps: Array) -> Array:
        """The steps, ended on the surface: Newton's method takes away what rounding has left."""
        units = np.ones(self.n_dims)
        if self._origin is not None and self._origin.A.ndim == 1:
            units = 1 / self._origin.A**2
        with np.errstate(all="ignore"):
            for _ in range(2):
                F, g = self._value_and_gradient(X + steps)
                back = (F / (g * g * units).sum(axis=1))[:, None] * (g * units)
                # a correction, and not another point: where the gradient vanishes there is none
                small = (back**2 / units).sum(axis=1) <= 1e-3 * (steps**2 / units).sum(axis=1)
                steps = steps - np.where(small[:, None], back, 0.0)
        return steps

    # ---- as text ----

    def equation(
        self,
        names: Sequence[str] | None = None,
        precision: int = 3,
        *,
        latex: bool = False,
        max_terms: int | None = None,
        sizes: Any = 1.0,
    ) -> str:
        """The equation F(x) = 0, as text or in LaTeX.

        Parameters
        ----------
        names : sequence of str, optional
            The coordinates' names; the default is x, y, z, in more dimensions x1, x2, ...
        precision : int
            How many significant digits to show.
        latex : bool
        max_terms : int, optional
            Show only so many terms, the largest ones, and say how many are left out.
        sizes : array of shape (n,) or number
            How large the coordinates are: what makes a term large is its coefficient times these.
        """
        sizes = as_vector("sizes", sizes, self.n_dims, FLOAT)
        return equations.equation(
            self.Q, self.w, self.b, names, precision, latex=latex, max_terms=max_terms, sizes=sizes
        )

    def __repr__(self) -> str:
        text = f"{self.kind} in {self.n_dims} dimensions"
        if self.n_dims <= 3:
            text = f"{self.kind}: {self.equation()}"
        return f"<Quadric, {text}>"

    # ---- others made from it ----

    def slice(self, dims: Sequence[int], at: Any = None) -> Quadric:
        """The surface cut by a plane along the axes: the coordinates in `dims` stay free.

        Parameters
        ----------
        dims : sequence of int
            Which coordinates to keep, in this order.
        at : array of shape (n,) or number, optional
            Where the others are held (its entries in `dims` are not used); the default is the
            centre.

        >>> ball = Quadric([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [0, 0, 0], -25)
        >>> ball.slice([0, 1], at=3).equation()
        'x² + y² - 16 = 0'
        """
        kept, _ = self._dims(dims)
        if at is None:
            at = self.center
            if at is None:
                raise ValueError(f"at must be given: a surface without centre ({self.kind}).")
        at = as_vector("at", at, self.n_dims, FLOAT)
        A = np.zeros((self.n_dims, len(kept)))
        A[kept, range(len(kept))] = 1.0
        base = at.copy()
        base[kept] = 0.0
        return self.preimage(A, base)

    def project(self, dims: Sequence[int]) -> Quadric:
        """The outline of the surface seen along all other coordinates: its shadow's edge.

        >>> Quadric([[1, 0, 0], [0, 4, 1], [0, 1, 1]], [0, 0, 0], -3).project([0, 1]).equation()
        'x² + 3 y² - 3 = 0'
        """
        kept, rest = self._dims(dims)
        if not rest:
            return self.slice(kept, 0.0)
        hidden = self.Q[np.ix_(rest, rest)]
        center = np.zeros(self.n_dims) if self.center is None else self.center
        sizes = np.sqrt(np.abs(np.diag(hidden))) + (np.diag(hidden) == 0)
        if np.linalg.matrix_rank(hidden / np.outer(sizes, sizes), tol=1e-12) < len(rest):
            raise ValueError(
                "the surface has no outline in these coordinates: along some direction that is "
                f"projected away it is straight. Got dims {kept}; use slice instead."
            )
        # F is stationary along the projected coordinates y: about the centre (or the origin),
        # y = -inv(Q_yy) (Q_yx x + g_y / 2)
        A = np.zeros((self.n_dims, len(kept)))
        A[kept, range(len(kept))] = 1.0
        A[rest] = -np.linalg.solve(hidden, self.Q[np.ix_(rest, kept)])
        _, g = self._value_and_gradient(center[None])
        offset = np.zeros(self.n_dims)
        offset[rest] = -np.linalg.solve(hidden, g[0, rest]) / 2
        return self.preimage(A, offset + center).transform(1.0, center[kept])

    def preimage(self, A: Any, t: Any = 0.0) -> Quadric:
        """The set of all x for which A x + t is on this surface.

        Parameters
        ----------
        A : array of shape (n, k)
        t : array of shape (n,) or number
        """
        A = as_numbers("A", A, FLOAT)
        if A.ndim != 2 or A.shape[0] != self.n_dims or not A.shape[1]:
            raise ValueError(f"A must have shape ({self.n_dims}, k). Got {A.shape} instead.")
        return self._pulled_back(A, as_vector("t", t, self.n_dims, FLOAT))

    def _pulled_back(self, A: Array, t: Array) -> Quadric:
        """`preimage` in one step from where the surface comes from; A may be a vector."""
        source: Quadric = self
        if self._origin is not None:
            source, B, s = self._origin
            t = (B * t if B.ndim == 1 else B @ t) + s
            if B.ndim == 1:
                A = B[:, None] * A if A.ndim == 2 else B * A
            else:
                A = B @ A if A.ndim == 2 else B * A
        if A.ndim == 2 and A.shape[0] == A.shape[1] and not (A - np.diag(np.diag(A))).any():
            A = np.diag(A).copy()
        if A.ndim == 1 and not A.all():
            A = np.diag(A)
        if A.ndim == 2 and not _independent_rows(A):
            return source._restricted(A, t)
        F, g = source._value_and_gradient(t[None])
        Q = source.Q * np.outer(A, A) if A.ndim == 1 else A.T @ source.Q @ A
        w = A * g[0] if A.ndim == 1 else A.T @ g[0]
        image = Quadric(Q, w, F[0], tolerance=self.tolerance)
        image._origin = Origin(source, A, t)
        return image

    def _restricted(self, A: Array, t: Array) -> Quadric:
        """The surface within the flat of all A x + t, whose dimensions are fewer."""
        # in coordinates about the flat's point nearest to the origin, with columns of one length
        lengths = np.linalg.norm(A, axis=0)
        lengths[lengths == 0] = 1.0
        u = np.linalg.lstsq(A / lengths, -t, rcond=None)[0]
        base = (A / lengths) @ u + t
        F, g = self._value_and_gradient(base[None])
        A = A / lengths
        inner = Quadric(A.T @ self.Q @ A, A.T @ g[0], F[0], tolerance=self.tolerance)
        return inner._pulled_back(lengths, -u)

    def transform(self, scale: Any = 1.0, shift: Any = 0.0) -> Quadric:
        """The image of the surface under x -> scale * x + shift.

        A surface learned on standardised features is stated in the user's own units by
        ``transform(scaler.scale_, scaler.mean_)``.

        Parameters
        ----------
        scale : array of shape (n,) or number
            None of it zero. A square matrix is taken as x -> scale @ x + shift.
        shift : array of shape (n,) or number
        """
        shift = as_vector("shift", shift, self.n_dims, FLOAT)
        scale = as_numbers("scale", scale, FLOAT)
        if scale.ndim == 2:
            if scale.shape != self.Q.shape or np.linalg.matrix_rank(scale) < self.n_dims:
                raise ValueError(
                    f"scale must be an invertible matrix of shape {self.Q.shape}. "
                    f"Got shape {scale.shape}, or one that cannot be inverted."
                )
            A = np.linalg.inv(scale)
            return self._pulled_back(A, -A @ shift)
        scale = as_vector("scale", scale, self.n_dims, FLOAT)
        if not scale.all():
            raise ValueError("scale must not be zero. Got a zero; leave a constant feature out.")
        return self._pulled_back(1 / scale, -shift / scale)

    # ---- checks ----

    def _points(self, X: Any) -> tuple[Array, bool]:
        X = as_numbers("X", X, FLOAT)
        if X.ndim not in (1, 2) or X.shape[-1] != self.n_dims:
            raise ValueError(
                f"X must have shape (n_points, {self.n_dims}), or ({self.n_dims},) for one point. "
                f"Got shape {X.shape} instead."
            )
        return np.atleast_2d(X), X.ndim == 1

    def _dims(self, dims: Sequence[int]) -> tuple[list[int], list[int]]:
        listed = [dims] if isinstance(dims, (int, np.integer)) else list(dims)
        kept = [checks.check_integer("dims", dim, at_least=0) for dim in listed]
        if not kept or len(set(kept)) < len(kept) or max(kept) >= self.n_dims:
            raise ValueError(
                f"dims must be different whole numbers below {self.n_dims}, at least one. "
                f"Got {listed} instead."
            )
        return kept, [dim for dim in range(self.n_dims) if dim not in set(kept)]


def _independent_rows(A: Array) -> bool:
    if A.shape[0] > A.shape[1]:
        return False
    lengths = np.linalg.norm(A, axis=1, keepdims=True)
    if not lengths.all():
        return False
    return bool(np.linalg.svd(A / lengths, compute_uv=False)[-1] > 1e-10)
