"""Certified radii: no input that is closer has another class, and the nearest one has."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    StandardScaler,
    TargetEncoder,
)

from quadric import Network, QuadraticClassifier, QuadraticLogisticRegression
from quadric.certify import radius
from quadric.convert import from_polynomial_logistic, from_qda
from quadric.core import Linear, Quadratic
from tests.support.adversary import attack

TINY = 1e-7


def draw(seed, count=20):
    """A random model with 2 to 8 inputs and up to 4 outputs, and random inputs."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 9)), int(rng.integers(1, 5))
    last = "logistic" if m == 1 or rng.random() < 0.3 else "softmax"
    network = Network.create(n, [("quadratic", m, last)], init="normal", scale=1.0, rng=seed)
    return network, 2 * rng.normal(size=(count, n))


def scores(network, X):
    z = network.logits(X)
    return np.hstack([np.zeros_like(z), z]) if z.shape[1] == 1 else z


def check(network, X, found):
    """Attack within the radius and go beyond the distance."""
    rng = np.random.default_rng(0)
    assert (scores(network, X).argmax(axis=1) == found.predicted).all()
    assert (found.radius <= found.distance).all()
    for _ in range(100):
        step = rng.normal(size=X.shape)
        step *= (np.minimum(found.radius, 1e6) / np.linalg.norm(step, axis=1))[:, None]
        assert (scores(network, X + 0.999 * step).argmax(axis=1) == found.predicted).all()
    there = np.isfinite(found.distance)
    beyond = X + 1.001 * (found.nearest - X)
    z = scores(network, beyond[there])
    assert (z.argmax(axis=1) != found.predicted[there]).all()
    np.testing.assert_allclose(
        np.linalg.norm(found.nearest - X, axis=1)[there], found.distance[there], rtol=1e-9
    )


@pytest.mark.parametrize("seeds", [range(20), pytest.param(range(500), marks=pytest.mark.full)])
def test_no_random_attack_succeeds_and_the_nearest_point_flips(seeds):
    gaps = []
    for seed in seeds:
        network, X = draw(seed)
        found = radius(network, X)
        check(network, X, found)
        there = np.isfinite(found.distance)
        gaps.extend(1 - found.radius[there] / found.distance[there])
    assert max(gaps) < 1e-6  # the bound costs almost nothing
    assert np.median(gaps) < 1e-11


def numerical(network, x, c):
    """The distance by a local minimizer from many starts."""
    layer, rng, best = network.layers[0], np.random.default_rng(0), np.inf
    Q, W, b = layer.Q, layer.W, layer.b
    if len(b) == 1:
        Q, W, b = (np.concatenate([np.zeros_like(part), part]) for part in (Q, W, b))
    for k in set(range(len(b))) - {c}:
        A, w, e = Q[c] - Q[k], W[c] - W[k], b[c] - b[k]
        constraint = {
            "type": "eq",
            "fun": lambda y, A=A, w=w, e=e: y @ A @ y + w @ y + e,
            "jac": lambda y, A=A, w=w: 2 * A @ y + w,
        }
        for start in x + rng.normal(size=(12, len(x))) * 2:
            result = minimize(
                lambda y: ((y - x) @ (y - x), 2 * (y - x)),
                start,
                jac=True,
                method="SLSQP",
                constraints=[constraint],
            )
            if result.success and abs(constraint["fun"](result.x)) < TINY:
                best = min(best, np.sqrt(result.fun))
    return best


