"""Points in the plane: the data of the paper's first two experiments."""

import numpy as np

from quadric.checks import as_generator, check_integer

# The mean of each cluster and the covariance of its two coordinates, which have variance 1.
CLUSTERS = (
    ((-16.0, 0.0), -0.3),
    ((-8.0, 0.0), 0.0),
    ((0.0, 0.0), 0.3),
    ((0.0, 10.0), -0.3),
    ((-8.0, 10.0), 0.0),
    ((-16.0, 10.0), 0.3),
)


def xor() -> tuple[np.ndarray, np.ndarray]:
    """Return the four points of XOR, with coordinates -1 and 1, and their labels 0 and 1.

    Returns
    -------
    X : array of shape (4, 2)
        The points.
    y : array of shape (4,)
        Their labels.

    Notes
    -----
    The paper prints the labels as -1 and 1, but its loss needs 0 and 1.

    Examples
    --------
    >>> X, y = xor()
    >>> X.tolist(), y.tolist()
    ([[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]], [0, 1, 1, 0])
    """
    return np.array([[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]]), np.array([0, 1, 1, 0])


def clusters(
    per_class: int = 2000, rng: int | np.random.Generator | None = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Draw points from the paper's six Gaussian clusters, sorted by class.

    Parameters
    ----------
    per_class : int
        Number of points per cluster.
    rng : int, numpy.random.Generator or None
        A seed or a generator. Two calls with the same generator return independent sets, for
        example for training and testing.

    Returns
    -------
    X : array of shape (6 * per_class, 2)
        The points, one per row.
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
        rng.multivariate_normal(mean, [[1.0, covariance], [covariance, 1.0]], per_class)
        for mean, covariance in CLUSTERS
    ]
    return np.concatenate(parts), np.repeat(np.arange(len(CLUSTERS)), per_class)
