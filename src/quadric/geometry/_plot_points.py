"""Points for plots: the arcs of a conic within a window, and meshes of a quadric in space.

All points lie on the curve or surface; they are not contours of a grid. Each kind of surface has
its own formulas, in the coordinates of the axes. Arcs of all kinds of conics have the same one.

The line through a point s of the curve in direction d meets the curve once more, at
``x(d) = s - (g'd / d'Qd) d``, where g is the gradient at s. As d turns through half a circle, x
traces the whole conic, regardless of its kind. It goes to infinity where d'Qd = 0 and leaves the
window where the curve crosses one of the four sides. The arcs lie between these angles.

The functions work in coordinates in which the window is centered at the origin and its diagonal has
length 2.
"""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy import cos, cosh, sin, sinh

from quadric.checks import Array
from quadric.geometry._canonical_form import CanonicalForm
from quadric.geometry._quadric import Quadric

# ---- arcs ----

Window: TypeAlias = tuple[float, float, float, float]  # left, right, bottom, top

DIAGONAL = 2.0
MAX_TURN = np.deg2rad(2.0)  # angle between consecutive segments
MAX_SEGMENT = 1 / 40  # length of a straight segment, relative to the window's diagonal
MAX_REFINEMENTS = 14
MAX_POINTS = 3000


def arcs(conic: Quadric, window: Window, *, step: float = MAX_SEGMENT) -> list[Array]:
    """The pieces of the conic inside the window, each an array of shape (n_points, 2).

    A closed curve ends where it begins, and a single point is an array of one row. `step` is the
    maximum length of a segment, relative to the window's diagonal.

    >>> [piece] = arcs(Quadric([[1, 0], [0, 1]], [0, 0], -1), (-2, 2, -2, 2))
    >>> bool(np.allclose(np.hypot(*piece.T), 1))
    True
    """
    check_conic(conic)
    x0, x1, y0, y1 = (float(side) for side in window)
    if not (np.isfinite([x0, x1, y0, y1]).all() and x0 < x1 and y0 < y1):
        raise ValueError(
            "window must be (left, right, bottom, top) with left < right and bottom < top. "
            f"Got {window} instead."
        )
    middle = np.array([(x0 + x1) / 2, (y0 + y1) / 2])
    half = float(np.hypot(x1 - x0, y1 - y0)) / DIAGONAL
    scaled = conic.transform(1 / half, -middle / half)
    size = max(float(np.abs(scaled.Q).max()), float(np.abs(scaled.w).max()), abs(scaled.b))
    if size and not 1e-100 < size < 1e100:  # too large or too small to be squared
        scaled = Quadric(
            scaled.Q / size, scaled.w / size, scaled.b / size, tolerance=scaled.tolerance
        )
    width, height = (x1 - x0) / 2 / half, (y1 - y0) / 2 / half
    pieces = _pieces(scaled, (-width, width, -height, height), step)
    return [middle + half * piece for piece in pieces]


def check_conic(conic: Quadric) -> None:
    """Raise ValueError unless the surface has two dimensions."""
    if conic.n_dims != 2:
        raise ValueError(
            f"a conic must have 2 dimensions. Got {conic.n_dims}; "
            "take a section first: quadric.slice(dims, at)."
        )


def _pieces(conic: Quadric, window: Window, step: float) -> list[Array]:
    if conic.kind in ("empty", "everything"):
        return []
    if conic.kind == "point":
        point = conic.nearest(np.zeros(2))
        return [point[None]] if _inside(point, window) else []
    if "line" in conic.kind:
        return [piece for line in _lines(conic) for piece in _clip(*line, window, step)]
    return _curve(conic, window, step)


