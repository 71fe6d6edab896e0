"""The smallest ellipsoids around thin sets of points, whose volumes are known or rational."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.linalg import hadamard

from quadric import separate
from quadric.geometry._ellipsoids import THINNEST, smallest_ellipsoid
from tests.support.exact import determinant, rationals


def relative_volume(q):
    """The volume divided by that of the unit ball, from the map to the unit ball, exactly."""
    source, change = q._origin
    np.testing.assert_array_equal(source.Q, np.eye(q.n_dims))
    assert source.b == -1
    assert not source.w.any()
    return abs(float(1 / determinant(rationals(change.matrix))))


def simplex_volume(X):
    """The same for the smallest ellipsoid around n + 1 points, an image of a regular simplex."""
    n = X.shape[1]
    exact = rationals(X)
    # the unit ball around a regular simplex, whose edges have this determinant
    regular = np.sqrt((n + 1) ** (n + 1) / n**n)
    return abs(float(determinant(exact[1:] - exact[0]))) / regular


def assert_encloses(q, X):
    """All points are inside, both as `encloses` computes it and without rounding errors."""
    assert q.encloses(X).all()
    _, change = q._origin
    images = rationals(X) @ rationals(change.matrix).T + rationals(change.t)
    assert ((images**2).sum(axis=1) <= 1).all()


def thin_simplex(n, aspect, seed):
    """n + 1 points with half-lengths from 1 to 1/aspect along random axes."""
    rng = np.random.default_rng(seed)
    corners = np.vstack([np.eye(n), np.full(n, (1 - np.sqrt(n + 1)) / n)])
    axes = np.linalg.qr(rng.normal(size=(n, n)))[0]
    return (corners - corners.mean(axis=0)) @ (np.geomspace(1, 1 / aspect, n)[:, None] * axes)


@pytest.mark.parametrize("aspect", [1, 1e3, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11])
@pytest.mark.parametrize("n", [2, 3, 6])
def test_certify_C9_thin_simplices_have_ellipsoids_that_are_too_large(n, aspect):
    for seed in range(3):
        X = thin_simplex(n, aspect, seed)
        q = smallest_ellipsoid(X)
        assert_encloses(q, X)
        ratio = relative_volume(q) / simplex_volume(X)
        # the rounding errors of F on the points also enlarge the ellipsoid
        assert 1 - 1e-12 <= ratio <= (1 + 2e-7 + 4 * n * n * 2e-16 * aspect) ** (n / 2)


@pytest.mark.parametrize("thickness", [1e-3, 1e-5, 3e-6, 1e-7, 1e-8])
def test_certify_C9_thin_points_have_an_ellipsoid_that_is_too_large(thickness):
    """(t, t + thickness e) is an affine image of (t, e), whose second coordinate is exact."""
    rng = np.random.default_rng(0)
    t = np.arange(20) / 32
    X = np.column_stack([t, t + thickness * rng.normal(size=20)])
    offsets = X[:, 1] - X[:, 0]  # without rounding errors, because the two are close
    unit = 2.0 ** np.round(np.log2(thickness))
    wanted = relative_volume(smallest_ellipsoid(np.column_stack([t, offsets / unit]))) * unit
    found = smallest_ellipsoid(X)
    assert_encloses(found, X)
    assert abs(relative_volume(found) / wanted - 1) <= 4e-7


def test_certify_C9_two_thin_classes_are_not_separated():
    rng = np.random.default_rng(0)
    t = np.linspace(0, 1, 100)
    for thickness in (1e-6, 1e-7, 1e-8, 1e-10, 0.0):
        first = np.column_stack([t, t + thickness * rng.normal(size=100)])
        distance = 1e-2 if thickness == 0 else 1e-4  # flat classes have a thickness of 1e-3
        second = np.column_stack([t, first[:, 1] + distance])
        X, y = np.vstack([first, second]), np.repeat([0, 1], 100)
        result = separate(X, y)
        assert result.disjoint
        assert result.separates
        assert (result.predict(X) == y).all()


def test_the_ellipsoids_of_separate_are_not_thinner_than_a_neuron_allows():
    t = np.linspace(0, 1, 50)
    X = np.column_stack([t, t + 1e-10 * np.cos(50 * t)])
    result = separate(np.vstack([X, X + 1]), np.repeat([0, 1], 50))
    for q in result.ellipsoids:
        assert q.axes.half_lengths[1] / q.axes.half_lengths[0] == pytest.approx(THINNEST, rel=1e-3)


def test_symmetric_points_have_the_ball_around_them():
    """The corners of a cube and the vertices of a cross-polytope, also in very different units."""
    for X in (hadamard(4), np.vstack([np.eye(4), -np.eye(4)])):
        X = np.vstack([X, -X])
        units = np.array([1e9, 1.0, 1e-9, 3.0])
        radius = np.linalg.norm(X[0])
        q = smallest_ellipsoid(X * units)
        assert relative_volume(q) == pytest.approx(radius**4 * np.prod(units), rel=4e-7)
        np.testing.assert_allclose(q.center / units, 0, atol=1e-6)


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1), st.floats(0, 11))
def test_certify_C9_simplices_far_from_the_origin(seed, exponent):
    rng = np.random.default_rng(seed)
    n, aspect = int(rng.integers(2, 6)), 10**exponent
    offset = 10 ** rng.uniform(-3, 3) * rng.normal(size=n)
    X = thin_simplex(n, aspect, seed) + offset
    try:
        q = smallest_ellipsoid(X)
    except ValueError as error:
        far = np.abs(offset).max() * aspect > 1e11
        assert "much farther from the origin" in str(error) and far  # noqa: PT017, PT018
        return
    assert_encloses(q, X)
    size = (1 + np.abs(offset).max()) * aspect
    if size < 1e9:
        ratio = relative_volume(q) / simplex_volume(X)
        assert 1 - 1e-12 <= ratio <= (1 + 2e-7 + 8 * n * n * 2e-16 * size) ** (n / 2)


def test_rational_determinants():
    assert determinant(rationals([[1, 2], [3, 4]])) == Fraction(-2)
