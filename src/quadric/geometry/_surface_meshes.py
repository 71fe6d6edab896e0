"""The pieces of a quadric in space, as meshes whose corners lie on the surface itself."""

from collections.abc import Callable

import numpy as np

from quadric._utils.arrays import Array
from quadric.geometry._quadric import Quadric


def patches(surface: Quadric, extent: float, around: Array | None = None) -> list[Array]:
    """Meshes of shape (3, rows, columns) that reach about `extent` far from the centre.

    A surface without a centre, or one that is straight somewhere, is drawn around the point
    nearest to `around` (default: the origin). Nothing is returned for a point, a line or an
    empty set.
    """
    if surface.n_dims != 3:
        raise ValueError(
            f"a surface in space has 3 dimensions. Got {surface.n_dims}; cut it first: "
            "quadric.slice(dims, at)."
        )
    name = surface.kind
    if name not in MESHES:
        return []
    form = surface._form
    origin = form.origin
    if around is not None and form.shape.rank < 3:  # slide along the straight directions
        straight = form.directions[form.eigenvalues == 0]
        if form.shape.slanted:
            straight = np.delete(form.directions, form.flat, axis=0)[
                np.delete(form.eigenvalues, form.flat) == 0
            ]
        origin = origin + (straight.T @ straight) @ (np.asarray(around) - origin)
    return [
        origin[:, None, None] + np.einsum("iab,ij->jab", y, directions)
        for y, directions in MESHES[name](surface, extent)
    ]


Meshes = list[tuple[Array, Array]]  # coordinates (3, rows, columns) along directions (3, 3)


def _ordered(surface: Quadric) -> tuple[Array, Array, Array]:
    """(half-lengths or 1/sqrt|eigenvalue|, signs, directions): axes that are met come first."""
    form = surface._form
    sign = -np.sign(form.level) if form.level else 1.0
    if not form.level and (np.sign(form.eigenvalues) < 0).sum() > 1:
        sign = -1.0
    signs = sign * np.sign(form.eigenvalues)
    order = np.array(sorted(range(3), key=lambda i: -signs[i] if signs[i] else 2))
    eigenvalues = np.abs(form.eigenvalues[order])
    with np.errstate(divide="ignore"):
        lengths = np.sqrt((abs(form.level) or 1.0) / eigenvalues)
    return lengths, signs[order], form.directions[order]


def _around() -> Array:
    return np.linspace(0, 2 * np.pi, 73)


def _mesh(u: Array, v: Array, *coordinates: Callable[[Array, Array], Array]) -> Array:
    U, V = np.meshgrid(u, v)
    return np.stack([np.broadcast_to(c(U, V), U.shape) for c in coordinates])


def _ellipsoid(surface: Quadric, extent: float) -> Meshes:
    (a, b, c), _, P = _ordered(surface)
    v = np.linspace(0, np.pi, 37)
    mesh = _mesh(
        _around(), v,
        lambda u, v: a * np.sin(v) * np.cos(u),
        lambda u, v: b * np.sin(v) * np.sin(u),
        lambda u, v: c * np.cos(v),
    )  # fmt: skip
    return [(mesh, P)]


def _one_sheet(surface: Quadric, extent: float) -> Meshes:
    (a, b, c), _, P = _ordered(surface)
    reach = np.arcsinh(extent / c)
    mesh = _mesh(
        _around(), np.linspace(-reach, reach, 37),
        lambda u, v: a * np.cosh(v) * np.cos(u),
        lambda u, v: b * np.cosh(v) * np.sin(u),
        lambda u, v: c * np.sinh(v),
    )  # fmt: skip
    return [(mesh, P)]


def _two_sheets(surface: Quadric, extent: float) -> Meshes:
    (a, b, c), _, P = _ordered(surface)
    reach = np.arccosh(max(2.0, extent / a))
    return [
        (
            _mesh(
                _around(), np.linspace(0, reach, 25),
                lambda u, v, side=side: side * a * np.cosh(v),  # type: ignore[misc]
                lambda u, v: b * np.sinh(v) * np.cos(u),
                lambda u, v: c * np.sinh(v) * np.sin(u),
            ),
            P,
        )
        for side in (1, -1)
    ]  # fmt: skip


