"""Statements of the paper about neurons, parameters and tables, each with its proof or count."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import multivariate_normal, norm

from quadric import Network, datasets
from quadric.apps.paper._mnist import parameters
from quadric.apps.paper._mnist_claims import paper_table, read_table
from quadric.apps.paper._statistics import contrast, holm
from quadric.apps.paper._timing import PAPER
from quadric.geometry import Quadric
from quadric.reference import PARAMETERS


@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_parameters_per_neuron(n):
    """n(n+1)/2 more than a linear neuron, which suffice for every quadratic form."""
    per_neuron = {
        kind: Network.create(n, [(kind, 4, "logistic")], rng=0).n_parameters / 4
        for kind in ("linear", "quadratic", "reduced")
    }
    assert per_neuron["quadratic"] - per_neuron["linear"] == n * (n + 1) // 2
    assert per_neuron["reduced"] - per_neuron["linear"] == n + 1
    rng = np.random.default_rng(n)
    unsymmetric, x = rng.normal(size=(n, n)), rng.normal(size=n)
    symmetric = (unsymmetric + unsymmetric.T) / 2
    assert x @ symmetric @ x == pytest.approx(x @ unsymmetric @ x)


def features(X, quadratic):
    """Return the coefficients of z in the parameters of one neuron, for each point."""
    columns = [np.ones(len(X)), *X.T]
    if quadratic:
        columns += [X[:, i] * X[:, j] for i in range(X.shape[1]) for j in range(i + 1)]
    return np.stack(columns, axis=1)


def realizes(X, signs, quadratic):
    """Return whether the sign of z is as given for some parameters, by a linear program."""
    F = features(X, quadratic)
    constraints = -np.array(signs)[:, None] * F
    found = linprog(np.zeros(F.shape[1]), constraints, -np.ones(len(X)), bounds=(None, None))
    return found.status == 0


def labelings(X, quadratic):
    """Return how many of the 2^N labelings one neuron realizes."""
    return sum(realizes(X, signs, quadratic) for signs in product((-1.0, 1.0), repeat=len(X)))


def test_a_quadratic_neuron_learns_every_labeling_of_six_points():
    """(n+1)(n+2)/2 = 6 points in the plane; a linear neuron learns every labeling of 3."""
    X = np.random.default_rng(0).normal(size=(6, 2))
    assert np.linalg.matrix_rank(features(X, quadratic=True)) == 6
    assert labelings(X, quadratic=True) == 64
    # Cover: 2 (C(5, 0) + C(5, 1) + C(5, 2)) labelings of 6 points in general position
    assert labelings(X, quadratic=False) == 32
    assert labelings(X[:3], quadratic=False) == 8


def test_no_layer_of_linear_neurons_learns_xor():
    """Neither by thresholds nor by argmax; one quadratic neuron learns it.

    Argmax compares two affine functions, and their difference is an affine function.
    """
    X, y = datasets.xor()
    assert realizes(X, 2.0 * y - 1, quadratic=True)
    for signs in (2.0 * y - 1, 1 - 2.0 * y):
        assert not realizes(X, signs, quadratic=False)
    z = -X[:, 0] * X[:, 1]
    np.testing.assert_array_equal(z > 0, y == 1)


def test_boundary_of_a_linear_neuron_is_a_hyperplane():
    w, b = np.array([1.0, -2.0]), 0.5
    assert Quadric(np.zeros((2, 2)), w, b).kind == "line"
    assert Quadric(np.zeros((3, 3)), np.ones(3), b).kind == "plane"


@pytest.mark.parametrize("n", [2, 3, 6])
def test_boundary_of_a_reduced_neuron_is_a_pair_of_hyperplanes(n):
    """z = (w'x + b)(u'x + c) is zero only where a factor is."""
    rng = np.random.default_rng(n)
    w, u, x = (rng.normal(size=n) for _ in range(3))
    b, c = rng.normal(size=2)
    boundary = Quadric((np.outer(w, u) + np.outer(u, w)) / 2, b * u + c * w, b * c)
    assert boundary.value(x) == pytest.approx((w @ x + b) * (u @ x + c))
    on_first = x - (w @ x + b) / (w @ w) * w
    assert boundary.value(on_first) == pytest.approx(0, abs=1e-10)
    if n < 4:
        assert boundary.kind == {2: "crossing lines", 3: "crossing planes"}[n]
    signs = np.sign(np.linalg.eigvalsh(boundary.Q).round(12))
    assert sorted(signs) == [-1, *[0] * (n - 2), 1]  # an ellipsoid would have equal signs


def test_extra_parameters_of_the_last_layer():
    extra = {
        (model, h): parameters(h, model) / parameters(h, "ann") - 1
        for model in ("qnn", "rpqnn")
        for h in (10, 30, 300)
    }
    assert extra["qnn", 10] == pytest.approx(0.07, abs=0.005)
    assert extra["qnn", 30] == pytest.approx(0.195, abs=0.005)
    assert extra["qnn", 300] == pytest.approx(1.89, abs=0.01)
    assert all(0.01 < extra["rpqnn", h] < 0.015 for h in (10, 30, 300))


def test_accuracies_of_the_time_table_are_cells_of_the_mnist_table():
    cells = paper_table()
    for model, (_, accuracy) in PAPER.items():
        assert [key for key, sample in cells.items() if sample.mean == accuracy] == [
            (60000, 5, 30, model)
        ]


@pytest.mark.parametrize("n", [2, 5, 30])
def test_higher_orders_have_more_parameters(n):
    """Independent coefficients of a form; without symmetry there would be n^2 and n^3."""
    second, third = n * (n + 1) // 2, n * (n + 1) * (n + 2) // 6
    assert PARAMETERS["qnn"](1, n) - PARAMETERS["ann"](1, n) == second
    assert second == len({tuple(sorted(pair)) for pair in product(range(n), repeat=2)})
    if n < 10:
        assert third == len({tuple(sorted(triple)) for triple in product(range(n), repeat=3)})
    assert third > second
    assert third / n**3 < second / n**2  # symmetry reduces the third order even more


def test_softmax_boundaries_are_linear():
    """The logarithm of the ratio of two outputs is an affine function of the inputs."""
    net = Network.create(3, [("linear", 4, "softmax")], rng=0)
    X = np.random.default_rng(0).normal(size=(20, 3))
    ratios = np.log(net.forward(X))[:, 1:] - np.log(net.forward(X))[:, :1]
    layer = net.layers[0]
    np.testing.assert_allclose(
        ratios, X @ (layer.W[1:] - layer.W[0]).T + layer.b[1:] - layer.b[0], atol=1e-12
    )


def test_one_quadratic_neuron_is_the_best_classifier_of_two_gaussians():
    """The logarithm of the ratio of the densities is a quadratic function of the inputs."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(2, 3))
    factors = rng.normal(size=(2, 3, 3)) + 2 * np.eye(3)
    covariances = factors @ factors.swapaxes(1, 2)
    P = np.linalg.inv(covariances)
    Q, w = (P[0] - P[1]) / 2, P[1] @ means[1] - P[0] @ means[0]
    b = (means[0] @ P[0] @ means[0] - means[1] @ P[1] @ means[1]) / 2
    b += (np.linalg.slogdet(covariances[0])[1] - np.linalg.slogdet(covariances[1])[1]) / 2
    X = rng.normal(size=(20, 3))
    densities = [
        multivariate_normal(mean, covariance).logpdf(X)
        for mean, covariance in zip(means, covariances, strict=True)
    ]
    neuron = Quadric(Q, w, b)
    np.testing.assert_allclose(neuron.value(X), densities[1] - densities[0], atol=1e-9)


