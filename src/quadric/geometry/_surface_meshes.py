"""Meshes of a quadric in space, with vertices that lie exactly on the surface."""

from collections.abc import Callable

import numpy as np

from quadric._utils.arrays import Array
from quadric.geometry._canonical_form import CanonicalForm
from quadric.geometry._quadric import Quadric

Coordinates = tuple[Array | float, Array | float, Array]  # along the three axes
TURN = (0.0, 2 * np.pi, 73)


def surface_meshes(surface: Quadric, extent: float, around: Array | None = None) -> list[Array]:
    """Meshes of shape (3, rows, columns) that reach about `extent` from the centre.

    A surface that is straight in some directions is drawn, along these, near `around` (default:
    the origin). A point, a line and an empty set have no meshes.
    """
    if surface.n_dims != 3:
        raise ValueError(
            f"surface must have 3 dimensions. Got {surface.n_dims}; "
            "take a section first: quadric.slice(dims, at)."
        )
    if surface.kind not in MESHES:
        return []
    form, coordinates = surface._form, MESHES[surface.kind]
    lengths, directions = _axes(form)
    origin = form.origin
    if around is not None:
        curved = form.eigenvalues != 0
        curved[form.flat] |= form.shape.slanted
        straight = form.directions[~curved]
        origin = origin + (straight.T @ straight) @ (np.asarray(around) - origin)
    y = np.stack(np.broadcast_arrays(*coordinates(lengths, extent, form)))
    mirrored = y * np.array([-1.0, 1.0, 1.0])[:, None, None]
    meshes = [y, mirrored] if surface.kind in PAIRS else [y]
    return [origin[:, None, None] + np.einsum("iab,ij->jab", y, directions) for y in meshes]


def _axes(form: CanonicalForm) -> tuple[Array, Array]:
    """(half-lengths or 1/sqrt|eigenvalue|, directions), in the order of the formulas below.

    Axes that meet the surface come first and straight ones last. The axis of a paraboloid, and
    the normal of a plane, comes last.
    """
    signs = np.sign(form.eigenvalues)
    if form.level > 0 or (form.level == 0 and (signs < 0).sum() > 1):
        signs = -signs
    rank_of_axis = np.where(signs == 0, 2.0, -signs)
    if form.shape.slanted:
        rank_of_axis = np.arange(3) == form.flat
    order = np.argsort(rank_of_axis, kind="stable")
    with np.errstate(divide="ignore"):
        lengths = np.sqrt((abs(form.level) or 1.0) / np.abs(form.eigenvalues[order]))
    return lengths, form.directions[order]


def _grid(u: tuple[float, float, int], v: tuple[float, float, int]) -> tuple[Array, ...]:
    return np.meshgrid(np.linspace(*u), np.linspace(*v))


def _ellipsoid(lengths: Array, extent: float, form: CanonicalForm) -> Coordinates:
    (a, b, c), (u, v) = lengths, _grid(TURN, (0.0, np.pi, 37))
    return a * np.sin(v) * np.cos(u), b * np.sin(v) * np.sin(u), c * np.cos(v)


def _one_sheet(lengths: Array, extent: float, form: CanonicalForm) -> Coordinates:
    a, b, c = lengths
    reach = np.arcsinh(extent / c)
    u, v = _grid(TURN, (-reach, reach, 37))
    return a * np.cosh(v) * np.cos(u), b * np.cosh(v) * np.sin(u), c * np.sinh(v)


def _two_sheets(lengths: Array, extent: float, form: CanonicalForm) -> Coordinates:
    a, b, c = lengths
    u, v = _grid(TURN, (0.0, np.arccosh(max(2.0, extent / a)), 25))
    return a * np.cosh(v), b * np.sinh(v) * np.cos(u), c * np.sinh(v) * np.sin(u)


def _cone(lengths: Array, extent: float, form: CanonicalForm) -> Coordinates:
    (a, b, c), (u, v) = lengths, _grid(TURN, (-extent, extent, 31))
    return a / c * v * np.cos(u), b / c * v * np.sin(u), v


def _elliptic_cylinder(lengths: Array, extent: float, form: CanonicalForm) -> Coordinates:
    (a, b, _), (u, v) = lengths, _grid(TURN, (-extent, extent, 2))
    return a * np.cos(u), b * np.sin(u), v


def _hyperbolic_cylinder(lengths: Array, extent: float, form: CanonicalForm) -> Coordinates:
    a, b, _ = lengths
    reach = np.arcsinh(extent / b)
    u, v = _grid((-reach, reach, 49), (-extent, extent, 2))
    return a * np.cosh(u), b * np.sinh(u), v


def _elliptic_paraboloid(lengths: Array, extent: float, form: CanonicalForm) -> Coordinates:
    (a, b, _), reach = lengths, np.sqrt(extent * abs(form.slope))
    u, v = _grid(TURN, (0.0, reach, 25))
    sign = np.sign(form.eigenvalues.sum())
    return a * v * np.cos(u), b * v * np.sin(u), -sign * v**2 / form.slope


def _saddle(lengths: Array, extent: float, form: CanonicalForm) -> Coordinates:
    """l1 u^2 + l2 v^2 + slope y_3 = 0; l1 or l2 is zero for a parabolic cylinder."""
    curvatures = np.delete(form.eigenvalues, form.flat)
    with np.errstate(divide="ignore"):
        reach = np.minimum(extent, np.sqrt(extent * np.abs(form.slope / curvatures)))
    u, v = _grid((-reach[0], reach[0], 41), (-reach[1], reach[1], 41))
    return u, v, -(curvatures[0] * u**2 + curvatures[1] * v**2) / form.slope


def _crossing_planes(lengths: Array, extent: float, form: CanonicalForm) -> Coordinates:
    (a, b, _), (u, v) = lengths, _grid((-extent, extent, 2), (-extent, extent, 2))
    return a / np.hypot(a, b) * u, b / np.hypot(a, b) * u, v


def _parallel_planes(lengths: Array, extent: float, form: CanonicalForm) -> Coordinates:
    u, v = _grid((-extent, extent, 2), (-extent, extent, 2))
    return lengths[0] if form.level else 0.0, u, v


def _plane(lengths: Array, extent: float, form: CanonicalForm) -> Coordinates:
    u, v = _grid((-extent, extent, 2), (-extent, extent, 2))
    return u, v, 0.0 * u


MESHES: dict[str, Callable[[Array, float, CanonicalForm], Coordinates]] = {
    "ellipsoid": _ellipsoid,
    "hyperboloid of one sheet": _one_sheet,
    "hyperboloid of two sheets": _two_sheets,
    "elliptic cone": _cone,
    "elliptic paraboloid": _elliptic_paraboloid,
    "hyperbolic paraboloid": _saddle,
    "parabolic cylinder": _saddle,
    "elliptic cylinder": _elliptic_cylinder,
    "hyperbolic cylinder": _hyperbolic_cylinder,
    "crossing planes": _crossing_planes,
    "parallel planes": _parallel_planes,
    "coincident planes": _parallel_planes,
    "plane": _plane,
}
# these consist of two mirror images along the first axis
PAIRS = {"hyperboloid of two sheets", "hyperbolic cylinder", "crossing planes", "parallel planes"}