def special(seed):
    """A random model and input, of which many are special cases."""
    network, X = draw(seed, 1)
    layer, case = network.layers[0], seed % 7
    rng = np.random.default_rng(seed)
    n = layer.n_inputs
    if case == 0:  # flat directions
        layer.Q = layer.Q * np.outer(np.arange(n) < n // 2, np.arange(n) < n // 2)
        layer.W *= np.arange(n) < n // 2
    elif case == 1 and layer.n_outputs == 1:  # a center
        layer.Q = np.diag(rng.choice([-1.0, 1.0, 2.0], n))[None]
        layer.W, layer.b = np.zeros((1, n)), [-3.0]
        X[:] = 0.0
    elif case == 2:  # a tie
        X = radius(network, X).nearest
        X = np.where(np.isfinite(X), X, 0.0)
    elif case == 3 and layer.n_outputs == 1:  # one class everywhere
        layer.Q, layer.W, layer.b = np.eye(n)[None], np.zeros((1, n)), [1.0]
    elif case == 4:  # planes
        layer.Q = np.zeros_like(layer.Q)
    elif case == 5:  # equal eigenvalues
        layer.Q = np.eye(n) * rng.normal(size=(layer.n_outputs, 1, 1))
    return network, X


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(14), pytest.param(range(500), marks=pytest.mark.full)])
def test_distances_agree_with_a_numerical_minimizer(seeds):
    infinite = 0
    for seed in seeds:
        network, X = special(seed)
        found = radius(network, X)
        wanted = numerical(network, X[0], found.predicted[0])
        assert found.radius[0] <= wanted + 1e-6 * min(wanted, 1)  # the minimizer is not exact
        if found.distance[0] < 1e-6:  # a tie: the minimizer's tolerance is larger
            assert wanted < 1e-3
        else:  # the minimizer may miss the nearest point
            close = np.isclose(found.distance[0], wanted, rtol=1e-5)
            assert close or found.distance[0] < wanted
        infinite += np.isinf(found.distance[0])
        if np.isfinite(found.distance[0]) and found.distance[0] > 1e-6:
            z = scores(network, found.nearest)[0]
            size = np.abs(z).max() + np.abs(found.nearest).max() ** 2
            assert abs(z[found.predicted[0]] - z[found.becomes[0]]) < 1e-9 * size
    assert infinite > 0


def test_distances_to_a_circle_from_its_center_from_inside_and_from_outside():
    circle = Network([Quadratic([[0.0, 0.0]], [4.0], [-np.eye(2)])], ["logistic"])
    found = radius(circle, [[0.0, 0.0], [1.0, 0.0], [0.0, 5.0], [2.0, 0.0]])
    np.testing.assert_allclose(found.distance, [2, 1, 3, 0], atol=1e-12)
    assert (found.radius[:3] > found.distance[:3] - 1e-9).all()
    assert found.radius[3] == 0
    assert found.predicted.tolist() == [1, 1, 0, 0]
    assert found.becomes.tolist()[:3] == [0, 0, 1]


def test_flat_directions_and_infinite_radii():
    cylinder = Network(
        [Quadratic(np.zeros((1, 3)), [-1.0], [np.diag([1.0, 1.0, 0.0])])], ["logistic"]
    )
    np.testing.assert_allclose(radius(cylinder, [[0.0, 0.0, 7.0]]).distance, [1.0])
    never = Network([Quadratic(np.zeros((1, 2)), [1.0], [np.eye(2)])], ["logistic"])
    found = radius(never, [[3.0, 4.0]])
    assert found.distance[0] == np.inf
    assert found.radius[0] > 1e5
    assert np.isnan(found.nearest).all()
    plane = Network([Linear([[3.0, 4.0]], [5.0])], ["logistic"])
    np.testing.assert_allclose(radius(plane, [[0.0, 0.0]]).distance, [1.0])


def test_the_distance_to_a_boundary_that_is_a_single_point():
    point = Network([Quadratic([[-2.0, 0.0]], [1.0], [np.eye(2)])], ["logistic"])  # (x-1)² + y²
    found = radius(point, [[4.0, 4.0]])
    np.testing.assert_allclose(found.distance, [5.0])
    np.testing.assert_allclose(found.nearest, [[1.0, 0.0]], atol=1e-12)
    assert 4.99 < found.radius[0] < 5


def test_ties_have_no_radius():
    equal = Network([Quadratic(np.zeros((2, 2)), [0.0, 0.0], [np.eye(2), np.eye(2)])], ["softmax"])
    found = radius(equal, [[1.0, 2.0]])
    assert found.radius[0] == 0


