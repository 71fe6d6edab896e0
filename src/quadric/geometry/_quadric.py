"""A quadric surface in any dimension: its canonical form, kind, axes, distances and sections.

The canonical form has the axes, the center and the kind. Every decision is based on the backward
error: a quantity counts as zero if changing the coefficients by `tolerance`, relative to the size
of Q, of w and of b, could make it zero. Shifts and rotations, which round the coefficients,
therefore do not change the decision.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import linalg

from quadric.checks import FLOAT64, Array, as_vector, check_integer
from quadric.geometry._function import EPS, AffineMap, QuadraticFunction, steps_to_surface

STRAIGHT = 5e3  # the largest factor by which straight directions increase the tolerance
MAX_QR = 100  # largest n for the QR method; above it, the faster divide-and-conquer is used
# (n, axes met, axes not met): names for F(center) != 0, for F(center) = 0, and without a center
KINDS: dict[tuple[int, int, int], tuple[str, ...]] = {
    (1, 1, 0): ("two points", "point"),
    (1, 0, 1): ("empty",),
    (2, 2, 0): ("ellipse", "point"),
    (2, 1, 1): ("hyperbola", "crossing lines"),
    (2, 1, 0): ("parallel lines", "coincident lines", "parabola"),
    (2, 0, 2): ("empty",),
    (2, 0, 1): ("empty",),
    (3, 3, 0): ("ellipsoid", "point (imaginary elliptic cone)"),
    (3, 2, 1): ("hyperboloid of one sheet", "elliptic cone"),
    (3, 1, 2): ("hyperboloid of two sheets",),
    (3, 2, 0): ("elliptic cylinder", "line (imaginary crossing planes)", "elliptic paraboloid"),
    (3, 1, 1): ("hyperbolic cylinder", "crossing planes", "hyperbolic paraboloid"),
    (3, 1, 0): ("parallel planes", "coincident planes", "parabolic cylinder"),
    (3, 0, 3): ("empty (imaginary ellipsoid)",),
    (3, 0, 2): ("empty (imaginary elliptic cylinder)",),
    (3, 0, 1): ("empty (imaginary parallel planes)",),
}
PLANES = {1: "point", 2: "line", 3: "plane"}  # Q = 0


# ------------------------------------------------------------------ canonical form


@dataclass(frozen=True)
class Shape:
    """The signs that define a quadric's kind; affine maps do not change them."""

    n: int  # dimension of the space
    positive: int  # number of positive eigenvalues of Q
    negative: int
    slanted: bool  # w has a component in the null space of Q: a paraboloid, or a plane if Q = 0
    level: int  # sign of F at the center; 0 if there is no center

    @property
    def rank(self) -> int:
        return self.positive + self.negative

    @property
    def met(self) -> tuple[int, int]:
        """Numbers of axes along which a ray from the center does and does not meet the surface.

        If the surface has no center or contains it, these are the larger and the smaller number
        of equal signs, because F = 0 and -F = 0 are the same surface.
        """
        p, q = self.positive, self.negative
        if self.level == 0:
            return max(p, q), min(p, q)
        return (p, q) if self.level < 0 else (q, p)

    def without(self, hidden: tuple[int, int]) -> "Shape | None":
        """The shape of the outline, if Q has this signature along the hidden coordinates.

        Signatures of a Schur complement are differences, for Q and for the matrix of all
        coefficients. The other signs are therefore those of the surface. The result is None if the
        signatures contradict each other, because Q was rounded in other units.
        """
        p, q = self.positive - hidden[0], self.negative - hidden[1]
        outline = replace(self, n=self.n - sum(hidden), positive=p, negative=q)
        return outline if min(p, q) >= 0 else None


def kind_of(shape: Shape) -> str:
    """The name of a surface, except 'circle', which depends on lengths and not only on signs."""
    n, rank, (met, unmet) = shape.n, shape.rank, shape.met
    column = 2 if shape.slanted else int(shape.level == 0)
    if rank == 0:
        return ("empty", "everything", PLANES.get(n, "hyperplane"))[column]
    if n <= 3:
        return KINDS[n, met, unmet][column]
    if rank == 1 and not shape.slanted:
        return KINDS[3, met, unmet][column].replace("planes", "hyperplanes")
    if (rank, unmet, column) == (2, 1, 1):
        return "crossing hyperplanes"
    if met == 0:
        return "empty (imaginary ellipsoid)" if rank == n else "empty (imaginary cylinder)"
    spanned = rank + shape.slanted
    if spanned < n:
        section = kind_of(replace(shape, n=spanned)).removesuffix(" (imaginary elliptic cone)")
        return f"cylinder over {'an' if section[0] in 'aeiou' else 'a'} {section}"
    if unmet == 0:
        return ("ellipsoid", "point", "paraboloid")[column]
    return f"{('hyperboloid', 'cone', 'paraboloid')[column]} of signature ({met}, {unmet})"


@dataclass(frozen=True)
class CanonicalForm:
    """F in the coordinates y of its axes, x = origin + y @ directions.

    ``F = sum_i eigenvalues[i] y_i^2 + slope y_flat + level``, where eigenvalues that count as zero
    are zero. `origin` is the center. For a surface without a center (`shape.slanted`), `origin` is
    the vertex, `level` is 0, and `slope` is the slope along `directions[flat]`.
    """

    shape: Shape
    eigenvalues: Array  # (n,)
    directions: Array  # (n, n), one unit vector per row
    origin: Array  # (n,)
    level: float
    slope: float
    flat: int


