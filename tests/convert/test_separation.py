"""The cluster theorem: smallest ellipsoids, disjoint or not, and the counterexample."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.datasets import load_iris, make_moons

from quadric import datasets, separate
from quadric.convert import separating_quadric
from quadric.geometry import Quadric, disjoint, smallest_ellipsoid
from tests.support.ellipsoids import ellipsoid
from tests.support.exact import rank, rationals


def volume(q):
    return np.prod(q.axes.half_lengths)


def test_smallest_ellipsoids_match_hand_worked_ones():
    simplex = smallest_ellipsoid(np.array([[0, 0], [2, 0], [1, np.sqrt(3)]]))  # its circumcircle
    np.testing.assert_allclose(simplex.center, [1, 1 / np.sqrt(3)], atol=1e-6)
    np.testing.assert_allclose(simplex.axes.half_lengths, 2 / np.sqrt(3), rtol=1e-6)
    box = smallest_ellipsoid(np.array([[x, y] for x in (-3, 3) for y in (-1, 1)]))
    np.testing.assert_allclose(box.axes.half_lengths, [3 * np.sqrt(2), np.sqrt(2)], rtol=1e-6)


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 6))
def test_smallest_ellipsoid_encloses_and_is_smallest(seed, n):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rng.integers(n + 2, 60), n)) @ rng.normal(size=(n, n))
    q = smallest_ellipsoid(X)
    assert q.is_ellipsoid if n > 1 else q.kind == "two points"
    assert q.value(X).max() <= 0
    # the ellipsoid of an affine image is the image of the ellipsoid
    scale, shift = rng.uniform(0.1, 10, n), rng.normal(size=n) * 5
    image = smallest_ellipsoid(X * scale + shift)
    assert volume(image) == pytest.approx(volume(q) * np.prod(scale), rel=1e-5)
    # any other ellipsoid around the points is larger: enlarge random ones until they fit
    for _ in range(5):
        A = q.Q + 0.3 * np.abs(q.Q).max() * np.outer(*[rng.normal(size=n)] * 2)
        center = q.center + 0.1 * rng.normal(size=n) * q.axes.half_lengths.min()
        far = np.einsum("ij,jk,ik->i", X - center, A, X - center).max()
        assert volume(ellipsoid(center, np.linalg.inv(A) * far)) >= volume(q) * (1 - 1e-6)


@pytest.mark.parametrize("tolerance", [0.5, 0.1, 0.01, 1e-4])
def test_the_tolerance_bounds_the_volume(tolerance):
    reached = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 6))
        X = rng.normal(size=(n + 20, n))
        exact, found = (smallest_ellipsoid(X, tolerance=t) for t in (1e-10, tolerance))
        assert found.encloses(X).all()
        bound = n / 2 * np.log1p((1 + 1 / n) * tolerance)
        reached.append(np.log(volume(found) / volume(exact)) / bound)
        assert bound <= n / 2 * np.log1p(2 * tolerance)
    assert 0.5 < max(reached) < 1 + 1e-5


def test_flat_classes_get_a_thin_ellipsoid():
    line = np.array([[0, 0, 0], [1, 1, 1], [2, 2, 2.0]])
    q = smallest_ellipsoid(line)
    assert q.kind == "ellipsoid"
    np.testing.assert_allclose(q.axes.half_lengths[0], np.sqrt(3), rtol=1e-6)
    np.testing.assert_allclose(q.axes.half_lengths[1:], np.sqrt(3) * 1e-3, rtol=1e-5)
    assert q.encloses(line).all()
    single = smallest_ellipsoid([[5.0, 7.0]])
    np.testing.assert_allclose(single.axes.half_lengths, 1e-3)
    assert single.encloses([5, 7])


def test_disjoint_ellipsoids_are_told_from_touching_and_nested_ones():
    unit = ellipsoid([0, 0], np.eye(2))
    assert disjoint(unit, ellipsoid([2.01, 0], np.eye(2)))
    assert not disjoint(unit, ellipsoid([1.99, 0], np.eye(2)))
    assert not disjoint(unit, ellipsoid([0, 0], 100 * np.eye(2)))  # one inside the other
    assert not disjoint(ellipsoid([0, 0], 100 * np.eye(2)), unit)
    assert disjoint(unit, ellipsoid([2 + 1e-9, 0], np.eye(2)))
    assert not disjoint(unit, ellipsoid([2 + 1e-15, 0], np.eye(2)))  # not certain
    thin = ellipsoid([0, 1.5], [[100, 0], [0, 0.01]])
    assert disjoint(unit, thin)
    assert disjoint(thin, unit)


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1))
def test_disjoint_agrees_with_points(seed):
    """A point in both proves that they intersect; a separating plane proves the opposite."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    shapes = []
    for _ in range(2):
        A = rng.normal(size=(n, n))
        shapes.append((rng.normal(size=n) * 2, A @ A.T + 0.05 * np.eye(n)))
    (c1, S1), (c2, S2) = shapes
    first, second = ellipsoid(c1, S1), ellipsoid(c2, S2)
    answer = disjoint(first, second)
    assert answer == disjoint(second, first)
    directions = rng.normal(size=(4000, n))
    gaps = directions @ (c2 - c1) - np.sqrt(np.einsum("ij,jk,ik->i", directions, S1, directions))
    gaps -= np.sqrt(np.einsum("ij,jk,ik->i", directions, S2, directions))
    ball = directions / np.linalg.norm(directions, axis=1)[:, None] * rng.random((4000, 1))
    inside = c1 + ball @ np.linalg.cholesky(S1).T
    if gaps.max() > 1e-9:
        assert answer
    if second.encloses(inside).any():
        assert not answer