def test_pipelines_in_the_units_of_the_inputs_and_of_the_scaler():
    X, y = load_iris(return_X_y=True)
    X = X * [1, 100, 1, 0.01] + [0, 1e4, 0, 0]
    model = make_pipeline(StandardScaler(), QuadraticLogisticRegression()).fit(X, y)
    inputs, scaled = radius(model, X), radius(model, X, units="scaled")
    inner = radius(model[1], model[0].transform(X))
    np.testing.assert_allclose(scaled.distance, inner.distance, rtol=1e-8)
    np.testing.assert_allclose(
        np.linalg.norm(inputs.nearest - X, axis=1), inputs.distance, rtol=1e-4
    )
    assert (inputs.distance < scaled.distance * model[0].scale_.max() * (1 + TINY)).all()
    for found in (inputs, scaled):
        assert (found.predicted == model.predict(X)).all()
        assert (model.predict(X + 1.001 * (found.nearest - X)) == found.becomes).mean() > 0.99
        assert (model.predict(X + 0.999 * (found.nearest - X)) == found.predicted).all()


def test_projections_qda_and_polynomial_logistic_regression():
    X, y = load_iris(return_X_y=True)
    classifier = QuadraticClassifier((), random_state=0)
    for model, predict in [
        (pca := make_pipeline(StandardScaler(), PCA(2), classifier).fit(X, y), pca.predict),
        (from_qda(qda := QuadraticDiscriminantAnalysis().fit(X, y)), qda.predict),
        (
            from_polynomial_logistic(
                poly := make_pipeline(
                    StandardScaler(), PolynomialFeatures(2), LogisticRegression()
                ).fit(X, y)
            ),
            poly.predict,
        ),
    ]:
        found = radius(model, X)
        assert (found.predicted == predict(X)).all()
        assert (predict(X + 1.001 * (found.nearest - X)) != found.predicted).mean() > 0.99
        assert (predict(X + 0.999 * (found.nearest - X)) == found.predicted).all()


def test_sparse_inputs_have_the_radii_of_dense_ones():
    X, y = load_iris(return_X_y=True)
    model = QuadraticClassifier((), random_state=0).fit(csr_matrix(X), y)
    np.testing.assert_array_equal(radius(model, csr_matrix(X)).radius, radius(model, X).radius)


def test_fixed_inputs_do_not_move():
    network, X = draw(3)
    n = X.shape[1]
    found, all_free = radius(network, X, fixed=[0, "x2"]), radius(network, X)
    there = np.isfinite(found.distance)
    assert (found.nearest[there][:, :2] == X[there][:, :2]).all()
    assert (found.distance >= all_free.distance * (1 - 1e-12)).all()
    nothing = radius(network, X, fixed=range(n))
    assert np.isinf(nothing.distance).all()
    with pytest.raises(ValueError, match=r"fixed must name inputs: x1, x2.* Got 'age'"):
        radius(network, X, fixed=["age"])


def test_categories_are_always_fixed():
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    X, y = load_iris(return_X_y=True)
    table = pandas.DataFrame(X[:, :2], columns=["length", "width"])
    table["color"] = np.where(X[:, 2] > 4, "red", "blue")
    encode = make_column_transformer(
        (StandardScaler(), ["length", "width"]), (OneHotEncoder(), ["color"])
    )
    model = make_pipeline(encode, QuadraticClassifier((), random_state=0)).fit(table, y)
    found = radius(model, table)
    assert found.names[:2] == ["length", "width"]
    moved = table.copy()
    moved[["length", "width"]] += 1.001 * (found.nearest[:, :2] - X[:, :2])
    there = np.isfinite(found.distance)
    assert (model.predict(moved) != found.predicted)[there].mean() > 0.98
    assert (found.nearest[there][:, 2:] == found.nearest[there][:, 2:].round()).all()


def test_ordinal_codes_are_fixed():
    X, y = load_iris(return_X_y=True)
    X[:, 3] = X[:, 3] > 1
    encode = make_column_transformer((StandardScaler(), [0, 1, 2]), (OrdinalEncoder(), [3]))
    model = make_pipeline(encode, QuadraticLogisticRegression()).fit(X, y)
    found = radius(model, X)
    there = np.isfinite(found.distance)
    assert (found.nearest[there, 3] == X[there, 3]).all()
    assert (model.predict(X + 0.999 * (found.nearest - X))[there] == found.predicted[there]).all()
    assert (model.predict(X + 1.001 * (found.nearest - X))[there] == found.becomes[there]).all()


