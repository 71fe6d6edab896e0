"""Counterfactuals within bounds: none is missed, and none is longer than necessary."""

from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quadric import Network, QuadraticLogisticRegression
from quadric.certify import counterfactual
from quadric.core import Linear, Quadratic
from tests.support.recourse import draw, matrices, nearest, with_many_bounds


def one_output(Q, w, b):
    return Network([Quadratic([w], [b], [Q])], ["logistic"])


CIRCLE = one_output(-np.eye(2), [0.0, 0.0], 4.0)  # class 1 within a radius of 2


def check(problem, found, wanted):
    """The point is valid, within the bounds, and not longer than that of another solver."""
    assert found.distance <= 1.0001 * wanted
    assert found.lower_bound <= found.distance
    assert found.lower_bound <= wanted * (1 + 1e-9)
    if found.exact and np.isfinite(found.distance):
        assert found.distance <= wanted * (1 + 1e-5)
    if np.isinf(found.distance):
        return
    assert ((problem.low <= found.point) & (found.point <= problem.high)).all()
    np.testing.assert_allclose(problem.length(found.point), found.distance, rtol=1e-9)
    label = problem.model.predict(found.point[None])[0]
    assert label == found.becomes != problem.own
    assert problem.to in (None, label)
    for change in found.changes:
        i = found.names.index(change.name)
        assert problem.low[i] <= change.after <= problem.high[i]


def solve(problem):
    return counterfactual(
        problem.model,
        problem.x,
        to=problem.to,
        bounds=problem.bounds,
        weights=problem.weights,
    )


@pytest.mark.sample(25)
@pytest.mark.parametrize("seed", range(600))
def test_certify_C7_no_bounded_counterfactual_is_missed_or_longer_than_necessary(seed):
    problem = draw(seed)
    found = solve(problem)
    check(problem, found, nearest(problem, seed=seed))
    if problem.to is None:
        assert found.exact


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("n", [12, 20, pytest.param(40, marks=pytest.mark.full)])
def test_certify_C7_many_bounded_inputs(n, seed):
    problem = with_many_bounds(seed, n)
    check(problem, solve(problem), nearest(problem, starts=16, seed=seed))


def test_certify_C7_the_second_nearest_zero_is_found():
    roots = one_output([[1.0]], [-1.0], -2.0)  # (x + 1)(x - 2)
    found = counterfactual(roots, [0.0], bounds={0: (0, 5)})
    np.testing.assert_allclose(found.point, [2.0], rtol=1e-9)
    assert found.exact
    assert str(found) == "1 with x1 2.1 instead of 0"


def test_certify_C7_inputs_that_may_only_grow():
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), QuadraticLogisticRegression()).fit(X, y)
    for x in X[::15]:
        found = counterfactual(model, x, bounds={i: (value, None) for i, value in enumerate(x)})
        assert found.exact
        assert (found.point >= x).all()
        assert model.predict(found.point[None])[0] == found.becomes != found.predicted


def test_certify_C7_the_zeros_around_a_center():
    # the nearest zeros of a circle from its center are all of them: take one within the bounds
    for low, high in product([-3.0, -1.0, 0.0], [0.0, 1.0, 3.0]):
        for second in [(-3.0, 3.0), (-1.0, 1.0), (0.0, 3.0), (-3.0, 0.0)]:
            found = counterfactual(CIRCLE, [0.0, 0.0], bounds={0: (low, high), 1: second})
            feasible = max(-low, high) + max(-second[0], second[1]) > 2.5
            assert np.isfinite(found.distance) == feasible
            assert found.exact
            if feasible:
                np.testing.assert_allclose(found.distance, 2.0, rtol=1e-9)