def test_the_papers_clusters_are_separated_by_their_ellipsoids():
    X, y = datasets.clusters(rng=0)
    result = separate(X, y)
    assert result.disjoint
    assert result.separates
    assert [q.kind for q in result.ellipsoids] == ["ellipse"] * 6
    for k, q in enumerate(result.ellipsoids):
        assert q.encloses(X[y == k]).all()
        assert not q.encloses(X[y != k]).any()
    assert ((result.network.forward(X) > 0.5) == np.eye(6, dtype=bool)[y]).all()
    assert (result.predict(X) == y).all()
    assert "the separation is certain" in str(result)
    new, labels = datasets.clusters(500, rng=1)
    assert (result.predict(new) == labels).mean() > 0.999


def test_overlapping_classes_are_named():
    data = load_iris()
    result = separate(data.data, data.target_names[data.target])
    assert result.overlapping == [("versicolor", "virginica")]
    assert not result.disjoint
    assert not result.separates
    assert ("versicolor", "virginica") in result.intruding
    assert "overlap: versicolor and virginica" in str(result)


def monomials(X):
    rows, columns = np.triu_indices(X.shape[1])
    return np.column_stack([X[:, rows] * X[:, columns], X, np.ones(len(X), dtype=X.dtype)])


@pytest.mark.slow
def test_no_conic_separates_two_moons():
    X, y = make_moons(200, noise=0.0, random_state=0)
    assert not separate(X, y).disjoint
    result = separating_quadric(X, y)
    assert result.quadric is None
    # verify the proof: both classes have equal weighted means of every monomial
    weights = result.weights
    assert (weights >= 0).all()
    for label in (0, 1):
        assert weights[y == label].sum() == pytest.approx(1)
    first, second = (weights[y == k] @ monomials(X[y == k]) for k in (0, 1))
    np.testing.assert_allclose(first, second, atol=1e-9)


def test_a_conic_that_separates_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) * [1000, 0.001] + [5, 7]  # very different units
    radius = np.hypot((X[:, 0] - 5) / 1000, (X[:, 1] - 7) / 0.001)
    keep = np.abs(radius - 1) > 0.05
    X, y = X[keep], np.where(radius[keep] < 1, "in", "out")
    result = separating_quadric(X, y)
    assert result.weights is None
    assert ((result.quadric.value(X) > 0) == (y == "out")).all()
    assert result.margin > 0
    assert result.quadric.kind == "ellipse"