def test_categories_encoded_by_three_classes_are_fixed():
    X, y = load_iris(return_X_y=True)
    X[:, 3] = X[:, 3].round()
    encode = make_column_transformer(
        (StandardScaler(), [0, 1, 2]), (make_pipeline(TargetEncoder(), StandardScaler()), [3])
    )
    model = make_pipeline(encode, QuadraticLogisticRegression()).fit(X, y)
    found = radius(model, X)
    there = np.isfinite(found.distance)
    assert there.sum() > 100
    assert (model.predict(X + 0.999 * _steps(found, X))[there] == found.predicted[there]).all()
    assert (model.predict(X + 1.001 * _steps(found, X))[there] == found.becomes[there]).all()


def _steps(found, X):
    """The steps to the boundary in the numbers, which come first; the category stays."""
    return np.column_stack([found.nearest[:, :3] - X[:, :3], np.zeros(len(X))])


@pytest.mark.parametrize(
    "branches",
    [
        [(StandardScaler(), [0, 1]), (OneHotEncoder(handle_unknown="ignore"), [1, 3])],
        [(StandardScaler(), [0, 1]), (MinMaxScaler(), [1, 2]), (OneHotEncoder(), [3])],
    ],
    ids=["scaled and encoded", "scaled twice"],
)
def test_an_input_that_moves_several_coordinates_at_once_is_an_error(branches):
    X, y = load_iris(return_X_y=True)
    X[:, 1:] = X[:, 1:].round()
    model = make_pipeline(make_column_transformer(*branches), QuadraticLogisticRegression())
    with pytest.raises(ValueError, match=r"ColumnTransformer uses the column x2 in several"):
        radius(model.fit(X, y), X)


def test_an_input_of_two_scalers_is_one_coordinate():
    X, y = load_iris(return_X_y=True)
    branches = make_column_transformer((StandardScaler(), [0, 1]), (MinMaxScaler(), [1, 2, 3]))
    model = make_pipeline(branches, QuadraticLogisticRegression()).fit(X, y)
    found = radius(model, X)
    assert found.names == ["x1", "x2", "x3", "x4"]
    assert attack(model.predict, X, found) == 0


@pytest.mark.parametrize(
    "model",
    [
        QuadraticLogisticRegression(loss="one-vs-rest"),
        QuadraticClassifier((), loss="binary_cross_entropy", random_state=0),
        QuadraticClassifier((), random_state=0),
        QuadraticClassifier(
            (3,), activation="identity", layer_kinds=("linear", "quadratic"), random_state=0
        ),
        QuadraticClassifier(
            (5,), activation="identity", layer_kinds=("reduced", "linear"), random_state=0
        ),
    ],
    ids=["sigmoids", "sigmoid layer", "softmax", "linear before", "linear after"],
)
@pytest.mark.parametrize("classes", [2, 3])
def test_estimators_of_every_output_and_shape(model, classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes], np.array(["a", "b", "c"])[y[y < classes]]
    whole = make_pipeline(StandardScaler(), clone(model)).fit(X, y)
    found = radius(whole, X)
    assert found.exact
    assert attack(whole.predict, X, found) == 0
    there = np.isfinite(found.distance)
    beyond = (X + 1.001 * (found.nearest - X))[there]
    assert (whole.predict(beyond) == found.becomes[there]).all()


def test_models_and_inputs_that_cannot_be_certified():
    power = make_pipeline(PowerTransformer(), QuadraticLogisticRegression())
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"must be affine or encode categories.*raises values"):
        radius(power.fit(X, y), X)
    branches = [(PowerTransformer(), [0]), (OneHotEncoder(), [3]), (StandardScaler(), [1, 2])]
    mixed = make_pipeline(make_column_transformer(*branches), QuadraticLogisticRegression())
    with pytest.raises(ValueError, match=r"A branch of ColumnTransformer does neither .*Power"):
        radius(mixed.fit(X, y), X)
    values = Network.create(2, [("quadratic", 2, "identity")], rng=0)
    with pytest.raises(ValueError, match="model must choose one of several classes"):
        radius(values, [[0.0, 0.0]])
    single = QuadraticClassifier((), random_state=0).fit([[0.0], [1.0]], ["a", "a"])
    with pytest.raises(ValueError, match="model must know at least two classes"):
        radius(single, [[0.0]])
    network, X = draw(0)
    with pytest.raises(ValueError, match="X must be finite"):
        radius(network, np.full_like(X, np.nan))
    with pytest.raises(ValueError, match="needs a Pipeline whose first step is a scaler"):
        radius(network, X, units="scaled")