def canonical_form(
    Q: Array, w: Array, b: float, tolerance: float, known: Shape | None = None
) -> CanonicalForm:
    """The canonical form of F for a given tolerance.

    `known` is the shape, if it has already been determined in better-scaled coordinates.
    """
    n = len(w)
    size = float(np.abs(Q).max())
    if size == 0 or (known is not None and known.rank == 0):
        return _form_of_a_plane(w, b, known)
    # units of length and of F in which Q, w and b are about 1, so that nothing overflows
    with np.errstate(all="ignore"):
        length = max(float(np.abs(w).max()) / size, float(np.sqrt(abs(b) / size))) or 1.0
        unit = size * length * length
        Q, w, b = Q / size, w / size / length, b / size / length / length
    if not (np.isfinite(length) and np.isfinite(unit) and np.isfinite(w).all()):
        raise ValueError(
            "the surface is larger than floating-point numbers can represent. Got w or b more than "
            "1e300 times Q; measure the inputs in other units."
        )
    eigenvalues, P = _eigh(Q)
    q_size = float(np.abs(eigenvalues).max())
    curved = np.abs(eigenvalues) > tolerance * q_size
    if known is not None:
        curved = np.argsort(np.argsort(-np.abs(eigenvalues))) < known.rank
    eigenvalues = np.where(curved, eigenvalues, 0.0)
    along = P.T @ w
    c = np.zeros(n)
    c[curved] = -along[curved] / (2 * eigenvalues[curved])
    distance, w_size = float(np.linalg.norm(c)), float(np.linalg.norm(w))

    slack = 1.0
    if not curved.all():
        # A shift along a straight direction leaves rounding errors in w and b that the other
        # coefficients do not reveal. The rounder the curved part, the more error is acceptable.
        sizes = np.abs(eigenvalues[curved])
        slack = max(1.0, STRAIGHT * float(sizes.min() / sizes.max()))
    slope = float(np.linalg.norm(along[~curved]))
    slope_error = w_size + 2 * q_size * distance + 2 * float(np.sqrt(q_size * abs(b)))
    slanted = slope > tolerance * slack * slope_error
    level = b + float(along[curved] @ c[curved]) / 2
    # the rounding error in w along straight directions shows how far the surface was shifted
    shift = min(slope / EPS / q_size, 1e150)
    level_error = abs(b) + w_size * distance + q_size * (distance**2 + shift**2)
    zero = abs(level) <= tolerance * slack * level_error
    sign = 0 if slanted or zero else int(np.sign(level))
    positive, negative = int((eigenvalues > 0).sum()), int((eigenvalues < 0).sum())
    shape = Shape(n, positive, negative, slanted, sign) if known is None else known
    slanted, sign = shape.slanted, shape.level

    directions, flat = P.T.copy(), 0
    if slanted:
        # rotate the flat directions so that w lies along the first of them
        flat = int(np.flatnonzero(~curved)[0])
        directions[~curved] = _basis_from(along[~curved]) @ directions[~curved]
        c[flat] = -level / slope  # down the slope to F = 0: the vertex
        level = 0.0
    return CanonicalForm(
        shape,
        eigenvalues * size,
        directions,
        (c @ directions) * length,
        level * unit if sign else 0.0,
        slope * size * length if slanted else 0.0,
        flat,
    )


def _eigh(Q: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors (as columns), accurate even for badly scaled matrices.

    If large rows come first, LAPACK's tridiagonal QR method computes the small eigenvalues of a
    matrix D S D, with D diagonal and S well scaled, to nearly full relative accuracy.
    """
    order = np.argsort(-np.abs(Q).max(axis=0), kind="stable")
    driver = "ev" if len(Q) <= MAX_QR else "evd"
    eigenvalues, P = linalg.eigh(Q[np.ix_(order, order)], driver=driver, check_finite=False)
    return eigenvalues, P[np.argsort(order)]


def _form_of_a_plane(w: Array, b: float, known: Shape | None) -> CanonicalForm:
    """The form for Q = 0: a plane, everything, or nothing."""
    n, size = len(w), float(np.abs(w).max())
    if known is not None and (known.rank or known.slanted):
        known = None  # a plane, if the coefficients show its direction
    if size == 0 or known is not None:
        shape = known or Shape(n, 0, 0, False, int(np.sign(b)))
        return CanonicalForm(shape, np.zeros(n), np.eye(n), np.zeros(n), b, 0.0, 0)
    direction = w / size  # scaled first, so that its square cannot overflow
    length = float(np.linalg.norm(direction))
    foot = -(b / size) / length * (direction / length)
    shape = Shape(n, 0, 0, True, 0)
    return CanonicalForm(shape, np.zeros(n), _basis_from(direction), foot, 0.0, size * length, 0)


def _basis_from(vector: Array) -> Array:
    """An orthonormal basis, one vector per row; the first points along `vector`."""
    basis = linalg.qr(vector[:, None])[0].T
    basis[0] *= np.sign(basis[0] @ vector)
    return basis


# --------------------------------------------------------------------- the surface


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