def test_classes_and_shapes_that_cannot_be_separated_are_refused():
    with pytest.raises(ValueError, match="at least 2 classes"):
        separate([[0.0, 1], [1, 0]], [1, 1])
    with pytest.raises(ValueError, match="exactly 2 classes"):
        separating_quadric([[0.0], [1], [2]], [0, 1, 2])
    with pytest.raises(ValueError, match=r"y \(n_samples,\)"):
        separate([[0.0, 1], [1, 0]], [1])
    with pytest.raises(ValueError, match="X must be finite"):
        separate([[0.0, np.nan], [1, 0]], [1, 0])
    with pytest.raises(ValueError, match="both surfaces must be ellipsoids"):
        disjoint(ellipsoid([0, 0], np.eye(2)), Quadric([[1, 0], [0, -1]], [0, 0], 1))


def test_every_point_stays_inside_its_ellipsoid_far_from_the_origin():
    """Rounding of the network's coefficients leaves every point inside its own ellipsoid."""
    X, y = datasets.clusters(300, rng=0)
    result = separate(X + 1e5, y)
    assert result.separates
    assert ((result.network.logits(X + 1e5) >= 0) == np.eye(6, dtype=bool)[y]).all()


def test_decided_and_undecided_separations():
    for X, y in (
        ([[0, 0], [1e-5, 0], [2e-5, 0], [1, 1], [1, -1]], [0, 1, 0, 0, 0]),
        ([[0.0], [1.0], [2.0], [1e5]], [0, 1, 0, 0]),
    ):
        assert assert_right_answer(X, y)
    with pytest.raises(ArithmeticError, match="undecided"):
        separating_quadric([[0.0], [1e-9], [2e-9], [1.0]], [0, 1, 0, 0])


@pytest.mark.parametrize("distance", [1e-6, 1e-7, 1e-8, 1e-9, 1e-12])
def test_close_points_do_not_prove_that_no_quadric_separates(distance):
    """-(x - d/2)(x - 3d/2) separates, but its values vanish among the rounding errors."""
    assert (
        assert_right_answer([[0.0], [distance], [2 * distance], [1.0]], [0, 1, 0, 0]) is not False
    )


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[0.0], [1], [2], [3]], [0, 1, 0, 1]),
        ([[0.0, 0], [1, 0], [2, 0], [3, 0], [5, 7]], [0, 1, 0, 1, 0]),  # on a line
        ([[0.0, 0], [0, 0], [1, 2]], [0, 1, 0]),  # a point of both classes
        ([[i, j] for i in range(4) for j in range(4)], [0, 1, 0, 1, 1, 0, 1, 0] * 2),
    ],
)
def test_few_points_prove_that_no_quadric_separates(X, y):
    result = separating_quadric(X, y)
    assert result.quadric is None
    assert result.margin == 0
    assert result.weights.sum() == pytest.approx(2)


def exact_values(quadric, X):
    """F at each row of X, computed with rational numbers from the source of the surface."""
    source, change = quadric._origin or (quadric, None)
    Q, w, b, X = (rationals(part) for part in (source.Q, source.w, source.b, X))
    if change is not None:
        X = rationals(change.A) * X + rationals(change.t)
    return ((X @ Q) * X).sum(axis=1) + X @ w + b


def assert_right_answer(X, y):
    """Either answer is checked with rational numbers; True if the classes are separated."""
    X, y = np.asarray(X, dtype=float), np.asarray(y)
    try:
        result = separating_quadric(X, y)
    except ArithmeticError:
        return None
    if result.quadric is not None:
        values = exact_values(result.quadric, X)
        assert all(values)
        assert [value > 0 for value in values] == (y == y.max()).tolist()
        return True
    # quadratic functions separate any points whose monomials are linearly independent
    support = result.weights > 0
    assert rank(monomials(rationals(X[support]))) < support.sum()
    return False


def test_certify_C8_points_that_a_quadric_separates_are_called_inseparable():
    X = [[3, 4], [4, 3], [5 + 1e-12, 0], [0, 5], [-3, 4], [-5, 0]]
    assert assert_right_answer(X, [0, 1, 0, 1, 0, 1])


