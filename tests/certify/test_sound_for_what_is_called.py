"""Certificates hold for what the user calls, in every precision and at every scale."""

import warnings

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA, IncrementalPCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from quadric import Network, QuadraticClassifier, QuadraticLogisticRegression
from quadric.certify import radius
from quadric.certify._model_and_rounding import absolute_layers, shares
from quadric.core import Linear, Quadratic
from tests.support.adversary import STEPS, attack, underflows
from tests.support.exact import distance, exactly


def curved(dtype, offset=1000.0):
    """Rows about an offset, and a class that a quadratic function separates."""
    X = np.random.default_rng(0).normal(size=(300, 4)) * [1, 2, 3, 1]
    y = X[:, 0] ** 2 + X[:, 1] > 1
    return (X + offset).astype(dtype), y


# ------------------------------------------------------------------- precision of the steps


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize(("fitted", "query"), [("float32", "float64"), ("float64", "float32")])
def test_certify_C1_steps_fitted_in_another_precision(name, fitted, query):
    X, y = curved(fitted, 1000.0 if query == "float64" else 10.0)
    step = STEPS[name](4)
    model = make_pipeline(step, QuadraticLogisticRegression(C=1e-3)).fit(X, y)
    X = X.astype(query)
    found = radius(model, X)
    assert attack(model.predict, X, found, share=0.99999) == 0
    assert (found.radius > 0).mean() > 0.5


def test_certify_C1_the_nearest_change_is_that_of_a_float32_projection():
    X, y = curved("float32")
    model = make_pipeline(PCA(3), QuadraticLogisticRegression()).fit(X, y)
    found = radius(model, X.astype("float64"))
    there = np.isfinite(found.distance)
    step = found.nearest - X
    past = (model.predict(X + 1.0001 * step) == found.becomes)[there]
    before = (model.predict(X + 0.9999 * step) == found.predicted)[there]
    assert past.mean() > 0.99
    assert before.mean() > 0.99


def test_certify_C1_an_encoder_of_float32_makes_the_next_step_coarse():
    X, y = curved("float64")
    codes = np.arange(len(X))[:, None] % 3
    encode = make_column_transformer(
        ("passthrough", [0, 1]), (OneHotEncoder(dtype="float32", sparse_output=False), [2])
    )
    table = np.hstack([X[:, :2].round(), codes]).astype("int16")
    model = make_pipeline(encode, StandardScaler(), QuadraticLogisticRegression()).fit(table, y)
    assert model[0].transform(table).dtype == np.float32
    found = radius(model, table)
    assert (found.radius > 0).mean() > 0.9
    assert (found.radius < found.distance * (1 - 1e-6)).all()  # float64 would lose much less


# ------------------------------------------------------------------ underflow and overflow


