"""A quadric surface in any dimension: its kind, axes, distances, sections and outlines."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from quadric.checks import FLOAT64, Array, as_vector, check_integer
from quadric.geometry._canonical_form import CanonicalForm, Shape, canonical_form, kind_of
from quadric.geometry._function_and_nearest import AffineMap, QuadraticFunction, steps_to_surface


class Axes(NamedTuple):
    """Principal axes of a quadric, the longest first.

    A half-length is infinite where the surface is straight, zero for a cone, and NaN for a
    paraboloid, which has no center.

    Parameters
    ----------
    directions : array of shape (n, n)
        One unit vector per row.
    half_lengths : array of shape (n,)
        Distance from the center to the surface along each axis.
    """

    directions: Array
    half_lengths: Array


class Quadric(QuadraticFunction):
    """The quadric surface F(x) = x'Qx + w'x + b = 0.

    Parameters
    ----------
    Q : array of shape (n, n)
        Matrix of the quadratic form. It is replaced by (Q + Q')/2, which defines the same function.
    w : array of shape (n,)
        Coefficients of the linear part.
    b : float
        Constant term.
    tolerance : float, optional
        Relative accuracy of the coefficients Q, w and b. A quantity counts as zero if a relative
        change of this size in the coefficients could make it zero. The default is about 100 times
        the machine epsilon. Pass a larger value for rounded or measured coefficients.

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

    # the shape of an outline, which follows from that of the surface
    _known: Shape | None = None

    @cached_property
    def _form(self) -> CanonicalForm:
        """The form with axes in these coordinates, and with signs and center from the source."""
        if self._origin is None:
            return canonical_form(self.Q, self.w, self.b, self.tolerance, self._known)
        source, to_source = self._origin
        there, shape = source._form, self._shape
        form = canonical_form(self.Q, self.w, self.b, self.tolerance, shape)
        if shape.slanted or shape.rank == 0:
            return form
        if source.n_dims in (shape.positive, shape.negative):
            # Q = R'R or -R'R: the squared singular values of R have twice the accurate digits
            R = to_source.pull_back(there.directions * np.sqrt(np.abs(there.eigenvalues))[:, None])
            _, sigma, directions = np.linalg.svd(R)
            eigenvalues = np.zeros(self.n_dims)
            eigenvalues[: len(sigma)] = sigma**2 if shape.positive else -(sigma**2)
            form = replace(form, eigenvalues=eigenvalues, directions=directions)
        return replace(form, origin=to_source.solve(there.origin), level=there.level)

    @cached_property
    def _shape(self) -> Shape:
        if self._origin is None:
            return self._form.shape
        return replace(self._origin[0]._shape, n=self.n_dims)

    @cached_property
    def kind(self) -> str:
        """Name of the surface, at the given tolerance.

        In the plane, the kinds are ellipse, circle, parabola, hyperbola, crossing, parallel or
        coincident lines, line, point, empty and everything. In space, they are the seventeen
        quadrics, for example 'hyperboloid of one sheet'. Surfaces without real points are called
        'empty (imaginary ellipsoid)' and so on. In higher dimensions, the kinds are 'ellipsoid',
        'hyperboloid of signature (p, q)', 'paraboloid', 'cylinder over an ellipse' and so on.
        """
        name = kind_of(self._shape)
        if name == "ellipse":
            low, high = np.sort(np.abs(self._form.eigenvalues))
            # half-lengths differ by half the relative difference of the eigenvalues
            return "circle" if high - low <= 2 * self.tolerance * high else name
        return name

    @property
    def rank(self) -> int:
        """Rank of Q."""
        return self._shape.rank

    @property
    def signature(self) -> tuple[int, int]:
        """Number of positive and number of negative eigenvalues of Q."""
        return self._shape.positive, self._shape.negative

    @property
    def center(self) -> Array | None:
        """Center of symmetry, or None; if there are several, the one nearest to the origin."""
        if self._shape.slanted or self._shape.rank == 0:
            return None
        return self._form.origin.copy()

    @property
    def axes(self) -> Axes:
        """Principal axes, the longest first."""
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
        """Whether the surface is an ellipsoid (in the plane, an ellipse or a circle)."""
        return self._shape.met == (self.n_dims, 0) and self._shape.level != 0

    @property
    def is_empty(self) -> bool:
        """Whether the surface has no points."""
        return self._shape.level != 0 and self._shape.met[0] == 0

    # ---- points and distances ----

    def encloses(self, X: Any) -> Any:
        """Check which points are inside or on an ellipsoid, regardless of the sign of Q.

        Parameters
        ----------
        X : array of shape (n_points, n) or (n,)
            Points to check, or a single point.

        Returns
        -------
        array of shape (n_points,) or bool
            Whether each point is enclosed.
        """
        if not self.is_ellipsoid:
            raise ValueError(
                f"only an ellipsoid encloses points. Got {self.kind!r} instead; use the sign of "
                "value(X) to distinguish the sides of the surface."
            )
        inside = np.asarray(self.value(X)) * (1 if self.signature[0] else -1) <= 0
        return bool(inside) if inside.ndim == 0 else inside

    def nearest(self, X: Any) -> Array:
        """Find the points of the surface nearest to the points in X.

        Parameters
        ----------
        X : array of shape (n_points, n) or (n,)
            Points from which to measure, or a single point. They may be anywhere, including on the
            surface.

        Returns
        -------
        array of the same shape as X
            The nearest points.

        Notes
        -----
        The distance is Euclidean, and the result is exact even for centers and focal points. If
        several points are equally near, one of them is returned.
        """
        if self.is_empty:
            raise ValueError(f"there is no nearest point: the surface is {self.kind}.")
        X, single = self._points(X)
        nearest = X + self._steps(X)
        return nearest[0] if single else nearest

    def distance(self, X: Any) -> Any:
        """Compute the Euclidean distance to the surface.

        It is infinite if the surface is empty.

        Parameters
        ----------
        X : array of shape (n_points, n) or (n,)
            Points for which to compute the distance, or a single point.

        Returns
        -------
        array of shape (n_points,) or float
            The distance of each point.
        """
        X, single = self._points(X)
        steps = np.full_like(X, np.inf) if self.is_empty else self._steps(X)
        distance = np.linalg.norm(steps, axis=1)
        return float(distance[0]) if single else distance

    def _steps(self, X: Array) -> Array:
        """The shortest step to the surface from each row of X."""
        form, shape = self._form, self._shape
        # F and its gradient are computed from the axes, so that rounding errors in the axes do
        # not make them disagree
        y = (X - form.origin) @ form.directions.T
        if shape.rank == 0:  # a plane, or everything, which contains every point
            return -y[:, [form.flat]] * form.directions[form.flat] * bool(form.slope)
        F = (form.eigenvalues * y**2).sum(axis=1) + form.level
        g = 2 * form.eigenvalues * y
        if form.slope:
            F += form.slope * y[:, form.flat]
            g[:, form.flat] += form.slope
        touches = shape.level == 0 and shape.met[1] == 0 and not shape.slanted
        steps = steps_to_surface(form.eigenvalues, F, g, touches=touches)
        lost = np.isnan(steps).any(axis=1)
        if lost.any():  # from here, the surface is as small as a point: its size is rounded away
            steps[lost] = steps_to_surface(form.eigenvalues, F[lost], g[lost], touches=True)
        steps = steps @ form.directions
        return steps if touches else self._polish(X, steps)

    def _polish(self, X: Array, steps: Array) -> Array:
        """The steps with their end points moved onto the surface by Newton's method."""
        units = np.ones(self.n_dims)
        if self._origin is not None and self._origin[1].A.ndim == 1:
            units = 1 / self._origin[1].A ** 2
        with np.errstate(all="ignore"):
            for _ in range(2):
                F, g = self._value_and_gradient(X + steps)
                back = (F / (g * g * units).sum(axis=1))[:, None] * (g * units)
                # accept small corrections only: none is possible where the gradient vanishes
                small = (back**2 / units).sum(axis=1) <= 1e-3 * (steps**2 / units).sum(axis=1)
                steps = steps - np.where(small[:, None], back, 0.0)
        return steps

    def __repr__(self) -> str:
        if self.n_dims <= 3:
            return f"<Quadric, {self.kind}: {self.equation()}>"
        return f"<Quadric, {self.kind} in {self.n_dims} dimensions>"

    def slice(self, dims: Sequence[int], at: Any = None) -> Self:
        """Intersect the surface with a plane parallel to coordinate axes.

        Parameters
        ----------
        dims : sequence of int
            Coordinates to keep, in this order.
        at : array of shape (n,) or float, optional
            Values of the other coordinates; the entries in `dims` are ignored. The default is the
            center.

        Returns
        -------
        Quadric
            The section, a surface in the coordinates `dims`.

        Examples
        --------
        >>> ball = Quadric([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [0, 0, 0], -25)
        >>> ball.slice([0, 1], at=3).equation()
        'x² + y² - 16 = 0'
        """
        kept, _ = self._split(dims)
        at = self.center if at is None else at
        if at is None:
            raise ValueError(f"at must be given, because the surface ({self.kind}) has no center.")
        base = as_vector("at", at, self.n_dims, FLOAT64).copy()
        base[kept] = 0.0
        return self._preimage(AffineMap(np.eye(self.n_dims)[:, kept], base))

    def project(self, dims: Sequence[int]) -> Self:
        """Compute the outline of the surface as seen along all other coordinates.

        Parameters
        ----------
        dims : sequence of int
            Coordinates to keep, in this order.

        Returns
        -------
        Quadric
            The outline, a surface in the coordinates `dims`. A line of sight through a point of
            the outline touches the original surface.

        Notes
        -----
        F is stationary along the lines of sight at the points that are seen as the outline. With x
        the kept coordinates and y the rest, both measured from the center, they are
        ``y = -inv(Q_yy) (Q_yx x + g_y / 2)``, where g is the gradient at the center.

        Q of the outline is a Schur complement. Its rank, its signature and the kind of the outline
        follow from the ranks and signatures of Q and of its hidden part (E. Haynsworth, 1968), so
        they do not depend on rounding errors in the coefficients of the outline.

        Examples
        --------
        >>> Quadric([[1, 0, 0], [0, 4, 1], [0, 1, 1]], [0, 0, 0], -3).project([0, 1]).equation()
        'x² + 3 y² - 3 = 0'
        """
        kept, rest = self._split(dims)
        if not rest:
            return self.slice(kept, 0.0)
        center = np.zeros(self.n_dims) if self.center is None else self.center
        hidden = self.Q[np.ix_(rest, rest)]
        signs = _signature(hidden)
        if sum(signs) < len(rest):
            raise ValueError(
                "the surface has no outline in these coordinates, because it is straight along a "
                f"direction that is projected away. Got dims {kept}; use slice instead."
            )
        A, t = np.eye(self.n_dims)[:, kept], center.copy()
        A[rest] = -np.linalg.solve(hidden, self.Q[np.ix_(rest, kept)])
        t[rest] -= np.linalg.solve(hidden, self.gradient(center)[rest]) / 2
        source, change = self._from_source(AffineMap(A, t))
        section, change = change.split()
        shadow = source._cancelled(section)
        shadow._known = self._shape.without(signs)
        return shadow._seen_through(change).transform(1.0, center[kept])

    def _split(self, dims: Sequence[int]) -> tuple[list[int], list[int]]:
        """The coordinates in `dims`, checked, and the rest of the coordinates."""
        listed = [dims] if isinstance(dims, (int, np.integer)) else list(dims)
        kept = [check_integer("dims", dim, at_least=0) for dim in listed]
        if not kept or len(set(kept)) < len(kept) or max(kept) >= self.n_dims:
            raise ValueError(
                f"dims must contain one or more distinct integers below {self.n_dims}. "
                f"Got {listed} instead."
            )
        return kept, [dim for dim in range(self.n_dims) if dim not in kept]


def _signature(hidden: Array) -> tuple[int, int]:
    """The numbers of positive and of negative eigenvalues of a matrix, in any units."""
    sizes = np.sqrt(np.abs(np.diag(hidden))) + (np.diag(hidden) == 0)
    eigenvalues = np.linalg.eigvalsh(hidden / np.outer(sizes, sizes))
    return int((eigenvalues > 1e-12).sum()), int((eigenvalues < -1e-12).sum())