@pytest.mark.parametrize("seed", range(40))
def test_certify_C8_rounded_points_of_a_circle(seed):
    angles = np.random.default_rng(seed).uniform(0, 2 * np.pi, size=6)
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    assert rank(monomials(rationals(X))) == 6  # so any labels can be separated
    assert assert_right_answer(X[np.argsort(angles)], [0, 1, 0, 1, 0, 1]) is not False


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[3, 4], [4, 3], [5, 0], [0, 5], [-3, 4], [-5, 0]], [0, 1, 0, 1, 0, 1]),
        ([[0.1, 0.7]] * 2 + [[1, 1], [2, 3]], [0, 1, 0, 1]),
        ([[i / 8, j / 8, 0.5] for i in range(4) for j in range(4)], [0, 1, 0, 1, 1, 0, 1, 0] * 2),
        ([[1e6 + i] for i in range(4)], [0, 1, 0, 1]),
        ([[1e-9 * i] for i in range(4)], [0, 1, 0, 1]),
    ],
)
def test_certify_C8_inseparable_points_are_still_proven(X, y):
    result = separating_quadric(X, y)
    assert result.quadric is None
    X, y, weights = np.array(X, dtype=float), np.array(y), result.weights
    for label in (0, 1):
        assert weights[y == label].sum() == pytest.approx(1)
    first, second = (weights[y == k] @ monomials(X[y == k]) for k in (0, 1))
    np.testing.assert_allclose(first, second, rtol=1e-12)


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1))
def test_certify_C8_answers_for_random_points(seed):
    """Points on a conic, rounded or not, with a repeated point or not."""
    rng = np.random.default_rng(seed)
    n, count = int(rng.integers(1, 4)), int(rng.integers(3, 13))
    X = rng.normal(size=(count, n))
    if rng.random() < 0.5:
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    if rng.random() < 0.5:
        X = np.round(X * 4) / 4
    X = X * 10 ** rng.uniform(-6, 6) + rng.choice([0, 1, 1000])
    y = rng.permutation(np.arange(count) % 2)
    answer = assert_right_answer(X, y)
    if rank(monomials(rationals(X))) == count:
        assert answer is not False


def test_the_margin_is_the_smallest_value_on_the_points():
    """Also for a solution that needs a second attempt, with points scaled by their size."""
    rng = np.random.default_rng(1)
    near = rng.normal(size=(40, 2))
    near[:20] *= 1e-5
    far = rng.normal(size=(300, 2))
    far = far[np.abs(np.hypot(*far.T) - 1) > 0.05]
    for X, y in ((near, near[:, 0] > 1e5 * near[:, 1] ** 2), (far, np.hypot(*far.T) > 1)):
        result = separating_quadric(X, y)
        smallest = np.abs(result.quadric.value(X)).min()
        assert result.margin == pytest.approx(smallest, rel=1e-3)


def test_data_too_far_from_the_origin_is_refused():
    A = np.random.default_rng(0).normal(size=(50, 2))
    X = np.column_stack([np.vstack([A, A + np.array([10, 0])]), np.full(100, 1e7)])
    with pytest.raises(ValueError, match=r"(so far|much farther) from the origin"):
        separate(X, [0] * 50 + [1] * 50)
    assert separate(X - X.mean(axis=0), [0] * 50 + [1] * 50).disjoint


@pytest.mark.parametrize("noise", [1e-3, 1e-6, 1e-9, 0.0])
def test_almost_collinear_points_are_enclosed(noise):
    t = np.arange(20.0)
    P = np.column_stack([t, t]) + np.random.default_rng(0).normal(size=(20, 2)) * noise
    q = smallest_ellipsoid(P)
    assert q.is_ellipsoid
    assert q.encloses(P).all()


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1))
def test_fewer_points_than_dimensions_are_enclosed(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 11))
    P = rng.normal(size=(rng.integers(1, n + 1), n))
    assert smallest_ellipsoid(P).encloses(P).all()


def test_missing_labels_are_refused():
    for labels in ([0.0, np.nan], [0.0, np.inf], [None, "a"]):
        with pytest.raises(ValueError, match="none of them missing"):
            separate([[0.0, 1], [1, 0]], labels)
