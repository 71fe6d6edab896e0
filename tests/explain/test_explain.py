"""Surfaces, boundaries and ranked terms of models; preceding affine steps are undone."""

import json

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from quadric import (
    Network,
    QuadraticClassifier,
    QuadraticLogisticRegression,
    QuadraticRegressor,
    Reduced,
)
from quadric.explain import boundary, explain, quadrics
from quadric.models import ModelView
from tests.support.networks import make_network

X, Y = load_wine(return_X_y=True)
X[:, -1] /= 100  # proline: the others are between 0.1 and 160
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

STEPS = {
    "none": [],
    "standard": [StandardScaler()],
    "standard, no mean": [StandardScaler(with_mean=False)],
    "standard, no std": [StandardScaler(with_std=False), MinMaxScaler()],
    "min-max": [MinMaxScaler((-1, 2))],
    "max-abs": [MaxAbsScaler()],
    "robust": [RobustScaler()],
    "robust, centered only": [RobustScaler(with_scaling=False), StandardScaler()],
    "pca": [StandardScaler(), PCA(5)],
    "whitened pca": [PCA(5, whiten=True)],
    "svd": [StandardScaler(), TruncatedSVD(4, random_state=0)],
    "imputer, passthrough": [SimpleImputer(), "passthrough", StandardScaler()],
    "selection": [SelectKBest(k=6), StandardScaler()],
    "identity": [FunctionTransformer(), StandardScaler()],
    "nested": [make_pipeline(SimpleImputer(), make_pipeline(StandardScaler(), PCA(4)))],
    "columns": [
        ColumnTransformer(
            [("a", StandardScaler(), [3, 1]), ("b", MinMaxScaler(), slice(4, 8)), ("c", "drop", 0)],
            remainder="passthrough",
        ),
        StandardScaler(),
    ],
}


