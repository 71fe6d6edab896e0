"""Quadric surfaces {x : x'Qx + w'x + b = 0}: their kind, axes, distances, equations and sections.

The package works on full matrices Q and imports only `quadric.utils`. Start with `_quadric.py`:
its class `Quadric` has a canonical form (`_canonical_form.py`: kinds and axes), and inherits from
the quadratic function of `_function_and_nearest.py`: values, affine maps, nearest zeros, equations.
`_plot_points.py` computes what `quadric.plotting` draws, and `_ellipsoids.py` finds the smallest
ellipsoid around points.
"""

from quadric.geometry._ellipsoids import (
    THINNEST as THINNEST,
    disjoint as disjoint,
    smallest_ellipsoid as smallest_ellipsoid,
)
from quadric.geometry._function_and_nearest import (
    CACHED as CACHED,
    AffineMap as AffineMap,
    plain_name as plain_name,
    steps_to_surface as steps_to_surface,
)
from quadric.geometry._plot_points import (
    Window as Window,
    arcs as arcs,
    check_conic as check_conic,
    surface_meshes as surface_meshes,
)
from quadric.geometry._quadric import Axes, Quadric

__all__ = ["Axes", "Quadric"]
