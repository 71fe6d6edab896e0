"""Quadric surfaces {x : x'Qx + w'x + b = 0}: their kind, axes, distances, equations and sections.

The package works on full matrices Q and imports only `quadric._utils`. Start with `_quadric.py`:
its class `Quadric` calls the other modules. `_conic_arcs.py` and `_surface_meshes.py` compute what
`quadric.plotting` draws, and `_ellipsoids.py` finds the smallest ellipsoid around points.
"""

from quadric.geometry._quadric import Axes, Quadric

__all__ = ["Axes", "Quadric"]
