"""Points of the plane: the paper's first two experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quadric._utils.checks import as_generator, check_integer

if TYPE_CHECKING:
    from quadric._utils.arrays import Array


# The mean of each cluster, and the covariance of its two coordinates (both have variance 1).
CLUSTERS = (
    ((-16.0, 0.0), -0.3),
    ((-8.0, 0.0), 0.0),
    ((0.0, 0.0), 0.3),
    ((0.0, 10.0), -0.3),
    ((-8.0, 10.0), 0.0),
    ((-16.0, 10.0), 0.3),
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


def clusters(
    per_class: int = 2000, rng: int | np.random.Generator | None = 0
) -> tuple[Array, Array]:
    """The paper's six Gaussian clusters, sorted by class.

    Parameters
    ----------
    per_class : int
        How many points to draw from each cluster.
    rng : int, numpy.random.Generator or None
        A seed, or a generator to draw from: two calls with one generator give, say, a training and
        a test set.

    Returns
    -------
    X : array of shape (6 * per_class, 2)
    y : array of shape (6 * per_class,)
        The cluster of each row, 0 to 5.

    Examples
    --------
    >>> X, y = clusters(per_class=2)
    >>> X.shape, y.tolist()
    ((12, 2), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5])
    """
    per_class = check_integer("per_class", per_class, at_least=1)
    rng = as_generator(rng)
    parts = [
        rng.multivariate_normal(mean, [[1.0, tilt], [tilt, 1.0]], per_class)
        for mean, tilt in CLUSTERS
    ]
    return np.concatenate(parts), np.repeat(np.arange(len(CLUSTERS)), per_class)