def _curve(conic: Quadric, window: Window, step: float) -> list[Array]:
    s = conic.nearest(np.zeros(2))
    # use coordinates in which the curve is roughly round, so that angles are spread evenly
    form = conic._form
    with np.errstate(divide="ignore"):
        lengths = (
            form.slope / np.abs(form.eigenvalues)
            if form.slope
            else np.sqrt(abs(form.level) / np.abs(form.eigenvalues))
        )
    lengths = np.minimum(np.nan_to_num(lengths, nan=DIAGONAL, posinf=DIAGONAL), DIAGONAL)
    B = form.directions.T * lengths
    g, D = B.T @ conic.gradient(s), form.eigenvalues * lengths**2

    def point(angle: Array) -> Array:
        e = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return s - ((e @ g) / (e**2 @ D))[..., None] * (e @ B.T)

    breaks = np.concatenate([_poles(D), _angles(_crossings(conic, window) - s, B, g)])
    tangent = np.arctan2(-g[0], g[1])  # without breaks, x makes one full turn, from s to s
    breaks = np.unique(breaks % np.pi) if len(breaks) else np.array([tangent])
    return [
        _polish(conic, _sample(point, a, b, step))
        for a, b in itertools.pairwise([*breaks, breaks[0] + np.pi])
        if b - a > 1e-12 and _inside(point((a + b) / 2), window)
    ]


