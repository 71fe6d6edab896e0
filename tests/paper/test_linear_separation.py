"""Linear separability by linear programs."""

import numpy as np

from quadric.apps.paper._clusters import separable_by_argmax, separable_from_the_rest


def squares(*centers):
    """Return squares with sides of 2 around the centers, and their classes."""
    corners = np.array([(-1, -1), (-1, 1), (1, -1), (1, 1)])
    X = np.concatenate([corners + center for center in centers])
    return X, np.repeat(np.arange(len(centers)), 4)


def test_a_row_of_three_is_separable_by_argmax_only():
    X, y = squares((-4, 0), (0, 0), (4, 0))
    assert separable_by_argmax(X, y)
    assert separable_from_the_rest(X, y) == [True, False, True]


def test_a_class_around_another_is_not_separable():
    X, y = squares((0, 0))
    X, y = np.concatenate([X, 5 * X]), np.repeat([0, 1], 4)
    assert not separable_by_argmax(X, y)
    assert separable_from_the_rest(X, y) == [False, False]