@pytest.mark.parametrize("steps", STEPS)
def test_boundaries_in_the_users_units_are_differences_of_scores(steps):
    scale = 1e-3 if steps == "none" else 1.0
    data = X * scale
    model = make_pipeline(*STEPS[steps], QuadraticLogisticRegression(max_iter=60)).fit(data, Y)
    z = model.decision_function(data)
    for i, j in ((0, 1), (2, 0)):
        surface = boundary(model, i, j)
        assert surface.n_dims == 13
        np.testing.assert_allclose(surface.value(data), z[:, i] - z[:, j], rtol=1e-7, atol=1e-7)
    for k, surface in enumerate(quadrics(model)):
        np.testing.assert_allclose(surface.value(data), z[:, k], rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(surface.Q, surface.Q.T)


def test_encoded_columns_are_explained_as_features():
    pd = pytest.importorskip("pandas")
    data = load_iris(as_frame=True)
    frame = data.data.iloc[:, :3].copy()
    frame["size"] = pd.cut(data.data.iloc[:, 3], 3, labels=["s", "m", "l"]).astype(str)
    columns = make_column_transformer(
        (StandardScaler(), list(frame.columns[:3])), (OneHotEncoder(), ["size"])
    )
    model = make_pipeline(columns, QuadraticLogisticRegression()).fit(frame, data.target)
    explanation = explain(model, frame)
    assert explanation.space == "features"
    assert explanation.names[:3] == list(frame.columns[:3])  # their scaler is undone
    assert explanation.names[3:] == [f"size_{size}" for size in "lms"]
    assert "some columns are encoded" in explanation.note
    encoded = np.column_stack([frame.iloc[:, :3], [[v == s for s in "lms"] for v in frame["size"]]])
    z = model.decision_function(frame)
    np.testing.assert_allclose(
        explanation[1].surface.value(encoded.astype(float)), z[:, 1] - z.mean(axis=1), atol=1e-9
    )


@pytest.mark.parametrize(
    "step", [PolynomialFeatures(2), QuantileTransformer(n_quantiles=20), MinMaxScaler(clip=True)]
)
def test_steps_that_are_not_affine_are_explained_as_features(step):
    features = step.fit_transform(X[:, :3])
    model = make_pipeline(step, StandardScaler(), QuadraticLogisticRegression(max_iter=50))
    model.fit(X[:, :3], Y)
    explanation = explain(model, X[:, :3])
    assert explanation.space == "features"
    assert "features that the preprocessing computes" in explanation.note
    z = model.decision_function(X[:, :3])
    surface = boundary(model, 0, 1)
    np.testing.assert_allclose(surface.value(features), z[:, 0] - z[:, 1], atol=1e-6)


def test_the_boundary_of_two_classes_has_the_sign_of_the_second():
    data = load_breast_cancer()
    model = make_pipeline(StandardScaler(), QuadraticLogisticRegression(C=0.01))
    model.fit(data.data, data.target_names[data.target])
    z = model.decision_function(data.data)  # positive: 'malignant', the second class
    towards = boundary(model, "malignant", "benign").value(data.data)
    np.testing.assert_allclose(towards, z, rtol=1e-8, atol=1e-8)
    back = boundary(model, "benign", "malignant").value(data.data)
    np.testing.assert_allclose(back, -z, rtol=1e-8, atol=1e-8)
    assert explain(model).classes[0].label == "malignant"


def test_reduced_neurons_are_pairs_of_planes():
    rng = np.random.default_rng(0)
    layer = Reduced(*(rng.normal(size=shape) for shape in ((4, 3), (4,), (4, 3), (4,))))
    points = rng.normal(size=(20, 3))
    for k, surface in enumerate(quadrics(layer)):
        assert surface.kind == "crossing planes"
        np.testing.assert_allclose(surface.value(points), layer.forward(points)[0][:, k])


def test_surfaces_after_a_hidden_layer_are_in_the_hidden_units():
    model = make_pipeline(StandardScaler(), QuadraticClassifier((6,), random_state=0)).fit(X, Y)
    explanation = explain(model, X)
    assert explanation.space == "hidden"
    assert explanation.names == [f"h{i}" for i in range(1, 7)]
    assert "After a hidden layer, a surface has no quadratic equation" in explanation.note
    hidden = np.tanh(
        model[0].transform(X) @ model[-1].network_.layers[0].W.T + model[-1].network_.layers[0].b
    )
    z = model.decision_function(X)
    np.testing.assert_allclose(boundary(model, 0, 2).value(hidden), z[:, 0] - z[:, 2], atol=1e-9)


def test_a_linear_hidden_layer_is_affine():
    network = make_network(("linear", "quadratic"), "identity", "softmax")
    points = np.random.default_rng(0).normal(size=(20, 3))
    surfaces = quadrics(network)
    assert explain(network).space == "inputs"
    for k, surface in enumerate(surfaces):
        np.testing.assert_allclose(surface.value(points), network.logits(points)[:, k], atol=1e-12)


def test_a_hidden_quadratic_layer_by_number():
    network = make_network(("quadratic", "linear"), "tanh", "softmax")
    points = np.random.default_rng(0).normal(size=(20, 3))
    assert len(quadrics(network)) == len(quadrics(network, 0)) == 4
    z, _ = network.layers[0].forward(points)
    np.testing.assert_allclose(quadrics(network)[2].value(points), z[:, 2])
    assert explain(network).classes[3].label == "neuron 3"


def test_effects_and_shares_of_terms():
    rng = np.random.default_rng(0)
    points = rng.gamma(2.0, size=(400, 3)) * [1, 10, 0.1] + [0, 100, 5]
    points[:, 2] += points[:, 0]  # correlated
    network = make_network(("quadratic",), "tanh", "logistic", widths=(1,))
    (item,) = explain(network, points, top=None).classes
    z = network.logits(points)[:, 0]
    assert len(item.terms) == item.n_terms == 6 + 3
    total = np.full(400, item.constant)
    for term in item.terms:
        factors = [points[:, i] - c for i, c in zip(term.features, term.centers, strict=True)]
        values = term.coefficient * np.prod(factors * (2 if term.kind == "squared" else 1), axis=0)
        assert term.effect == pytest.approx(values.std())
        assert term.share == pytest.approx(np.cov(values, z, ddof=0)[0, 1] / z.var())
        total += values
    np.testing.assert_allclose(total, z, rtol=1e-9)  # the terms are the equation
    shares = [abs(term.share) for term in item.terms]
    assert shares == sorted(shares, reverse=True)
    assert sum(term.share for term in item.terms) == pytest.approx(1)


def test_terms_are_ranked_by_effect_and_not_by_coefficient():
    """The largest coefficient belongs to a feature that hardly varies."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(300, 3)) * [0.001, 1, 1]
    network = Network.create(3, [("quadratic", 1, "logistic")], rng=0)
    network.layers[0].Q = [np.diag([50.0, 1.0, 0.1])]
    assert str(explain(network, points).classes[0].terms[0]) == "x2²"
    assert str(explain(network).classes[0].terms[0]) == "x1²"


def test_without_data_the_effects_come_from_the_scaler():
    model = make_pipeline(StandardScaler(), QuadraticLogisticRegression()).fit(X, Y)
    given, assumed = explain(model, X), explain(model)
    assert "178 samples" in given.ranked_by
    assert "scales learned in training" in assumed.ranked_by
    # on standardized data the assumed effects have the right size
    for item, other in zip(given.classes, assumed.classes, strict=True):
        assert 0.3 < other.terms[0].effect / item.terms[0].effect < 3


def test_text_and_json_contain_names_units_and_omitted_terms():
    data = load_iris(as_frame=True)
    model = make_pipeline(StandardScaler(), QuadraticLogisticRegression())
    model.fit(data.data, data.target_names[data.target])
    explanation = explain(model, data.data, top=2)
    text = str(explanation)
    for part in (
        "your own units (StandardScaler undone)",
        "([petal length (cm)] - 3.76)",
        "setosa) = ",
        "Importance of inputs",
        "Where two classes tie:",
        "setosa and virginica: ",
        "12 smaller terms; top=None lists all",
    ):
        assert part in text
    again = json.loads(json.dumps(explanation.to_dict()))
    assert [item["label"] for item in again["classes"]] == ["setosa", "versicolor", "virginica"]
    assert len(again["classes"][0]["terms"]) == 2
    assert explain(model, data.data, names=list("abcd")).names == list("abcd")
    with pytest.raises(KeyError):
        explanation["rose"]


@pytest.mark.slow
def test_eigenvectors_are_those_of_Q_by_magnitude():
    digits, labels = load_digits(return_X_y=True)
    model = QuadraticLogisticRegression(C=0.01, tol=1e-2).fit(digits / 16, labels)
    item = explain(model).classes[3]
    values, vectors = item.eigenvectors(4)
    assert (np.diff(np.abs(values)) <= 0).all()
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(4), atol=1e-10)
    np.testing.assert_allclose(item.surface.Q @ vectors.T, vectors.T * values, atol=1e-10)


def test_regressors_and_multilabel_models_have_no_boundaries():
    target = X[:, 0] ** 2 + X[:, 1]
    model = make_pipeline(StandardScaler(), QuadraticRegressor((), random_state=0)).fit(X, target)
    (item,) = explain(model, X).classes
    np.testing.assert_allclose(item.surface.value(X), model.predict(X), rtol=1e-6)
    assert item.label == "y"
    with pytest.raises(ValueError, match="'identity' outputs"):
        boundary(model, 0, 1)
    labels = np.column_stack([Y == 0, Y > 0, X[:, 0] > 13]).astype(int)
    multi = QuadraticClassifier((), random_state=0).fit(StandardScaler().fit_transform(X), labels)
    assert not explain(multi).boundaries
    with pytest.raises(ValueError, match="not mutually exclusive"):
        boundary(multi, 0, 1)


def test_models_that_cannot_be_explained_are_refused():
    linear = QuadraticClassifier((4,), layer_kinds="linear", random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="no quadratic or reduced layer"):
        quadrics(linear)
    with pytest.raises(TypeError, match="call fit first"):
        explain(QuadraticClassifier())
    with pytest.raises(TypeError, match="must be a Network, a layer, a fitted quadric estimator"):
        explain("model.quadric")
    model = QuadraticLogisticRegression(max_iter=5).fit(X / 1000, Y)
    with pytest.raises(ValueError, match=r"the classes are \[0, 1, 2\]. Got 7"):
        boundary(model, 0, 7)
    with pytest.raises(ValueError, match=r"different classes. Got 1 twice"):
        boundary(model, 1, 1)
    with pytest.raises(ValueError, match="names must hold 13 names"):
        explain(model, names=["a"])
    with pytest.raises(ValueError, match=r"X must have shape \(n_samples, 13\)"):
        explain(model, X[:, :4])
    with pytest.raises(ValueError, match="X must be finite"):
        explain(model, np.full((3, 13), np.nan))
    with pytest.raises(ValueError, match="layer must be one of the network's 1 layers"):
        quadrics(model, 3)


def test_classes_are_named_by_label_or_index():
    strings = QuadraticLogisticRegression(max_iter=5).fit(X / 1000, np.array(list("pqr"))[Y])
    assert boundary(strings, "p", "r").b == boundary(strings, 0, 2).b
    numbers = QuadraticLogisticRegression(max_iter=5).fit(X / 1000, Y + 5)
    assert boundary(numbers, 5, 7).b == boundary(strings, "p", "r").b
    with pytest.raises(ValueError, match=r"the classes are \[5, 6, 7\]"):
        boundary(numbers, 0, 1)
    bools = QuadraticLogisticRegression(max_iter=5).fit(X / 1000, Y > 1)
    assert boundary(bools, True, False).b == -boundary(bools, False, True).b
    network = make_network(("quadratic",), "tanh", "softmax", widths=(3,))
    assert boundary(network, 2, 0).b == network.layers[0].b[2] - network.layers[0].b[0]


def test_equal_neurons_cancel_to_a_plane():
    """Classes with equal covariances are separated by planes, despite rounding errors in Q."""
    from quadric.convert import from_gaussians

    C = np.array([[2, 0.3, 0.1], [0.3, 1.1, 0.2], [0.1, 0.2, 0.7]])
    network = from_gaussians(np.random.default_rng(0).normal(size=(5, 3)), [C] * 5)
    assert {item.kind for item in explain(network).classes} == {"plane"}
    assert set(explain(network).boundaries.values()) == {"plane"}


def test_columns_are_found_by_name():
    data = load_iris(as_frame=True)
    model = QuadraticLogisticRegression().fit(data.data, data.target)
    reordered = data.data[data.data.columns[::-1]]
    assert str(explain(model, reordered)) == str(explain(model, data.data))


def test_boundaries_are_stated_in_the_same_coordinates():
    data, labels = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), PCA(2), QuadraticLogisticRegression()).fit(data, labels)
    boundaries = explain(model).boundaries
    assert len(boundaries) == 3
    for (i, j), kind in boundaries.items():
        assert kind == boundary(model, i, j).kind


def test_an_imputer_of_ordinary_values_is_not_undone():
    data = np.where(np.median(X, axis=0) > X, 0.0, X)
    model = make_pipeline(
        SimpleImputer(missing_values=0.0), QuadraticLogisticRegression(max_iter=5)
    )
    model.fit(data, Y)
    assert explain(model).space == "features"


def test_columns_of_very_different_scales_give_the_same_ellipse_in_any_order():
    """With columns of scales 1e9 and 1, the boundary is the same ellipse in either order."""
    rng = np.random.default_rng(0)
    seconds, value = 1.6e9 + rng.uniform(0, 86400, 300), rng.normal(size=300)
    inside = ((seconds - 1.6e9 - 43200) / 2e4) ** 2 + value**2 < 1
    table = np.column_stack([seconds, value])
    lengths = []
    for step in (StandardScaler(), ColumnTransformer([("s", StandardScaler(), [1, 0])])):
        model = make_pipeline(step, QuadraticLogisticRegression()).fit(table, inside)
        surface = boundary(model, True, False)
        assert surface.kind == "ellipse"
        np.testing.assert_allclose(surface.value(table), model.decision_function(table), atol=1e-8)
        lengths.append(surface.axes.half_lengths)
    np.testing.assert_allclose(*lengths, rtol=1e-6)


GAPS = X[:, :4].copy()
GAPS[::9, 1] = np.nan
EMPTY = np.column_stack([X[:, :3], np.full(len(X), np.nan)])


@pytest.mark.parametrize(
    "steps",
    [
        [SimpleImputer()],
        [SimpleImputer(), StandardScaler()],
        [StandardScaler(), SimpleImputer()],
        [make_column_transformer((SimpleImputer(), ["a", "b"]), (StandardScaler(), ["c"]))],
        [make_column_transformer((SimpleImputer(), ["a", "b"]), (KBinsDiscretizer(3), ["c"]))],
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore")
def test_missing_values_of_pandas_equal_those_of_numpy(steps):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(GAPS, columns=list("abcd"))
    model = make_pipeline(*steps, QuadraticLogisticRegression(max_iter=20)).fit(frame, Y)
    found = explain(model, frame.astype("Float64"))
    assert str(found) == str(explain(model, frame))


@pytest.mark.parametrize("hidden", [(), (3,)])
def test_missing_values_of_pandas_that_are_not_imputed_are_refused(hidden):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(GAPS, columns=list("abcd")).astype("Float64")
    model = QuadraticClassifier(hidden, max_iter=5).fit(frame.fillna(0), Y)
    with pytest.raises(ValueError, match=r"X must be finite( in float64)?\. "):
        explain(model, frame)


@pytest.mark.parametrize("scaler", [StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler])
@pytest.mark.parametrize(
    "steps",
    {
        "imputed": lambda scaler: [scaler, SimpleImputer()],
        "imputed first": lambda scaler: [SimpleImputer(), scaler],
        "dropped": lambda scaler: [scaler, make_column_transformer(("passthrough", [2, 0]))],
        "inside": lambda scaler: [
            make_column_transformer((make_pipeline(scaler, SimpleImputer()), [3, 0, 1])),
        ],
        "filled inside": lambda scaler: [
            make_column_transformer((scaler, [3, 0]), remainder="passthrough"),
            SimpleImputer(strategy="constant", fill_value=3.0, keep_empty_features=True),
        ],
        "filled": lambda scaler: [
            scaler,
            SimpleImputer(strategy="constant", fill_value=3.0, keep_empty_features=True),
        ],
    }.items(),
    ids=lambda item: item[0],
)
@pytest.mark.filterwarnings("ignore")
def test_a_column_of_missing_values_has_no_effect(scaler, steps):
    model = make_pipeline(*steps[1](scaler()), QuadraticLogisticRegression(max_iter=20))
    model.fit(EMPTY, Y)
    for given in (None, EMPTY):
        found = explain(model, given)
        assert found.space == "inputs"
        assert "nan" not in str(found)
        used = {i for item in found.classes for term in item.terms for i in term.features}
        assert used
        assert 3 not in used
        reached = ModelView.of(model).coordinates.reach(EMPTY)
        values = np.stack([surface.value(reached) for surface in quadrics(model)], axis=1)
        np.testing.assert_allclose(values, model.decision_function(EMPTY), rtol=1e-7, atol=1e-7)


def test_a_missing_value_in_a_column_that_a_later_step_drops_has_no_effect():
    columns = make_column_transformer(("passthrough", [0, 2]))
    model = make_pipeline(StandardScaler(), columns, QuadraticLogisticRegression(max_iter=20))
    assert str(explain(model.fit(GAPS, Y), GAPS)) == str(explain(model, np.nan_to_num(GAPS)))


@pytest.mark.parametrize("scaler", [StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler])
def test_half_precision_gives_the_same_explanation(scaler):
    """In float16, the sum of a feature's extremes overflows and a scaler's offset is rounded."""
    data = (X[:, :4] * 100 + [60_000, 0, 20_000, 0]).astype(np.float16)
    assert np.isfinite(data).all()
    if scaler is RobustScaler:
        data = data / np.float16(100)  # otherwise scikit-learn's quantiles overflow
    model = make_pipeline(scaler(), QuadraticLogisticRegression(max_iter=20)).fit(data, Y)
    wide = data.astype(float)
    assert str(explain(model, data)) == str(explain(model, wide))
    assert np.isfinite(
        [term.effect for item in explain(model).classes for term in item.terms]
    ).all()
    values = np.stack([surface.value(wide) for surface in quadrics(model)], axis=1)
    np.testing.assert_allclose(values, model.decision_function(wide), rtol=1e-7, atol=1e-7)


def typical_inputs(scaler):
    network = Network.create(scaler.n_features_in_, [("quadratic", 1, "logistic")], rng=0)
    return ModelView.of(make_pipeline(scaler, network)).coordinates.typical


@pytest.mark.parametrize("unit_variance", [False, True])
@pytest.mark.parametrize("quantile_range", [(25.0, 75.0), (10.0, 90.0), (5.0, 60.0)])
def test_typical_inputs_of_a_robust_scaler_have_the_spread_of_the_data(
    quantile_range, unit_variance
):
    data = np.random.default_rng(0).normal([3, -1], [2, 0.1], size=(20_000, 2))
    scaler = RobustScaler(quantile_range=quantile_range, unit_variance=unit_variance).fit(data)
    mean, spread = typical_inputs(scaler)
    np.testing.assert_allclose(mean, [3, -1], atol=0.05)
    np.testing.assert_allclose(spread, [2, 0.1], rtol=0.03)


@pytest.mark.parametrize("quantile_range", [(0, 100), (50, 50)])
def test_a_robust_scaler_whose_quantiles_do_not_tell_the_spread_has_no_typical_inputs(
    quantile_range,
):
    assert typical_inputs(RobustScaler(quantile_range=quantile_range).fit(X)) is None


def test_columns_are_found_by_name_after_a_hidden_layer():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X[:, :4], columns=list("abcd"))
    model = QuadraticClassifier((3,), max_iter=5).fit(frame, Y)
    assert str(explain(model, frame[list("dbca")])) == str(explain(model, frame))


def test_a_union_whose_first_step_is_dropped_is_undone():
    union = FeatureUnion([("none", "drop"), ("scaled", StandardScaler())])
    model = make_pipeline(union, QuadraticLogisticRegression(max_iter=20)).fit(X, Y)
    values = np.stack([surface.value(X) for surface in quadrics(model)], axis=1)
    np.testing.assert_allclose(values, model.decision_function(X), rtol=1e-7, atol=1e-7)
    assert "178 samples" in explain(model, X).ranked_by


def test_equations_that_overflow_in_the_users_units_are_refused():
    model = make_pipeline(StandardScaler(), QuadraticLogisticRegression(max_iter=5))
    model.fit(X[:, :2] * [1e-158, 1], Y)
    with pytest.raises(ValueError, match=r"equations overflow in the units.* Rescale the data"):
        explain(model)