def _polish(conic: Quadric, x: Array) -> Array:
    """One Newton step across the curve, which removes rounding errors."""
    F, g = conic.value(x), conic.gradient(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        step = (F / (g * g).sum(axis=1))[:, None] * g
    small = np.abs(step).max(axis=1) < 1e-6 * DIAGONAL  # False for NaN
    return x - np.where(small[:, None], step, 0.0)


def _poles(D: Array) -> Array:
    """The angles at which D_1 cos^2 + D_2 sin^2 = 0."""
    if D[0] * D[1] > 0:
        return np.empty(0)
    angle = np.arctan2(np.sqrt(abs(D[0])), np.sqrt(abs(D[1])))
    return np.array([angle, np.pi - angle])


def _angles(chords: Array, B: Array, g: Array) -> Array:
    """The angles of chords from s; a chord of length zero is the tangent."""
    e = np.linalg.solve(B, chords.T).T
    e[np.abs(e).max(axis=1, initial=0.0) < 1e-14] = (-g[1], g[0])
    return np.arctan2(e[:, 1], e[:, 0])


def _crossings(conic: Quadric, window: Window) -> Array:
    """The points where the curve crosses the four sides of the window."""
    points = []
    for axis, side in ((0, window[0]), (0, window[1]), (1, window[2]), (1, window[3])):
        other = 1 - axis
        section = conic.slice([other], np.full(2, side))
        for root in _roots(section.Q[0, 0], section.w[0], section.b):
            if window[2 * other] <= root <= window[2 * other + 1]:
                points.append((side, root) if axis == 0 else (root, side))
    return np.array(points).reshape(-1, 2)


def _roots(a: float, h: float, c: float) -> list[float]:
    """The real solutions of a t^2 + h t + c = 0, computed without cancellation."""
    discriminant = h * h - 4 * a * c
    if discriminant < 0:
        return []
    half = -(h + np.copysign(np.sqrt(discriminant), h)) / 2
    roots = [half / a] if a else []
    return [*roots, c / half] if half else roots


def _sample(point: Callable[[Array], Array], a: float, b: float, step: float) -> Array:
    """Points of the curve between the angles a and b, denser where it bends."""
    angles = np.linspace(a, b, 33)
    for _ in range(MAX_REFINEMENTS):
        chords = np.diff(point(angles), axis=0)
        lengths = np.hypot(*chords.T)
        headings = np.arctan2(chords[:, 1], chords[:, 0])
        turns = np.abs((np.diff(headings) + np.pi) % (2 * np.pi) - np.pi) > MAX_TURN
        bent = np.append(turns, False) | np.insert(turns, 0, False)
        coarse = (lengths > DIAGONAL * step) | (bent & (lengths > DIAGONAL * 1e-4))
        if not coarse.any() or len(angles) > MAX_POINTS:
            break
        middles = (angles[:-1] + angles[1:]) / 2
        angles = np.sort(np.append(angles, middles[coarse]))
    return point(angles)


def _lines(conic: Quadric) -> list[tuple[Array, Array]]:
    """A point and the direction of each line."""
    form = conic._form
    if conic.kind == "line":
        return [(form.origin, form.directions[1 - form.flat])]
    if conic.kind == "crossing lines":
        slopes = np.sqrt(np.abs(form.eigenvalues[::-1]))
        return [(form.origin, (slopes * (1, sign)) @ form.directions) for sign in (1, -1)]
    flat = int(np.argmin(np.abs(form.eigenvalues)))
    across, along = form.directions[1 - flat], form.directions[flat]
    if conic.kind == "coincident lines":
        return [(form.origin, along)]
    half = np.sqrt(abs(form.level) / abs(form.eigenvalues[1 - flat]))
    return [(form.origin + sign * half * across, along) for sign in (1, -1)]


def _clip(point: Array, direction: Array, window: Window, step: float) -> list[Array]:
    """The part of a line inside the window, if there is one."""
    direction = direction / np.linalg.norm(direction)
    sides = np.array([window[:2], window[2:]])
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.sort((sides - point[:, None]) / direction[:, None], axis=1)
    t = np.where(np.isnan(t), [-np.inf, np.inf], t)  # the line runs along a side
    low, high = t[:, 0].max(), t[:, 1].min()
    if not low < high:
        return []
    return [point + np.linspace(low, high, int(1 / step) + 1)[:, None] * direction]


def _inside(x: Array, window: Window) -> bool:
    return bool(window[0] <= x[0] <= window[1] and window[2] <= x[1] <= window[3])


# ---- meshes ----


def surface_meshes(surface: Quadric, extent: float, around: Array | None = None) -> list[Array]:
    """Meshes of shape (3, rows, columns) that reach about `extent` from the center.

    In directions in which the surface is straight, it is drawn near `around` (default: the origin).
    There are no meshes for a point, a line or an empty set.
    """
    if surface.n_dims != 3:
        raise ValueError(
            f"surface must have 3 dimensions. Got {surface.n_dims}; "
            "take a section first: quadric.slice(dims, at)."
        )
    if surface.kind not in MESHES:
        return []
    form, (ranges, point) = surface._form, MESHES[surface.kind]
    origin, order = form.origin, _order_of_axes(form)
    if around is not None:
        curved = form.eigenvalues != 0
        curved[form.flat] |= form.shape.slanted
        straight = form.directions[~curved]
        origin = origin + (straight.T @ straight) @ (np.asarray(around) - origin)
    k = form.eigenvalues[order]
    with np.errstate(divide="ignore"):
        a, b, c = np.sqrt((abs(form.level) or 1.0) / np.abs(k))
        axes = _Axes(a, b, c, k, form.slope, extent)
        u, v = np.meshgrid(*(np.linspace(*side) for side in ranges(axes)))
    y = np.stack(np.broadcast_arrays(*point(axes, u, v)))
    mirrored = y * np.array([-1.0, 1.0, 1.0])[:, None, None]
    sheets = [y, mirrored] if surface.kind in PAIRS else [y]
    return [
        origin[:, None, None] + np.einsum("iab,ij->jab", sheet, form.directions[order])
        for sheet in sheets
    ]


def _order_of_axes(form: CanonicalForm) -> Array:
    """The order of the axes: first those that meet the surface, last the straight ones.

    The axis of a paraboloid or the normal of a plane comes last.
    """
    if form.shape.slanted:
        return np.argsort(np.arange(3) == form.flat, kind="stable")
    signs = np.sign(form.eigenvalues)
    if form.level > 0 or (form.level == 0 and (signs < 0).sum() > 1):
        signs = -signs
    return np.argsort(np.where(signs == 0, 2.0, -signs), kind="stable")


class _Axes(NamedTuple):
    """The numbers in the formulas below, in the order of the axes."""

    a: float  # half-lengths, or 1/sqrt|eigenvalue| where there are none
    b: float
    c: float
    k: Array  # eigenvalues
    slope: float
    extent: float


# the (first, last, number) of the parameters u and v, and the corresponding point
_Mesh: TypeAlias = tuple[
    Callable[[_Axes], tuple[Any, Any]], Callable[[_Axes, Array, Array], tuple[Any, Any, Any]]
]


def _symmetric(number: int, reach: float) -> tuple[float, float, int]:
    return -reach, reach, number


def _saddle_ranges(f: _Axes) -> tuple[Any, Any]:
    reach = np.minimum(f.extent, np.sqrt(f.extent * np.abs(f.slope / f.k[:2])))
    return _symmetric(41, reach[0]), _symmetric(41, reach[1])


def _square(f: _Axes) -> tuple[Any, Any]:
    return _symmetric(2, f.extent), _symmetric(2, f.extent)


TURN = (0.0, 2 * np.pi, 73)
# k_1 u^2 + k_2 v^2 + slope y_3 = 0; k_1 or k_2 is zero for a parabolic cylinder
SADDLE: _Mesh = (_saddle_ranges, lambda f, u, v: (u, v, -(f.k[0] * u**2 + f.k[1] * v**2) / f.slope))
MESHES: dict[str, _Mesh] = {
    "ellipsoid": (
        lambda f: (TURN, (0.0, np.pi, 37)),
        lambda f, u, v: (f.a * sin(v) * cos(u), f.b * sin(v) * sin(u), f.c * cos(v)),
    ),
    "hyperboloid of one sheet": (
        lambda f: (TURN, _symmetric(37, np.arcsinh(f.extent / f.c))),
        lambda f, u, v: (f.a * cosh(v) * cos(u), f.b * cosh(v) * sin(u), f.c * sinh(v)),
    ),
    "hyperboloid of two sheets": (
        lambda f: (TURN, (0.0, np.arccosh(max(2.0, f.extent / f.a)), 25)),
        lambda f, u, v: (f.a * cosh(v), f.b * sinh(v) * cos(u), f.c * sinh(v) * sin(u)),
    ),
    "elliptic cone": (
        lambda f: (TURN, _symmetric(31, f.extent)),
        lambda f, u, v: (f.a / f.c * v * cos(u), f.b / f.c * v * sin(u), v),
    ),
    "elliptic paraboloid": (
        lambda f: (TURN, (0.0, np.sqrt(f.extent * abs(f.slope)), 25)),
        lambda f, u, v: (f.a * v * cos(u), f.b * v * sin(u), -np.sign(sum(f.k)) * v**2 / f.slope),
    ),
    "hyperbolic paraboloid": SADDLE,
    "parabolic cylinder": SADDLE,
    "elliptic cylinder": (
        lambda f: (TURN, _symmetric(2, f.extent)),
        lambda f, u, v: (f.a * cos(u), f.b * sin(u), v),
    ),
    "hyperbolic cylinder": (
        lambda f: (_symmetric(49, np.arcsinh(f.extent / f.b)), _symmetric(2, f.extent)),
        lambda f, u, v: (f.a * cosh(u), f.b * sinh(u), v),
    ),
    "crossing planes": (
        _square,
        lambda f, u, v: (f.a / np.hypot(f.a, f.b) * u, f.b / np.hypot(f.a, f.b) * u, v),
    ),
    "parallel planes": (_square, lambda f, u, v: (f.a, u, v)),
    "coincident planes": (_square, lambda f, u, v: (0.0, u, v)),
    "plane": (_square, lambda f, u, v: (u, v, 0.0 * u)),
}
# these consist of two mirror images along the first axis
PAIRS = {"hyperboloid of two sheets", "hyperbolic cylinder", "crossing planes", "parallel planes"}
