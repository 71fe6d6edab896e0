"""The canonical form of a quadric: its kind, axes and center.

Every decision is based on the backward error: a quantity counts as zero if changing the
coefficients by `tolerance`, relative to the size of Q, of w and of b, could make it zero. Shifts
and rotations, which round the coefficients, therefore do not change the decision.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from quadric.checks import Array
from quadric.geometry._function_and_nearest import EPS

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
