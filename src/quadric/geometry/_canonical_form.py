"""What a quadric is, up to moving and stretching: the signs that survive every affine map.

Everything is decided on backward error: a quantity counts as zero where a change of the
coefficients by `tolerance`, relative to the size of Q, of w and of b, could make it zero. So a
shift or a rotation, which rounds the coefficients, does not change what is decided.
"""

from dataclasses import dataclass

import numpy as np

from quadric._utils.arrays import Array

STRAIGHT = 5e3


def default_tolerance(n: int) -> float:
    """About a hundred rounding errors; more in many dimensions, where they add up."""
    return max(2e-14, n * float(np.finfo(np.float64).eps))


@dataclass(frozen=True)
class Shape:
    """The signs behind a quadric's name.

    Attributes
    ----------
    n : int
        The dimension of the space.
    positive, negative : int
        How many eigenvalues of Q are.
    slanted : bool
        Whether w has a part along which Q is flat: a paraboloid, or a plane where Q = 0.
    level : int
        The sign of F at the centre; 0 also where there is none.
    """

    n: int
    positive: int
    negative: int
    slanted: bool
    level: int

    @property
    def rank(self) -> int:
        return self.positive + self.negative

    @property
    def met(self) -> tuple[int, int]:
        """(along how many axes the surface is met from the centre, along how many it is not).

        Where that has no meaning (no centre, or the surface runs through it): the larger and
        the smaller number of equal signs, for F = 0 and -F = 0 are the same surface.
        """
        p, q = self.positive, self.negative
        if self.level == 0:
            return max(p, q), min(p, q)
        return (p, q) if self.level < 0 else (q, p)


@dataclass(frozen=True)
class CentralForm:
    """F in the coordinates y of its axes: x = origin + y @ directions.

    ``F = sum_i eigenvalues[i] y_i^2 + slope y_flat + level``; the eigenvalues that count as zero
    are zero. `origin` is the centre, or where there is none (`shape.slanted`) the vertex: then
    `level` is 0 and `slope` is the one along `directions[flat]`.
    """

    shape: Shape
    eigenvalues: Array  # (n,)
    directions: Array  # (n, n), a unit vector a row
    origin: Array  # (n,)
    level: float
    slope: float
    flat: int


def central_form(
    Q: Array, w: Array, b: float, tolerance: float, known: Shape | None = None
) -> CentralForm:
    """The eigenvalues, the axes and the centre of F, and what they mean at this tolerance.

    `known` is the shape where that has been found out already, in better coordinates.
    """
    n = len(w)
    size = float(np.abs(Q).max())
    if size == 0:
        return _flat_form(w, b)
    # in units of length and of F in which Q, w and b are about 1: nothing over- or underflows
    with np.errstate(all="ignore"):
        length = max(float(np.abs(w).max()) / size, float(np.sqrt(abs(b) / size))) or 1.0
        unit = size * length * length
        Q, w, b = Q / size, w / size / length, b / size / length / length
    if not (np.isfinite(length) and np.isfinite(unit) and np.isfinite(w).all()):
        raise ValueError(
            "the surface is larger than floating-point numbers can say. Got w or b more than "
            "1e300 times Q; measure the inputs in other units."
        )
    eigenvalues, P = np.linalg.eigh(Q)
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
        # A shift along a straight direction leaves rounding errors in w and b that nothing else
        # shows. The rounder the curved part is, the more of them can be allowed for.
        sizes = np.abs(eigenvalues[curved])
        slack = max(1.0, STRAIGHT * float(sizes.min() / sizes.max()))
    slope = float(np.linalg.norm(along[~curved]))
    slope_error = w_size + 2 * q_size * distance + 2 * float(np.sqrt(q_size * abs(b)))
    slanted = slope > tolerance * slack * slope_error
    level = b + float(along[curved] @ c[curved]) / 2
    level_error = abs(b) + w_size * distance + q_size * distance**2
    zero = abs(level) <= tolerance * slack * level_error
    sign = 0 if slanted or zero else int(np.sign(level))
    positive, negative = int((eigenvalues > 0).sum()), int((eigenvalues < 0).sum())
    shape = Shape(n, positive, negative, slanted, sign) if known is None else known
    slanted, sign = shape.slanted, shape.level

    directions, flat = P.T.copy(), 0
    if slanted:
        # the flat directions turned so that w lies along the first of them
        flat = int(np.flatnonzero(~curved)[0])
        directions[~curved] = _basis_from(along[~curved]) @ directions[~curved]
        c[flat] = -level / slope  # down the slope to F = 0: the vertex
        level = 0.0
    return CentralForm(
        shape,
        eigenvalues * size,
        directions,
        (c @ directions) * length,
        level * unit if sign else 0.0,
        slope * size * length if slanted else 0.0,
        flat,
    )


def _flat_form(w: Array, b: float) -> CentralForm:
    """Q = 0: a plane, everything, or nothing."""
    n, size = len(w), float(np.abs(w).max())
    zeros = np.zeros(n)
    if size == 0:
        shape = Shape(n, 0, 0, False, int(np.sign(b)))
        return CentralForm(shape, zeros, np.eye(n), zeros, b, 0.0, 0)
    direction = w / size  # scaled first, so that its square cannot under- or overflow
    length = float(np.linalg.norm(direction))
    foot = -(b / size) / length * (direction / length)
    shape = Shape(n, 0, 0, True, 0)
    return CentralForm(shape, zeros, _basis_from(direction), foot, 0.0, size * length, 0)


def _basis_from(vector: Array) -> Array:
    """An orthonormal basis, a vector a row, whose first one points along `vector`."""
    n = len(vector)
    basis, _ = np.linalg.qr(np.column_stack([vector, np.eye(n)]))
    basis = basis.T[:n]
    return basis if basis[0] @ vector > 0 else np.vstack([-basis[0], basis[1:]])
