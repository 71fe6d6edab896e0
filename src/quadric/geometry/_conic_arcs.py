"""The arcs of a conic within a window: points on the curve itself, not contours of a grid.

From a point s of the curve, the line in direction d meets it once more, at
``x(d) = s - (g'd / d'Qd) d``, g being the gradient at s. As d turns by half a circle, x runs
through all of the conic, whichever kind it is. It goes to infinity where d'Qd = 0, and it leaves
the window where the curve meets one of the four sides; between those angles it is drawn.
"""

import itertools
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from quadric._utils.arrays import Array
from quadric.geometry._quadric import Quadric

Window: TypeAlias = tuple[float, float, float, float]  # x from, x to, y from, y to

LARGEST_TURN = np.deg2rad(2.0)  # between one drawn segment and the next
LONGEST_SEGMENT = 1 / 40  # of the window's diagonal; straight parts need no more
ROUNDS = 14
MOST_POINTS = 3000


def arcs(conic: Quadric, window: Window, *, step: float = LONGEST_SEGMENT) -> list[Array]:
    """The pieces of the conic inside the window, each an array of shape (points, 2).

    A closed curve ends where it begins; a single point is an array of one row; what does not
    meet the window gives no piece. `step` is the longest segment, as a share of the window's
    diagonal.

    >>> [piece] = arcs(Quadric([[1, 0], [0, 1]], [0, 0], -1), (-2, 2, -2, 2))
    >>> bool(np.allclose(np.hypot(*piece.T), 1))
    True
    """
    check_plane(conic)
    x0, x1, y0, y1 = (float(side) for side in window)
    if not (np.isfinite([x0, x1, y0, y1]).all() and x0 < x1 and y0 < y1):
        raise ValueError(
            f"window must be (x from, x to, y from, y to), from less than to. Got {window} instead."
        )
    # in coordinates in which the window is about the origin and of size 1
    middle = np.array([(x0 + x1) / 2, (y0 + y1) / 2])
    half = float(np.hypot(x1 - x0, y1 - y0)) / 2
    seen = _normalised(conic.transform(1 / half, -middle / half))
    width, height = (x1 - x0) / 2 / half, (y1 - y0) / 2 / half
    pieces = _pieces(seen, (-width, width, -height, height), step)
    return [middle + half * piece for piece in pieces]


def _normalised(conic: Quadric) -> Quadric:
    """F times a number, where its coefficients are too large or too small to be squared."""
    size = max(float(np.abs(conic.Q).max()), float(np.abs(conic.w).max()), abs(conic.b))
    if size == 0 or 1e-100 < size < 1e100:
        return conic
    return Quadric(conic.Q / size, conic.w / size, conic.b / size, tolerance=conic.tolerance)


def _pieces(conic: Quadric, window: Window, step: float) -> list[Array]:
    if conic.kind in ("empty", "everything"):
        return []
    if conic.kind == "point":
        point = conic.nearest(np.zeros(2))[None]
        return [point] if _inside(point, window)[0] else []
    if "line" in conic.kind:
        clipped = (_clip(point, direction, window, step) for point, direction in _lines(conic))
        return [piece for piece in clipped if piece is not None]
    return _curve(conic, window, step)


def check_plane(conic: Quadric) -> None:
    """Refuse what is not in the plane."""
    if conic.n_dims != 2:
        raise ValueError(
            f"a conic has 2 dimensions. Got {conic.n_dims}; cut it first: quadric.slice(dims, at)."
        )


def _curve(conic: Quadric, window: Window, step: float) -> list[Array]:
    diagonal = 2.0
    s = conic.nearest(np.zeros(2))
    # turn in coordinates in which the curve is about round, so that angles are spread evenly
    form = conic._form
    lengths = np.minimum(np.nan_to_num(_lengths(conic), nan=diagonal, posinf=diagonal), diagonal)
    B = form.directions.T * lengths
    g, D = B.T @ conic.gradient(s), form.eigenvalues * lengths**2

    def point(angle: Array) -> Array:
        e = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return s - ((e @ g) / (e**2 @ D))[:, None] * (e @ B.T)

    breaks = np.concatenate([_poles(D), _angles(_crossings(conic, window) - s, B, g)])
    if not len(breaks):
        start = float(np.arctan2(-g[0], g[1]))  # along the tangent: from s once around to s
        whole = point(np.array([start + 1.0]))
        if not _inside(whole, window)[0]:
            return []
        return [_polish(conic, _sample(point, start, start + np.pi, diagonal, step), diagonal)]
    breaks = np.unique(breaks % np.pi)
    pieces = []
    for a, b in itertools.pairwise([*breaks, breaks[0] + np.pi]):
        if b - a > 1e-12 and _inside(point(np.array([(a + b) / 2])), window)[0]:
            pieces.append(_polish(conic, _sample(point, a, b, diagonal, step), diagonal))
    return pieces