@pytest.mark.parametrize(
    ("Q", "w", "b", "x", "bounds", "point"),
    [
        # the axis of an ellipse: two nearest points, one of them outside
        (
            np.diag([-1.0, -4.0]),
            [0.0, 0.0],
            4.0,
            [0.5, 0.0],
            {1: (None, 0.5)},
            [2 / 3, -(8**0.5) / 3],
        ),
        # a plane, with a flat direction at a bound
        (np.zeros((2, 2)), [-1.0, -1.0], 1.0, [0.0, 0.0], {0: (None, 0.2)}, [0.2, 0.8]),
        # a parabolic cylinder
        (np.diag([-1.0, 0.0]), [0.0, 0.0], 1.0, [0.1, 7.0], {0: (None, 0.9)}, [-1.0, 7.0]),
        # rank one with a direction that is not an axis
        (
            -np.ones((2, 2)),
            [0.0, 0.0],
            1.0,
            [0.1, 0.1],
            {0: (0.1, None), 1: (0.1, 0.2)},
            [0.8, 0.2],
        ),
        # the other class is reached only in a corner
        (
            np.zeros((2, 2)),
            [-1.0, -1.0],
            1.999,
            [0.0, 0.0],
            {0: (0, 1), 1: (0, 1)},
            [0.9995, 0.9995],
        ),
        # an input whose bounds are equal
        (-np.eye(2), [0.0, 0.0], 4.0, [1.0, 0.5], {1: (0.5, 0.5)}, [3.75**0.5, 0.5]),
        # the gradient is zero at the row
        (np.diag([-1.0, 1.0]), [0.0, 0.0], 1.0, [0.0, 0.0], {0: (-0.5, 3.0)}, [1.0, 0.0]),
        # tiny units
        (np.diag([-1e12]), [0.0], 1.0, [2e-7], {0: (None, 3e-7)}, [-1e-6]),
    ],
)
def test_certify_C7_degenerate_functions(Q, w, b, x, bounds, point):
    network = one_output(Q, w, b)
    assert network.predict(np.array([x]))[0] == 1
    found = counterfactual(network, x, bounds=bounds)
    np.testing.assert_allclose(found.point, point, rtol=1e-6, atol=1e-9)
    assert found.exact
    assert network.predict(found.point[None])[0] == 0


def test_certify_C7_a_row_on_the_boundary_itself():
    roots = one_output([[1.0]], [-1.0], -2.0)
    for bounds in (None, {0: (2, None)}):
        found = counterfactual(roots, [2.0], bounds=bounds)
        assert found.becomes == 1
        assert found.distance < 1e-12


def test_certify_C7_without_a_solution():
    found = counterfactual(CIRCLE, [0.5, 0.0], bounds={0: (-1, 1), 1: (-1, 1)})
    assert found.exact
    assert found.distance == np.inf
    assert np.isnan(found.point).all()
    assert found.lower_bound == counterfactual(CIRCLE, [0.5, 0.0]).lower_bound
    assert str(found) == (
        "1: no input with another class was found; up to rounding errors, there is none"
    )
    three = Network([Linear([[1.0], [0.0], [-1.0]], [0.0, 0.5, 0.0])], ["softmax"])
    found = counterfactual(three, [0.0], to=2, bounds={0: (0, None)})
    assert str(found).startswith("1: no input with class 2 was found")
    assert counterfactual(three, [0.0], bounds={0: (0, None)}).becomes == 0
    found = counterfactual(three, [0.0], fixed=[0])
    assert str(found) == "1: no input with another class exists"


def test_certify_C7_the_bounds_must_contain_the_row():
    with pytest.raises(
        ValueError, match=r"x1 is 0.1234567891, which is not between -inf and 0.123"
    ):
        counterfactual(CIRCLE, [0.1234567891, 0.0], bounds={0: (None, 0.1234567)})


def test_certify_C7_a_given_class_within_bounds():
    # class 1 is between the classes 0 and 2 along x1, and can be avoided along x2
    W, b = [[0.0, 0.0], [1.0, -1.0], [2.0, 0.0]], [0.0, 0.0, -1.0]
    three = Network([Linear(W, b)], ["softmax"])
    x = np.array([-1.0, -1.0])
    for bounds in ({1: (-1.0, None)}, {0: (-1, None), 1: (-1, None)}, {0: (-1, 0.7)}):
        found = counterfactual(three, x, to=2, bounds=bounds)
        assert three.predict(found.point[None])[0] == 2 == found.becomes
    assert counterfactual(three, x, to=2, bounds={0: (-1, 0.4)}).distance == np.inf


