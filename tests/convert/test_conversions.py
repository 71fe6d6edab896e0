"""Conversions from and to other models give the same numbers on real data."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, PowerTransformer, StandardScaler

from quadric import (
    Linear,
    Network,
    Quadratic,
    QuadraticClassifier,
    QuadraticLogisticRegression,
    Reduced,
    load,
    save,
)
from quadric.convert import (
    from_ellipsoids,
    from_gaussians,
    from_polynomial_logistic,
    from_qda,
    to_classifier,
    to_polynomial_logistic,
    to_quadratic,
    to_reduced,
)
from quadric.explain import spectrum
from quadric.geometry import Quadric
from tests.support.ellipsoids import ellipsoid
from tests.support.networks import make_network

DATA = {
    "wine": (load_wine, 0.0),
    "iris": (load_iris, 0.0),
    "breast cancer": (load_breast_cancer, 0.01),
    "digits": (load_digits, 0.1),
}


def read(name):
    loader, reg_param = DATA[name]
    return *loader(return_X_y=True), reg_param


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("scaled", [False, True])
def test_qda_has_the_same_probabilities(name, scaled):
    X, y, reg_param = read(name)
    if scaled:
        X = StandardScaler().fit_transform(X)
    qda = QuadraticDiscriminantAnalysis(reg_param=reg_param).fit(X, y)
    network = from_qda(qda)
    np.testing.assert_allclose(network.forward(X), qda.predict_proba(X), atol=1e-9)
    # the logarithms agree as well, so small probabilities are also accurate
    z = network.logits(X)
    log_probabilities = z - np.logaddexp.reduce(z, axis=1, keepdims=True)
    np.testing.assert_allclose(log_probabilities, qda.predict_log_proba(X), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_certify_C13_qda_loses_its_class_labels(n_classes, tmp_path):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes], y[y < n_classes]
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    qda = QuadraticDiscriminantAnalysis().fit(X, names)
    model = to_classifier(from_qda(qda), qda.classes_)
    np.testing.assert_array_equal(model.predict(X), qda.predict(X))
    np.testing.assert_allclose(model.predict_proba(X), qda.predict_proba(X), atol=1e-9)
    assert spectrum(model).labels == qda.classes_.tolist()
    save(model, tmp_path / "qda.quadric")
    np.testing.assert_array_equal(load(tmp_path / "qda.quadric").predict(X), qda.predict(X))
    for wrong in (qda.classes_[::-1], [*qda.classes_, "z"], ["a"] * n_classes, [["a", "b"]]):
        with pytest.raises(ValueError, match=f"classes must be {n_classes} different labels"):
            to_classifier(from_qda(qda), wrong)


def test_certify_C13_qda_at_the_end_of_a_pipeline_is_not_converted():
    X, y = load_wine(return_X_y=True)
    steps = (StandardScaler(), PCA(5))
    model = make_pipeline(*steps, QuadraticDiscriminantAnalysis()).fit(X, y)
    network = from_qda(model)
    assert network.n_inputs == 13
    np.testing.assert_allclose(network.forward(X), model.predict_proba(X), atol=1e-9)
    with pytest.raises(TypeError, match=r"Got a Pipeline that ends with LogisticRegression"):
        from_qda(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y))
    curved = make_pipeline(PowerTransformer(), QuadraticDiscriminantAnalysis())
    with pytest.raises(TypeError, match=r"cannot convert the pipeline: PowerTransformer raises"):
        from_qda(curved.fit(X[:, :4], y))
    with pytest.raises(TypeError, match=r"Got LogisticRegression\."):  # not "call fit first"
        from_qda(LogisticRegression())


def test_classifiers_need_a_network_of_one_layer_that_chooses_a_class():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)[:, :5]
    fitted = QuadraticLogisticRegression().fit(X, y)
    model = to_classifier(fitted.network_, ["bad", "good"])
    np.testing.assert_array_equal(model.predict(X) == "good", fitted.predict(X) == 1)
    with pytest.raises(ValueError, match="network must have one layer"):
        to_classifier(make_network(("linear", "quadratic"), "tanh", "softmax"), [0, 1])
    with pytest.raises(TypeError, match="network must be a Network"):
        to_classifier(fitted, [0, 1])


@pytest.mark.parametrize("name", DATA)
def test_gaussians_are_qda(name):
    X, y, reg_param = read(name)
    X = StandardScaler().fit_transform(X)
    qda = QuadraticDiscriminantAnalysis(reg_param=reg_param).fit(X, y)
    covariances = [(R * S) @ R.T for R, S in zip(qda.rotations_, qda.scalings_, strict=True)]
    network = from_gaussians(qda.means_, covariances, 7 * qda.priors_)
    np.testing.assert_allclose(network.forward(X), qda.predict_proba(X), atol=1e-9)


def test_two_gaussians_have_hand_worked_probabilities():
    network = from_gaussians([[0.0], [2.0]], [[[1.0]], [[4.0]]])
    density = [np.exp(-0.5), np.exp(-1 / 8) / 2]  # at x = 1, without the common factor
    np.testing.assert_allclose(network.forward([[1.0]])[0], np.array(density) / sum(density))


def test_a_converted_model_can_be_trained_further():
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    network = from_qda(QuadraticDiscriminantAnalysis(reg_param=0.3).fit(X, y))
    before, _ = network.gradients(X, np.eye(3)[y])
    history = network.fit(X, np.eye(3)[y], solver="lbfgs", epochs=30)
    assert history.loss[-1] < before / 2


@pytest.mark.sample(8)
@pytest.mark.slow
@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("steps", ["", "before", "after", "both", "pca"])
def test_polynomial_logistic_and_back(name, steps):
    X, y, _ = read(name)
    if name == "digits" and steps not in ("", "both"):
        X, y = X[:400, 20:32], y[:400]  # fewer features, because 64 have 2145 monomials
    if steps in ("", "after"):
        X = X / np.abs(X).max(axis=0).clip(1e-9)
    before = {"before": [StandardScaler()], "both": [MinMaxScaler((-1, 1))], "pca": [PCA(3)]}
    after = {"after": [StandardScaler()], "both": [StandardScaler()], "pca": [StandardScaler()]}
    pipeline = make_pipeline(
        *before.get(steps, []),
        PolynomialFeatures(2, include_bias=bool(steps)),
        *after.get(steps, []),
        LogisticRegression(max_iter=200, tol=0.5 if len(X.T) > 40 else 0.1),
    ).fit(X, y)
    network = from_polynomial_logistic(pipeline)
    wanted = pipeline.predict_proba(X)
    outputs = network.forward(X)
    np.testing.assert_allclose(
        outputs, wanted[:, 1:] if outputs.shape[1] == 1 else wanted, atol=1e-9
    )
    back = to_polynomial_logistic(network)
    np.testing.assert_allclose(back.predict_proba(X), wanted, atol=1e-9)
    assert (back.predict(X) == pipeline.predict(X)).all()


@pytest.mark.slow
def test_other_polynomial_features_convert_exactly():
    X, y = load_iris(return_X_y=True)
    for options in ({"interaction_only": True}, {"degree": (2, 2)}, {"degree": 1}):
        pipeline = make_pipeline(PolynomialFeatures(**options), LogisticRegression(max_iter=5000))
        pipeline.fit(X, y)
        network = from_polynomial_logistic(pipeline)
        np.testing.assert_allclose(network.forward(X), pipeline.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize(
    "attributes", [{"multi_class": "ovr"}, {"multi_class": "deprecated", "solver": "liblinear"}]
)
def test_one_versus_rest_logistic_regression_is_refused(attributes):
    """scikit-learn 1.6 and 1.7 fit such models; here, the attributes are set after fit."""
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(PolynomialFeatures(2), LogisticRegression(tol=0.1)).fit(X / 8, y)
    vars(pipeline[-1]).update(attributes)
    with pytest.raises(ValueError, match=r"must be multinomial.*Got multi_class=.*; fit it with"):
        from_polynomial_logistic(pipeline)


@pytest.mark.parametrize("attributes", [{"multi_class": "ovr"}, {"solver": "liblinear"}])
def test_one_versus_rest_of_two_classes_converts_exactly(attributes):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)[:, :5]
    pipeline = make_pipeline(PolynomialFeatures(2), LogisticRegression()).fit(X, y)
    vars(pipeline[-1]).update(attributes)
    outputs = from_polynomial_logistic(pipeline).forward(X)
    np.testing.assert_allclose(outputs[:, 0], pipeline.predict_proba(X)[:, 1], atol=1e-9)


def test_multinomial_logistic_regression_of_two_classes_converts_exactly():
    """In scikit-learn 1.6 and 1.7, its probabilities are softmax([-z, z])."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)[:, :5]
    pipeline = make_pipeline(PolynomialFeatures(2), LogisticRegression()).fit(X, y)
    pipeline[-1].multi_class = "multinomial"
    z = pipeline.decision_function(X)
    wanted = softmax(np.column_stack([-z, z]), axis=1)
    outputs = from_polynomial_logistic(pipeline).forward(X)
    np.testing.assert_allclose(outputs[:, 0], wanted[:, 1], atol=1e-9)