@pytest.mark.parametrize("size", [1e-162, 1e-200, 1e-280, 1e150, 1e300])
def test_certify_C2_tiny_and_huge_scores_have_the_same_distances(size):
    layer = Quadratic([[0.0, 0.0]], [-size], [size * np.eye(2)])
    found = radius(Network([layer], ["logistic"]), [[0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_allclose(found.distance, [1, 4])
    np.testing.assert_allclose(found.radius, [1, 4], rtol=1e-9)


@pytest.mark.parametrize("size", [1e81, 1e-81, 1e120, 1e-120])
def test_certify_C2_tiny_and_huge_inputs_have_distances_of_their_size(size):
    layer = Quadratic([[0.0, 0.0]], [-1.0], [np.eye(2) / size / size])
    found = radius(Network([layer], ["logistic"]), np.array([[0.0, 0.0], [3.0, 4.0]]) * size)
    np.testing.assert_allclose(found.distance / size, [1, 4])
    np.testing.assert_allclose(found.radius / size, [1, 4], rtol=1e-9)


@pytest.mark.parametrize("size", [1e-70, 1e-120])
def test_certify_C2_coefficients_of_a_fold_that_underflow_prove_nothing(size):
    layers = [Linear([[size]], [0.0]), Quadratic([[0.0]], [-1.0], [[[size]]])]
    network, X = Network(layers, ["identity", "logistic"]), np.array([[0.1], [0.9]]) / size**1.5
    assert (radius(network, X).radius <= 0.9 / size**1.5).all()


@pytest.mark.parametrize("size", [1e-100, 1e100])
def test_certify_C2_bounds_of_hidden_layers_scale_with_the_inputs(size):
    layers = [Linear([[1 / size]], [0.0]), Linear([[1.0]], [-1.0])]
    found = radius(Network(layers, ["relu", "logistic"]), np.array([[3.0], [0.25]]) * size)
    np.testing.assert_allclose(found.radius / size, [2.0, 0.75], rtol=0.01)


@pytest.mark.parametrize(("rows", "scale"), [("float16", 1e3), ("float32", 1e3)])
def test_certify_C3_values_that_underflow_inside_a_step(rows, scale):
    least = float(np.finfo(rows).smallest_subnormal)
    step = MaxAbsScaler().fit([[scale]])
    network = Network([Linear([[1 / (3.3 * least)]], [-1.0])], ["logistic"])
    last = QuadraticLogisticRegression().fit([[0.0], [1.0]], [0, 1])
    last.network_ = network
    model = make_pipeline(step, last)
    X = (np.arange(1, 400)[:, None] * least * 20).astype(rows)
    found = radius(model, X)
    assert attack(model.predict, X, found, share=0.99999, count=80) == 0


def test_certify_C3_a_scale_that_the_rows_cannot_represent_is_refused():
    X, y = curved("float64", 0.0)
    model = make_pipeline(StandardScaler(), QuadraticLogisticRegression()).fit(X * 1e6, y)
    radius(model, X.astype("float32"))
    with pytest.raises(ValueError, match=r"StandardScaler scales by factors that float16 cannot"):
        radius(model, X.astype("float16"))


@pytest.mark.parametrize("n", [1, 2, 5, 127, 129, 784])
def test_torch_T1_numbers_that_the_loops_flush_are_counted(n):
    tiny = float(np.finfo("float32").tiny)
    zero = Quadratic(np.zeros((1, n)), [0.0], packed=np.zeros((n * (n + 1) // 2, 1)))
    network = Network([zero], ["logistic"]).astype("float32")
    (layer,), (share,) = absolute_layers(network, np.float32), shares(network, np.float32)
    constant, slope = underflows(n)
    assert share * layer.b[0] >= constant * tiny
    assert share * layer.W.min() >= slope * tiny
    assert share * layer.Q.min() >= 2 * tiny  # an entry on the diagonal below this counts as zero


def test_torch_T1_weights_that_the_loops_flush_prove_nothing():
    # the loops count 1e-39 as zero, so the class of the network never changes
    network = Network([Quadratic([[0.0]], [-1.0], [[[1e-39]]])], ["logistic"]).astype("float32")
    X = np.array([[1e15], [1e19], [3e19], [4e19], [1e21]], dtype="float32")
    found = radius(network, X)
    assert found.predicted.tolist() == network.predict(X).tolist()
    assert (found.radius <= np.maximum(3.1622e19 - X[:, 0], 0)).all()
    assert found.radius[0] > 1e15


# -------------------------------------------------------------------------------- predict


def test_certify_C4_predict_decides_as_the_certificate_does():
    rng = np.random.default_rng(0)
    for dtype in ("float32", "float64"):
        layers = [("quadratic", 4, "logistic")]
        network = Network.create(3, layers, init="normal", scale=40.0, rng=0, dtype=dtype)
        X = rng.normal(size=(1000, 3))
        saturated = network.forward(X).argmax(axis=1)
        found = radius(network, X)
        assert (network.predict(X) == found.predicted).all()
        assert (saturated != found.predicted).any()  # outputs that are rounded to 1 are equal
    faint = Network([Linear([[1.0]], [0.0])], ["logistic"])
    assert faint.predict([[1e-17]]).tolist() == [1]
    assert radius(faint, [[1e-17]]).predicted.tolist() == [1]


def test_certify_C4_predict_of_a_regression_returns_the_outputs():
    network = Network.create(2, [("quadratic", 2, "identity")], rng=0)
    X = np.ones((3, 2))
    np.testing.assert_array_equal(network.predict(X), network.forward(X))
    offset = np.array([1.0, -1.0])
    np.testing.assert_allclose(network.predict(X, offset=offset), network.predict(X + offset))


class Cautious(QuadraticLogisticRegression):
    """A classifier that needs to be sure."""

    def predict(self, X):
        return (self.predict_proba(X)[:, 1] > 0.9).astype(int)


class Renamed(QuadraticLogisticRegression):
    """A subclass that changes nothing."""


class Loud(Network):
    """A network with other logits."""

    def logits(self, X, *, offset=None):
        return super().logits(X, offset=offset) + 1


def test_certify_C5_classes_that_predict_differently_are_refused():
    X, y = curved("float64", 0.0)
    with pytest.raises(ValueError, match=r"This Cautious replaces 'predict'"):
        radius(Cautious().fit(X, y), X)
    with pytest.raises(ValueError, match=r"This Cautious replaces 'predict'"):
        radius(make_pipeline(StandardScaler(), Cautious()).fit(X, y), X)
    with pytest.raises(ValueError, match=r"This Loud replaces 'logits'"):
        radius(Loud([Linear([[1.0]], [0.0])], ["logistic"]), [[1.0]])
    model = QuadraticLogisticRegression().fit(X, y)
    model.predict = lambda X: np.zeros(len(X), dtype=int)
    with pytest.raises(ValueError, match=r"replaces 'predict'"):
        radius(model, X)
    assert (radius(Renamed().fit(X, y), X).radius > 0).all()


@pytest.mark.parametrize(
    ("step", "changed"),
    [
        (StandardScaler(), {"with_std": False}),
        (StandardScaler(), {"with_mean": False}),
        (RobustScaler(), {"with_scaling": False}),
        (PCA(3), {"whiten": True}),
        (IncrementalPCA(3, whiten=True), {"whiten": False}),
        (MinMaxScaler(), {"feature_range": (0, 5)}),
    ],
    ids=str,
)
def test_certify_C5_parameters_that_change_after_fit_are_respected(step, changed):
    X, y = curved("float64", 1.0)
    model = make_pipeline(step, QuadraticLogisticRegression()).fit(X, y)
    step.set_params(**changed)
    found = radius(model, X)
    assert (model.predict(X) == found.predicted).all()
    assert attack(model.predict, X, found) == 0


def test_certify_C5_steps_that_transform_differently_are_refused():
    X, y = curved("float64", 0.0)
    model = make_pipeline(StandardScaler(), QuadraticLogisticRegression()).fit(X, y)
    model[0].transform = lambda X: 3 * X
    with pytest.raises(ValueError, match=r"This StandardScaler replaces 'transform'"):
        radius(model, X)


class Reversed(QuadraticLogisticRegression):
    """A classifier whose classes are in another order."""

    @property
    def classes_(self):
        return self.known[::-1]

    @classes_.setter
    def classes_(self, value):
        self.known = value


def test_certify_C5_classes_in_another_order_are_refused():
    X, y = curved("float64", 0.0)
    with pytest.raises(ValueError, match=r"This Reversed replaces 'classes_'"):
        radius(Reversed().fit(X, y), X)


# ------------------------------------------------------ rows without certainty of their own


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_certify_C1_missing_values_are_filled_in_the_precision_of_the_rows(dtype):
    X = np.random.default_rng(0).normal(size=(300, 2)) + np.array([100.3, 0])
    y = (X[:, 0] - 100.3) + X[:, 1] > 0.01
    model = make_pipeline(SimpleImputer(), QuadraticLogisticRegression(max_iter=30))
    with warnings.catch_warnings(action="ignore"):
        model.fit(X, y)
    values = np.unique(np.linspace(-3, 3, 40001).astype(dtype))
    rows = np.column_stack([np.full(len(values), np.nan, dtype), values])
    found = radius(model, rows)
    change = np.flatnonzero(found.predicted[1:] != found.predicted[:-1])
    assert len(change)
    gap = values[change + 1].astype(float) - values[change].astype(float)
    assert (found.radius[change] <= gap).all()
    assert (found.radius[change + 1] <= gap).all()


def test_certify_C6_a_row_on_a_tie_is_not_certain_even_if_nothing_moves():
    X, y = curved("float64", 0.0)
    for model in (
        QuadraticLogisticRegression().fit(X, y),
        Network.create(4, [("linear", 3, "tanh"), ("linear", 1, "logistic")], rng=0),
    ):
        assert np.isinf(radius(model, X, fixed=range(4)).radius).all()
    exact = QuadraticLogisticRegression().fit(X, y)
    ties = radius(exact, X).nearest
    found = radius(exact, ties[np.isfinite(ties).all(axis=1)], fixed=range(4))
    assert (found.radius == 0).all()
    assert np.isinf(found.distance).all()


def test_certify_C2_relu_layers_whose_bounds_overflow_prove_nothing():
    square = [Quadratic([[0.0]], [0.0], [[[3.0]]]) for _ in range(2)]
    network = Network(
        [*square, Linear([[1.0]], [1.0]), Linear([[1.0]], [-3.0])],
        ["relu", "relu", "relu", "logistic"],
    )
    assert network.predict([[0.5], [1.5]]).tolist() == [0, 1]
    found = radius(network, [[0.5]])
    assert 0 < found.radius[0] < 1


# ------------------------------------------------------------------------- flat directions


@pytest.mark.parametrize(("n", "rank"), [(2, 1), (10, 3), (64, 8)])
def test_certify_C6_flat_directions_have_their_true_distances(n, rank):
    rng = np.random.default_rng(0)
    B, X = rng.normal(size=(rank, n)), rng.normal(size=(400, n))
    above = Network([Quadratic(np.zeros((1, n)), [1.0], [B.T @ B])], ["logistic"])
    found = radius(above, X)
    assert np.isinf(found.distance).all()  # |Bx|^2 + 1 is never negative
    assert (found.radius > 1e3).all()
    # |Bx|^2 = level: the distance of B x from a sphere, in the metric of the rows of B
    level = 40.0 * rank
    inside = Network([Quadratic(np.zeros((1, n)), [-level], [B.T @ B])], ["logistic"])
    found = radius(inside, X)
    values, vectors = np.linalg.eigh(B @ B.T)
    small = exactly(np.diag(values))
    for x, wanted, certified in list(zip(X, found.distance, found.radius, strict=True))[:20]:
        # in an orthonormal basis of the rows of B
        y = np.linalg.solve(np.diag(np.sqrt(values)), vectors.T @ B @ x)
        F = float(y @ np.diag(values) @ y - level)
        sign = np.sign(F)
        true = float(
            distance(sign * small, exactly(sign * 2 * values * y), exactly(sign * F).item())
        )
        np.testing.assert_allclose(wanted, true, rtol=1e-9)
        assert true * 0.999999 < certified <= true * (1 + 1e-9)


def test_certify_C6_unions_of_a_scaler_and_a_projection():
    X, y = load_iris(return_X_y=True)
    both = FeatureUnion([("scale", StandardScaler()), ("project", PCA(2))])
    model = make_pipeline(both, QuadraticClassifier((), random_state=0)).fit(X, y)
    found = radius(model, X)
    assert (found.radius > 0.99 * found.distance).all()
    assert attack(model.predict, X, found) == 0


def test_certify_C6_the_radius_is_never_below_the_quick_bound():
    rng = np.random.default_rng(1)
    for _ in range(20):
        B = rng.normal(size=(2, 6))
        layer = Quadratic(1e-9 * rng.normal(size=(1, 6)), [1.0], [B.T @ B])
        network = Network([layer], ["logistic"]).astype("float32")
        X = rng.normal(size=(20, 6))
        found = radius(network, X)
        z, slope = network.logits(X)[:, 0], 2 * X @ layer.Q[0] + layer.W[0]
        # z - |slope| r > 0 because Q has no negative eigenvalue
        assert (found.radius > 0.99 * z / np.linalg.norm(slope, axis=1)).all()
        assert attack(network.predict, X, found) == 0