@pytest.mark.parametrize("seed", range(20))
def test_certify_C7_integers_within_bounds(seed):
    rng = np.random.default_rng(seed)
    n, kind = int(rng.integers(1, 4)), ("definite", "indefinite", "deficient", "linear")[seed % 4]
    network = one_output(matrices(rng, kind, 1, n)[0] / 4, rng.normal(size=n), 2 * rng.normal())
    x = rng.integers(-3, 4, size=n).astype(float)
    high = x + rng.integers(1, 7, size=n)
    found = counterfactual(
        network, x, bounds=dict(enumerate(zip(x, high, strict=True))), integers=range(n)
    )
    grid = np.array(list(product(*(np.arange(a, b + 1) for a, b in zip(x, high, strict=True)))))
    other = network.predict(grid) != network.predict(x[None])[0]
    wanted = np.linalg.norm(grid[other] - x, axis=1).min(initial=np.inf)
    assert found.distance == wanted or abs(found.distance - wanted) < 1e-9
    if np.isfinite(wanted):
        assert (found.point == found.point.round()).all()
        assert ((found.point >= x) & (found.point <= high)).all()


def test_certify_C7_many_integers_within_bounds():
    n = 20
    plane = Network([Linear([np.full(n, -1.0)], [108.5])], ["logistic"])
    x, bounds = np.full(n, 5.0), dict.fromkeys(range(n), (3, 8))
    found = counterfactual(plane, x, bounds=bounds, integers=range(n))
    assert (found.point == found.point.round()).all()
    assert ((found.point >= 3) & (found.point <= 8)).all()
    assert found.point.sum() == 109  # nine inputs grow by one
    assert found.distance == 3


@pytest.mark.parametrize(
    ("A", "x"),
    [
        (np.eye(2), [0.0, 0.0]),
        (np.diag([1.0, -1.0]), [0.0, 0.0]),
        (np.diag([1.0, 0.0]), [0.0, 3.0]),
    ],
    ids=["minimum", "saddle", "valley"],
)
@pytest.mark.parametrize("bounds", [None, {0: (0, 5)}])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_certify_C7_a_row_on_a_stationary_point_of_the_tie(A, x, bounds, dtype):
    network = Network([Quadratic([[0.0, 0.0]], [0.0], [A])], ["logistic"]).astype(dtype)
    found = counterfactual(network, x, bounds=bounds)
    assert found.distance < 1e-6
    assert network.predict(found.point[None]) == found.becomes == 1


def test_certify_C7_the_nearest_integers_are_found_on_both_sides():
    network = Network(
        [Quadratic([[1.0], [-1.0], [1.0]], [0.0, 0.0, -2.0], [[[1.0]], [[0.0]], [[4.0]]])],
        ["softmax"],
    )
    assert counterfactual(network, [0.24], integers=[0]).point.tolist() == [1.0]
    Q = [[[1, 1], [1, 0]], [[0, -1], [-1, -1]], [[0, 0], [0, -2]]]
    network = Network(
        [Quadratic([[1.0, 0], [0, -1], [0, 1]], [-1.0, 0, -2], Q)],
        ["softmax"],
    )
    bounds = {0: (-2.9, 0.6), 1: (0.05, 0.05)}
    found = counterfactual(network, [0.1, 0.05], integers=[0], bounds=bounds)
    assert found.point.tolist() == [-2.0, 0.05]


def test_certify_C13_a_sparse_row_is_accepted():
    network = Network([Linear([[1.0, 1.0]], [-1.0])], ["logistic"])
    dense, sparse = (counterfactual(network, x) for x in ([0.0, 0.0], csr_matrix([[0.0, 0.0]])))
    np.testing.assert_array_equal(dense.point, sparse.point)