def test_our_logistic_regression_converts_to_polynomial_features_exactly():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    names = np.array(["a", "b", "c"])[y]
    model = QuadraticLogisticRegression().fit(X, names)
    pipeline = to_polynomial_logistic(model)
    np.testing.assert_allclose(pipeline.predict_proba(X), model.predict_proba(X), atol=1e-12)
    assert (pipeline.predict(X) == model.predict(X)).all()


def test_two_softmax_outputs_to_polynomial_features():
    """scikit-learn has one row of coefficients for two classes."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)[:, :5]
    model = QuadraticClassifier((), loss="cross_entropy", alpha=1.0, random_state=0).fit(X, y)
    pipeline = to_polynomial_logistic(model)
    np.testing.assert_allclose(pipeline.predict_proba(X), model.predict_proba(X), atol=1e-12)
    assert (pipeline.predict(X) == model.predict(X)).all()
    again = from_polynomial_logistic(pipeline)
    np.testing.assert_allclose(again.forward(X)[:, 0], model.predict_proba(X)[:, 1], atol=1e-12)


@pytest.mark.parametrize("kinds", [("linear", "quadratic"), ("reduced", "linear"), ("reduced",)])
def test_to_quadratic_is_exact(kinds):
    network = make_network(kinds, "tanh", "identity", widths=(4, 2)[-len(kinds) :])
    X = np.random.default_rng(0).normal(size=(50, 3))
    quadratic = to_quadratic(network)
    assert [layer.kind for layer in quadratic.layers] == ["quadratic"] * len(kinds)
    np.testing.assert_allclose(quadratic.logits(X), network.logits(X), rtol=1e-12, atol=1e-12)
    only_last = to_quadratic(network, -1)
    assert [layer.kind for layer in only_last.layers] == [*kinds[:-1], "quadratic"]
    np.testing.assert_allclose(only_last.logits(X), network.logits(X), rtol=1e-12, atol=1e-12)


def test_to_reduced_of_a_product_is_exact():
    rng = np.random.default_rng(0)
    reduced = Reduced(*(rng.normal(size=shape) for shape in ((3, 5), (3,), (3, 5), (3,))))
    again = to_reduced(to_quadratic(reduced))
    X = rng.normal(size=(40, 5))
    np.testing.assert_allclose(again.model.forward(X)[0], reduced.forward(X)[0], atol=1e-10)
    assert (again.relative_error < 1e-7).all()
    linear = Linear(rng.normal(size=(2, 5)), rng.normal(size=2))
    exact = to_reduced(linear)
    np.testing.assert_array_equal(exact.model.forward(X)[0], linear.forward(X)[0])
    assert not exact.error.any()


def homogeneous(layer, k):
    n = layer.n_inputs
    H = np.empty((n + 1, n + 1))
    H[:n, :n], H[n, n] = layer.Q[k], layer.b[k]
    H[:n, n] = H[n, :n] = layer.W[k] / 2
    return H


@pytest.mark.slow
def test_to_reduced_is_the_nearest_product():
    """The returned error is correct, and a minimizer finds no nearer product."""
    from scipy import optimize

    rng = np.random.default_rng(1)
    layer = Quadratic(rng.normal(size=(2, 3)), rng.normal(size=2), rng.normal(size=(2, 3, 3)))
    reduction = to_reduced(layer)
    for k in range(2):
        H = homogeneous(layer, k)
        made = homogeneous(to_quadratic(reduction.model), k)
        assert np.linalg.norm(H - made) == pytest.approx(reduction.error[k], rel=1e-10)

        def distance(v, H=H):
            p, q = v[:4], v[4:]
            return float(((H - (np.outer(p, q) + np.outer(q, p)) / 2) ** 2).sum())

        best = min(
            optimize.minimize(distance, rng.normal(size=8), method="BFGS").fun for _ in range(20)
        )
        assert np.sqrt(best) >= reduction.error[k] - 1e-6
        assert np.sqrt(best) == pytest.approx(reduction.error[k], rel=1e-3)


def test_to_reduced_keeps_one_square_of_a_definite_form():
    """x² + y² + 1 has no negative eigenvalue, so one square is kept."""
    reduction = to_reduced(Quadratic([[0, 0]], [1.0], [np.eye(2) * 3]))
    assert reduction.error[0] == pytest.approx(np.sqrt(9 + 1))
    network = Network([Quadratic([[0, 0]], [1.0], [np.eye(2)])], ["logistic"])
    converted = to_reduced(network)
    assert converted.model.layers[0].kind == "reduced"
    assert converted.model.activations == ("logistic",)


def test_neurons_of_ellipsoids_are_above_half_inside():
    first = ellipsoid([0, 0], np.diag([4.0, 1.0]))
    second = Quadric(-np.eye(2), [20, 0], -99)  # a circle at (10, 0), Q negative
    network = from_ellipsoids([first, second], sharpness=3.0)
    X = np.array([[0, 0], [1.99, 0], [2.01, 0], [10, 0], [10, 0.99], [10, 1.01]])
    inside = network.forward(X) > 0.5
    assert np.flatnonzero(inside[:, 0]).tolist() == [0, 1]
    assert np.flatnonzero(inside[:, 1]).tolist() == [3, 4]
    np.testing.assert_allclose(network.logits(np.array([[0, 0], [10, 0]])).diagonal(), 3.0)


def test_an_ellipsoid_too_far_from_the_origin_is_refused():
    far = ellipsoid([0, 0], np.eye(2)).transform(1.0, [1e9, 0])
    assert far.is_ellipsoid
    with pytest.raises(ValueError, match=r"ellipsoids\[0\] is so far from the origin"):
        from_ellipsoids([far])


def test_models_that_cannot_be_converted_are_refused():
    with pytest.raises(TypeError, match=r"fitted .*QuadraticDiscriminantAnalysis.*call fit first"):
        from_qda(QuadraticDiscriminantAnalysis())
    with pytest.raises(ValueError, match=r"covariances\[1\] must be positive definite"):
        from_gaussians([[0.0], [1.0]], [[[1.0]], [[-1.0]]])
    with pytest.raises(ValueError, match="priors must be 2 positive numbers"):
        from_gaussians([[0.0], [1.0]], [[[1.0]], [[1.0]]], [1, 0])
    with pytest.raises(ValueError, match=r"covariances \(n_classes, n, n\)"):
        from_gaussians([[0.0], [1.0]], [[1.0]])
    with pytest.raises(ValueError, match=r"ellipsoids\[0\] must be an ellipsoid. Got hyperbola"):
        from_ellipsoids([Quadric([[1, 0], [0, -1]], [0, 0], 1)])
    X, y = load_iris(return_X_y=True)
    cubic = make_pipeline(PolynomialFeatures(3), LogisticRegression(max_iter=20, tol=1)).fit(X, y)
    with pytest.raises(ValueError, match="degree 2 or less"):
        from_polynomial_logistic(cubic)
    with pytest.raises(TypeError, match="one PolynomialFeatures"):
        from_polynomial_logistic(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y))
    with pytest.raises(TypeError, match="pass the network_ of an estimator"):
        to_quadratic(QuadraticLogisticRegression())
    with pytest.raises(ValueError, match="larger than floating-point"):
        to_quadratic(Reduced([[1e300]], [0.0], [[1e300]], [0.0]))
    with pytest.raises(ValueError, match="must have one layer"):
        to_polynomial_logistic(make_network(("linear", "quadratic"), "tanh", "softmax"))
