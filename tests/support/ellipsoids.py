"""Ellipsoids with a given center and shape."""

import numpy as np

from quadric.geometry import Quadric


def ellipsoid(center, shape):
    """The ellipsoid (x - center)' inv(shape) (x - center) = 1; F is negative inside.

    `shape` is symmetric and positive definite; its eigenvalues are the squared half-lengths.
    """
    matrix = np.linalg.inv(np.asarray(shape, dtype=float))
    return Quadric(matrix, np.zeros(len(matrix)), -1.0).transform(1.0, center)
