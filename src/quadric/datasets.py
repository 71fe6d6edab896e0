"""Data sets of the paper."""

from __future__ import annotations

from typing import Any

import numpy as np

from quadric import checks
from quadric.arrays import Array

__all__ = ["clusters", "xor"]

# the paper's table: mean, and the covariance of the two coordinates (their variances are 1)
CLUSTERS = (
    ((-16, 0), -0.3),
    ((-8, 0), 0.0),
    ((0, 0), 0.3),
    ((0, 10), -0.3),
    ((-8, 10), 0.0),
    ((-16, 10), 0.3),
)


def xor() -> tuple[Array, Array]:
    """The four points of XOR, coded -1 and 1, and their labels, 0 and 1.

    The paper prints the labels as -1 and 1, too; its loss needs 0 and 1.

    >>> X, y = xor()
    >>> X.tolist(), y.tolist()
    ([[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]], [0, 1, 1, 0])
    """
    X = np.array([[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]])
    return X, np.array([0, 1, 1, 0])


def clusters(per_class: int = 2000, *, rng: Any = 0) -> tuple[Array, Array]:
    """The paper's six Gaussian clusters in the plane, and their labels, 0 to 5.

    Parameters
    ----------
    per_class : int
        2000 to train and 500 to test, in the paper.
    rng : int or numpy.random.Generator

    >>> X, y = clusters(500, rng=1)
    >>> X.shape, y.shape
    ((3000, 2), (3000,))
    """
    per_class = checks.check_integer("per_class", per_class, at_least=1)
    generator = checks.as_generator(rng)
    parts = [
        generator.multivariate_normal(mean, [[1, tilt], [tilt, 1]], per_class)
        for mean, tilt in CLUSTERS
    ]
    return np.concatenate(parts), np.repeat(np.arange(len(CLUSTERS)), per_class)