def _polish(conic: Quadric, x: Array, diagonal: float) -> Array:
    """One step of Newton's method across the curve: what rounding has left is taken away."""
    F, g = conic.value(x), conic.gradient(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        step = (F / (g * g).sum(axis=1))[:, None] * g
    small = np.abs(step).max(axis=1) < 1e-6 * diagonal  # false for NaN
    return x - np.where(small[:, None], step, 0.0)


def _lengths(conic: Quadric) -> Array:
    """About how far the curve reaches along each of its directions."""
    form = conic._form
    with np.errstate(divide="ignore"):
        if form.slope:
            return form.slope / np.abs(form.eigenvalues)
        return np.sqrt(abs(form.level) / np.abs(form.eigenvalues))


def _poles(D: Array) -> Array:
    """The angles at which D_1 cos^2 + D_2 sin^2 = 0."""
    if D[0] * D[1] > 0:
        return np.empty(0)
    angle = np.arctan2(np.sqrt(abs(D[0])), np.sqrt(abs(D[1])))
    return np.array([angle, np.pi - angle])


def _angles(chords: Array, B: Array, g: Array) -> Array:
    """The angles of these chords from s; one of no length is the tangent."""
    e = np.linalg.solve(B, chords.T).T
    e[np.abs(e).max(axis=1, initial=0.0) < 1e-14] = (-g[1], g[0])
    return np.arctan2(e[:, 1], e[:, 0])


def _crossings(conic: Quadric, window: Window) -> Array:
    """Where the curve meets the four sides of the window."""
    found = []
    for axis, sides in ((0, window[:2]), (1, window[2:])):
        other = 1 - axis
        low, high = (window[2:], window[:2])[axis]
        for side in sides:
            at = np.zeros(2)
            at[axis] = side
            along = conic.slice([other], at)
            a, h, c = along.Q[0, 0], along.w[0], along.b
            for root in _roots(a, h, c):
                if low <= root <= high:
                    crossing = np.empty(2)
                    crossing[axis], crossing[other] = side, root
                    found.append(crossing)
    return np.array(found).reshape(-1, 2)


def _roots(a: float, h: float, c: float) -> list[float]:
    """The real solutions of a t^2 + h t + c = 0, without cancellation."""
    discriminant = h * h - 4 * a * c
    if discriminant < 0:
        return []
    half = -(h + np.copysign(np.sqrt(discriminant), h)) / 2
    roots = [half / a] if a else []
    return [*roots, c / half] if half else roots


def _sample(
    point: Callable[[Array], Array], a: float, b: float, diagonal: float, step: float
) -> Array:
    """Points of the curve from angle a to b, denser where it bends."""
    angles = np.linspace(a, b, 33)
    for _ in range(ROUNDS):
        x = point(angles)
        chords = np.diff(x, axis=0)
        lengths = np.hypot(*chords.T)
        headings = np.arctan2(chords[:, 1], chords[:, 0])
        turns = np.abs((np.diff(headings) + np.pi) % (2 * np.pi) - np.pi) > LARGEST_TURN
        coarse = lengths > diagonal * step
        coarse |= (np.append(turns, False) | np.insert(turns, 0, False)) & (
            lengths > diagonal * 1e-4
        )
        if not coarse.any() or len(angles) > MOST_POINTS:
            break
        middles = (angles[:-1] + angles[1:]) / 2
        angles = np.sort(np.concatenate([angles, middles[coarse]]))
    return point(angles)


def _lines(conic: Quadric) -> list[tuple[Array, Array]]:
    """(a point, the direction) of each line."""
    form = conic._form
    if conic.kind == "line":
        return [(form.origin, form.directions[1 - form.flat])]
    if conic.kind == "crossing lines":
        slopes = np.sqrt(np.abs(form.eigenvalues[::-1]))
        return [
            (form.origin, np.array([slopes[0], sign * slopes[1]]) @ form.directions)
            for sign in (1, -1)
        ]
    flat = int(np.argmin(np.abs(form.eigenvalues)))
    across, along = form.directions[1 - flat], form.directions[flat]
    if conic.kind == "coincident lines":
        return [(form.origin, along)]
    half = np.sqrt(abs(form.level) / abs(form.eigenvalues[1 - flat]))
    return [(form.origin + sign * half * across, along) for sign in (1, -1)]


def _clip(point: Array, direction: Array, window: Window, step: float) -> Array | None:
    """The part of a line inside the window."""
    direction = direction / np.linalg.norm(direction)
    low, high = -np.inf, np.inf
    for axis, (start, end) in enumerate((window[:2], window[2:])):
        if direction[axis] == 0:
            if not start <= point[axis] <= end:
                return None
            continue
        t = np.sort((np.array([start, end]) - point[axis]) / direction[axis])
        low, high = max(low, t[0]), min(high, t[1])
    if not low < high:
        return None
    return point + np.linspace(low, high, int(1 / step) + 1)[:, None] * direction


def _inside(x: Array, window: Window) -> Array:
    return (
        (x[:, 0] >= window[0]) & (x[:, 0] <= window[1])
        & (x[:, 1] >= window[2]) & (x[:, 1] <= window[3])
    )  # fmt: skip