def _cone(surface: Quadric, extent: float) -> Meshes:
    (a, b, c), _, P = _ordered(surface)
    mesh = _mesh(
        _around(), np.linspace(-extent / c, extent / c, 31),
        lambda u, v: a * v * np.cos(u),
        lambda u, v: b * v * np.sin(u),
        lambda u, v: c * v,
    )  # fmt: skip
    return [(mesh, P)]


def _paraboloid(surface: Quadric, extent: float) -> Meshes:
    """lambda_1 y_1^2 + lambda_2 y_2^2 + slope y_3 = 0; for a cylinder lambda_2 is zero."""
    form = surface._form
    others = [i for i in range(3) if i != form.flat]
    l1, l2 = form.eigenvalues[others]
    P = form.directions[[*others, form.flat]]
    if l1 * l2 > 0:
        reach = np.sqrt(extent * abs(form.slope))
        a, b = 1 / np.sqrt(abs(l1)), 1 / np.sqrt(abs(l2))
        mesh = _mesh(
            _around(), np.linspace(0, reach, 25),
            lambda u, v: a * v * np.cos(u),
            lambda u, v: b * v * np.sin(u),
            lambda u, v: -np.sign(l1) * v**2 / form.slope,
        )  # fmt: skip
        return [(mesh, P)]
    reaches = [
        min(extent, np.sqrt(extent * abs(form.slope / l))) if l else extent for l in (l1, l2)
    ]
    mesh = _mesh(
        np.linspace(-reaches[0], reaches[0], 41), np.linspace(-reaches[1], reaches[1], 41),
        lambda u, v: u,
        lambda u, v: v,
        lambda u, v: -(l1 * u**2 + l2 * v**2) / form.slope,
    )  # fmt: skip
    return [(mesh, P)]


def _elliptic_cylinder(surface: Quadric, extent: float) -> Meshes:
    (a, b, _), _, P = _ordered(surface)
    mesh = _mesh(
        _around(), np.linspace(-extent, extent, 2),
        lambda u, v: a * np.cos(u), lambda u, v: b * np.sin(u), lambda u, v: v,
    )  # fmt: skip
    return [(mesh, P)]


def _hyperbolic_cylinder(surface: Quadric, extent: float) -> Meshes:
    (a, b, _), _, P = _ordered(surface)
    reach = np.arcsinh(extent / b)
    return [
        (
            _mesh(
                np.linspace(-reach, reach, 49), np.linspace(-extent, extent, 2),
                lambda u, v, side=side: side * a * np.cosh(u),  # type: ignore[misc]
                lambda u, v: b * np.sinh(u),
                lambda u, v: v,
            ),
            P,
        )
        for side in (1, -1)
    ]  # fmt: skip


def _planes(surface: Quadric, extent: float) -> Meshes:
    """One plane or two, parallel or crossing."""
    ends = np.array([-extent, extent])
    form = surface._form
    if surface.kind == "plane":
        return [(_mesh(ends, ends, lambda u, v: 0 * u, lambda u, v: u, lambda u, v: v),
                 np.roll(form.directions, -form.flat, axis=0))]  # fmt: skip
    (a, b, _), _, P = _ordered(surface)
    if surface.kind == "crossing planes":
        unit = np.hypot(a, b)
        return [
            (
                _mesh(
                    ends, ends,
                    lambda u, v: a / unit * u,
                    lambda u, v, side=side: side * b / unit * u,  # type: ignore[misc]
                    lambda u, v: v,
                ),
                P,
            )
            for side in (1, -1)
        ]  # fmt: skip
    sides = (1.0, -1.0) if surface.kind == "parallel planes" else (0.0,)
    return [
        (
            _mesh(
                ends, ends,
                lambda u, v, side=side: side * a + 0 * u,  # type: ignore[misc]
                lambda u, v: u,
                lambda u, v: v,
            ),
            P,
        )
        for side in sides
    ]  # fmt: skip


MESHES: dict[str, Callable[[Quadric, float], Meshes]] = {
    "ellipsoid": _ellipsoid,
    "hyperboloid of one sheet": _one_sheet,
    "hyperboloid of two sheets": _two_sheets,
    "elliptic cone": _cone,
    "elliptic paraboloid": _paraboloid,
    "hyperbolic paraboloid": _paraboloid,
    "parabolic cylinder": _paraboloid,
    "elliptic cylinder": _elliptic_cylinder,
    "hyperbolic cylinder": _hyperbolic_cylinder,
    "crossing planes": _planes,
    "parallel planes": _planes,
    "coincident planes": _planes,
    "plane": _planes,
}