def test_a_linear_neuron_is_worse_for_gaussians_of_different_width():
    """One input, standard deviations 1 and 3: the densities are equal at -x and x."""
    x = np.sqrt(2 * np.log(3) / (1 - 1 / 9))
    assert norm.pdf(x) == pytest.approx(norm.pdf(x, scale=3))
    quadratic = (norm.cdf(x) - norm.cdf(-x) + 2 * norm.cdf(-x, scale=3)) / 2
    thresholds = np.linspace(-20, 20, 4001)
    linear = (1 + np.abs(norm.cdf(thresholds) - norm.cdf(thresholds, scale=3)).max()) / 2
    assert quadratic == pytest.approx(0.742, abs=0.001)
    assert linear == pytest.approx(0.621, abs=0.001)


def test_middle_clusters_lie_between_two_others():
    """No line separates them from the rest, but the nearest mean does, which is linear."""
    means = np.array([(-16, 0), (-8, 0), (0, 0), (0, 10), (-8, 10), (-16, 10)])
    np.testing.assert_array_equal(means[1], (means[0] + means[2]) / 2)
    np.testing.assert_array_equal(means[4], (means[3] + means[5]) / 2)
    X, y = datasets.clusters(500, rng=0)
    z = X @ means.T - (means**2).sum(axis=1) / 2  # as large as possible at the nearest mean
    assert (z.argmax(axis=1) == y).mean() > 0.999


@pytest.fixture(scope="module")
def tables():
    """The means of the MNIST table: the paper's, and ours."""
    path = Path(__file__).parents[2] / "results" / "mnist.csv"
    return {"paper": paper_table(), "ours": read_table(path.read_text().splitlines(), runs=60)}


@pytest.mark.parametrize(("name", "from_5", "from_10"), [("paper", 59, 34), ("ours", 60, 44)])
def test_runs_of_few_epochs_end_before_a_minimum(tables, name, from_5, from_10):
    """At a minimum, the mean accuracy would not rise with more epochs."""
    table = tables[name]
    for epochs, expected in ((5, from_5), (10, from_10)):
        longer = {
            key: contrast((1, table[key[0], 20, *key[2:]]), (-1, sample))
            for key, sample in table.items()
            if key[1] == epochs
        }
        signs = [test.sign for test in holm(longer).values()]
        assert len(signs) == 60
        assert signs.count(1) == expected
        assert -1 not in signs


@pytest.mark.parametrize(
    ("name", "expected"), [("paper", (0.04, 0.20, 1.45)), ("ours", (0.04, 0.19, 1.43))]
)
def test_the_mean_of_25_runs_has_a_fifth_of_their_variation(tables, name, expected):
    errors = [sample.std / np.sqrt(25) for sample in tables[name].values()]
    assert len(errors) == 180
    found = min(errors), np.median(errors), max(errors)
    np.testing.assert_allclose(found, expected, atol=0.006)
