"""Meshes of a quadric in space, with vertices that lie exactly on the surface.

Each kind has its own formulas, in the coordinates of the axes.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy import cos, cosh, sin, sinh

from quadric.checks import Array
from quadric.geometry._canonical_form import CanonicalForm
from quadric.geometry._quadric import Quadric


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
    form, mesh = surface._form, MESHES[surface.kind]
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
        u, v = np.meshgrid(*(np.linspace(*side) for side in mesh.ranges(axes)))
    y = np.stack(np.broadcast_arrays(*mesh.point(axes, u, v)))
    mirrored = y * np.array([-1.0, 1.0, 1.0])[:, None, None]
    sheets = [y, mirrored] if surface.kind in PAIRS else [y]
    turned = (np.einsum("iab,ij->jab", sheet, form.directions[order]) for sheet in sheets)
    return [origin[:, None, None] + sheet for sheet in turned]


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


class _Mesh(NamedTuple):
    """The (first, last, number) of the parameters u and v, and the corresponding point."""

    ranges: Callable[[_Axes], tuple[Any, Any]]
    point: Callable[[_Axes, Array, Array], tuple[Any, Any, Any]]


def _symmetric(number: int, reach: float) -> tuple[float, float, int]:
    return -reach, reach, number


def _saddle_ranges(f: _Axes) -> tuple[Any, Any]:
    reach = np.minimum(f.extent, np.sqrt(f.extent * np.abs(f.slope / f.k[:2])))
    return _symmetric(41, reach[0]), _symmetric(41, reach[1])


def _square(f: _Axes) -> tuple[Any, Any]:
    return _symmetric(2, f.extent), _symmetric(2, f.extent)


TURN = (0.0, 2 * np.pi, 73)
# k_1 u^2 + k_2 v^2 + slope y_3 = 0; k_1 or k_2 is zero for a parabolic cylinder
SADDLE = _Mesh(_saddle_ranges, lambda f, u, v: (u, v, -(f.k[0] * u**2 + f.k[1] * v**2) / f.slope))
MESHES = {
    "ellipsoid": _Mesh(
        lambda f: (TURN, (0.0, np.pi, 37)),
        lambda f, u, v: (f.a * sin(v) * cos(u), f.b * sin(v) * sin(u), f.c * cos(v)),
    ),
    "hyperboloid of one sheet": _Mesh(
        lambda f: (TURN, _symmetric(37, np.arcsinh(f.extent / f.c))),
        lambda f, u, v: (f.a * cosh(v) * cos(u), f.b * cosh(v) * sin(u), f.c * sinh(v)),
    ),
    "hyperboloid of two sheets": _Mesh(
        lambda f: (TURN, (0.0, np.arccosh(max(2.0, f.extent / f.a)), 25)),
        lambda f, u, v: (f.a * cosh(v), f.b * sinh(v) * cos(u), f.c * sinh(v) * sin(u)),
    ),
    "elliptic cone": _Mesh(
        lambda f: (TURN, _symmetric(31, f.extent)),
        lambda f, u, v: (f.a / f.c * v * cos(u), f.b / f.c * v * sin(u), v),
    ),
    "elliptic paraboloid": _Mesh(
        lambda f: (TURN, (0.0, np.sqrt(f.extent * abs(f.slope)), 25)),
        lambda f, u, v: (f.a * v * cos(u), f.b * v * sin(u), -np.sign(sum(f.k)) * v**2 / f.slope),
    ),
    "hyperbolic paraboloid": SADDLE,
    "parabolic cylinder": SADDLE,
    "elliptic cylinder": _Mesh(
        lambda f: (TURN, _symmetric(2, f.extent)),
        lambda f, u, v: (f.a * cos(u), f.b * sin(u), v),
    ),
    "hyperbolic cylinder": _Mesh(
        lambda f: (_symmetric(49, np.arcsinh(f.extent / f.b)), _symmetric(2, f.extent)),
        lambda f, u, v: (f.a * cosh(u), f.b * sinh(u), v),
    ),
    "crossing planes": _Mesh(
        _square, lambda f, u, v: (f.a / np.hypot(f.a, f.b) * u, f.b / np.hypot(f.a, f.b) * u, v)
    ),
    "parallel planes": _Mesh(_square, lambda f, u, v: (f.a, u, v)),
    "coincident planes": _Mesh(_square, lambda f, u, v: (0.0, u, v)),
    "plane": _Mesh(_square, lambda f, u, v: (u, v, 0.0 * u)),
}
# these consist of two mirror images along the first axis
PAIRS = {"hyperboloid of two sheets", "hyperbolic cylinder", "crossing planes", "parallel planes"}
