"""Quadrics in space."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb

from quadric._utils import checks
from quadric._utils.arrays import Array
from quadric.geometry import Quadric
from quadric.geometry._surface_meshes import patches
from quadric.plotting._style import color_of, get_ax, plain


def plot_surface(
    surface: Quadric,
    ax: Any = None,
    *,
    extent: float | None = None,
    color: str | None = None,
    alpha: float = 0.55,
    names: Sequence[str] | None = None,
) -> Any:
    """Draw a quadric of three dimensions: a mesh whose corners lie on it.

    Parameters
    ----------
    surface : Quadric
    ax : matplotlib Axes3D, optional
    extent : float, optional
        How far to draw from the centre; the default fits what `ax` shows, or the surface.
    color : str, optional
    alpha : float
        How opaque.
    names : sequence of str, optional
        For the axes.
    """
    if extent is not None:
        extent = checks.check_number("extent", extent, above=0)
    if names is not None and len(names) != 3:
        raise ValueError(f"names must hold 3 names. Got {len(names)}.")
    ax = get_ax(ax, space=True)
    around: Array | None = None
    if ax.has_data():
        limits = np.array([ax.get_xlim(), ax.get_ylim(), ax.get_zlim()])
        around = limits.mean(axis=1)
        shown = float(np.abs(limits[:, 1] - limits[:, 0]).max() / 2)
    else:
        lengths = surface.axes.half_lengths
        lengths = lengths[np.isfinite(lengths) & (lengths > 0)]
        shown = 2.5 * float(np.median(lengths)) if len(lengths) else 2.0
    for mesh in patches(surface, shown if extent is None else extent, around):
        ax.plot_surface(
            *mesh, color=(*to_rgb(color or color_of(0)), alpha), edgecolor=(1, 1, 1, 0.35),
            linewidth=0.3, rstride=1, cstride=1, shade=True,
        )  # fmt: skip
    ax.set_aspect("equal")
    ax.locator_params(nbins=5)
    for axis, name in zip("xyz", names or "xyz", strict=True):
        getattr(ax, f"set_{axis}label")(plain(name))
    return ax
