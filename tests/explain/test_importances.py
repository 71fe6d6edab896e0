"""Importances: exact shares of the variance, one-hot columns grouped, and permutation."""

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.feature_selection import SelectFromModel
from sklearn.impute import SimpleImputer
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from quadric import (
    Linear,
    Network,
    QuadraticClassifier,
    QuadraticLogisticRegression,
    QuadraticRegressor,
    Reduced,
)
from quadric.explain import (
    dependence,
    explain,
    mean_effects,
    permutation_importances,
    rank_inputs,
)
from tests.support.fitted_models import shop, shop_model

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_a_regressor_is_an_equation_of_its_target():
    frame, price = shop()
    model = shop_model(frame, price)
    found = explain(model, frame, target="price", top=None)
    (item,) = found.classes
    assert item.equation.startswith("price = ")
    assert " = 0" not in str(found)
    assert "A positive term raises the predicted price." in str(found)
    # the printed terms alone give the predictions
    encoded = {name: frame[name].to_numpy() for name in ("age", "income")}
    for name in found.names[2:]:
        column, value = name.split("_")
        encoded[name] = (frame[column] == value).to_numpy().astype(float)
    z = np.full(len(frame), item.constant)
    for term in item.terms:
        factors = [encoded[n] - c for n, c in zip(term.names, term.centers, strict=True)]
        z += term.coefficient * np.prod(factors * (2 if term.kind == "squared" else 1), axis=0)
    np.testing.assert_allclose(z, model.predict(frame), rtol=1e-7)


def test_one_hot_columns_are_one_input():
    frame, price = shop()
    found = explain(shop_model(frame, price), frame)
    by_name = {one.name: one for one in found.importances}
    assert next(iter(by_name)) == "age"
    assert set(by_name) == {"age", "income", "color", "size"}
    assert sum(one.total for one in found.importances) == pytest.approx(1)
    assert by_name["color"].squared == by_name["size"].squared == 0  # x² = x
    assert by_name["age"].squared > 0.2
    assert by_name["color"].interactions > 0.01
    assert abs(by_name["size"].total) < 1e-3
    assert "equally frequent categories" in explain(shop_model(frame, price)).ranked_by


def test_names_of_encoded_columns_have_no_names_of_pipelines():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": np.arange(40.0), "plan": ["Basic", "Pro"] * 20})
    encode = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age"]),
        (make_pipeline(OneHotEncoder()), ["plan"]),
    )
    model = make_pipeline(encode, QuadraticRegressor((), random_state=0))
    found = explain(model.fit(frame, frame["age"] + (frame["plan"] == "Pro")), frame)
    assert found.names == ["age", "plan_Basic", "plan_Pro"]
    # names that would not be different keep those of the parts
    both = make_column_transformer((StandardScaler(), ["age"]), (OneHotEncoder(), ["age"]))
    numbers = frame[["age"]] % 2
    model = make_pipeline(both, QuadraticRegressor((), random_state=0)).fit(numbers, frame["age"])
    assert len(set(explain(model, numbers).names)) == 3


def test_importances_of_a_known_function():
    """z = 2 x1 + 3 x2² + 4 x1 x3, with independent inputs of variance 1."""
    Q = np.zeros((1, 3, 3))
    Q[0, 1, 1], Q[0, 0, 2], Q[0, 2, 0] = 3, 2, 2
    network = Network.create(3, [("quadratic", 1, "identity")], rng=0)
    network.layers[0].Q, network.layers[0].W, network.layers[0].b = Q, [[2.0, 0, 0]], [1.0]
    total = 4 + 18 + 16
    found = {one.name: one for one in explain(network).importances}
    assert found["x1"].linear == pytest.approx(4 / total)
    assert found["x1"].interactions == found["x3"].interactions == pytest.approx(8 / total)
    assert found["x2"].squared == found["x2"].total == pytest.approx(18 / total)
    points = np.random.default_rng(0).normal(size=(200_000, 3))
    for one in explain(network, points).importances:
        assert one.total == pytest.approx(found[one.name].total, abs=0.02)


@pytest.mark.parametrize("labels", [2, 3])
def test_feature_importances_agree_with_explain(labels):
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = QuadraticLogisticRegression(C=0.1).fit(X, np.minimum(y, labels - 1))
    assert model.feature_importances_.sum() == pytest.approx(1)
    for one in explain(model).importances:
        assert model.feature_importances_[int(one.name[1]) - 1] == pytest.approx(one.total)
    selector = SelectFromModel(model, importance_getter="feature_importances_", max_features=2)
    assert selector.fit(X, y).get_support().sum() <= 2


def test_feature_importances_of_reduced_and_linear_layers_agree_with_explain():
    rng = np.random.default_rng(0)
    for layer in (
        Reduced(*(rng.normal(size=shape) for shape in ((2, 3), (2,), (2, 3), (2,)))),
        Linear(rng.normal(size=(2, 3)), rng.normal(size=2)),
    ):
        model = QuadraticRegressor(())
        model.network_ = Network([layer], ["identity"])
        shares = {one.name: one.total for one in explain(model).importances}
        expected = [shares[f"x{i}"] for i in (1, 2, 3)]
        np.testing.assert_allclose(model.feature_importances_, expected)


def test_feature_importances_need_a_single_layer():
    X, y = load_iris(return_X_y=True)
    model = QuadraticClassifier((3,), max_iter=5, random_state=0).fit(X, y)
    assert not hasattr(model, "feature_importances_")
    with pytest.raises(AttributeError, match=r"hidden_layer_sizes=\(\).*permutation_importances"):
        _ = model.feature_importances_
    with pytest.raises(AttributeError, match="not fitted yet"):
        _ = QuadraticLogisticRegression().feature_importances_


@pytest.mark.parametrize("library", ["pandas", "polars", "numpy"])
def test_permutation_importances_find_the_inputs_that_matter(library):
    if library == "numpy":
        X = np.random.default_rng(0).normal(size=(200, 3))
        y = X[:, 0] * X[:, 1]
        model = QuadraticRegressor((), random_state=0).fit(X, y)
        expected = {"x1", "x2"}
    else:
        X, y = shop(library)
        model = shop_model(X, y)
        expected = {"age", "income", "color"}
    found = permutation_importances(model, X, y)
    assert {one.name for one in found if one.mean > 0.01} == expected
    assert [one.mean for one in found] == sorted((one.mean for one in found), reverse=True)
    assert found == permutation_importances(model, X, y)  # the default seed is fixed
    with pytest.raises(ValueError, match="y must hold"):
        permutation_importances(model, X, y[:5])


def test_permutation_importances_accept_one_column_of_targets():
    X = np.random.default_rng(0).normal(size=(100, 3))
    y = X[:, 0] * X[:, 1]
    model = QuadraticRegressor((), random_state=0).fit(X, y)
    expected = permutation_importances(model, X, y)
    assert permutation_importances(model, X, y[:, None]) == expected
    # a regressor of scikit-learn predicts a column if it was fitted to one
    line, column = LinearRegression().fit(X, X[:, 0]), LinearRegression().fit(X, X[:, :1])
    expected = permutation_importances(line, X, X[:, 0])
    found = permutation_importances(column, X, X[:, 0])
    for one, other in zip(found, expected, strict=True):
        assert (one.name, one.mean) == (other.name, pytest.approx(other.mean))


@pytest.mark.parametrize("shape", [(100, 2), (100, 1, 1), ()])
def test_permutation_importances_refuse_targets_of_another_shape(shape):
    X = np.random.default_rng(0).normal(size=(100, 3))
    model = QuadraticRegressor((), random_state=0).fit(X, X[:, 0] * X[:, 1])
    with pytest.raises(ValueError, match=r"y must (hold 100 values|have shape \(100,\))"):
        permutation_importances(model, X, np.zeros(shape))


def test_permutation_importances_use_the_score_of_scikit_learn():
    X = np.random.default_rng(0).normal(size=(200, 3))
    labels, numbers = (X[:, :2] > 0).astype(int), np.column_stack([X[:, 0], 10 * X[:, 1] ** 2])
    classifier = QuadraticClassifier((), max_iter=20, random_state=0).fit(X, labels)
    regressor = QuadraticRegressor((), max_iter=20, random_state=0).fit(X, numbers)
    for model, y in ((classifier, labels), (regressor, numbers), (regressor, np.ones((200, 2)))):
        expected = permutation_importance(model, X, y, n_repeats=20, random_state=0)
        found = permutation_importances(model, X, y, repeats=20)
        for one in found:
            k = int(one.name[1]) - 1
            mean, std = expected.importances_mean[k], expected.importances_std[k]
            assert one.mean == pytest.approx(mean, abs=2 * std + 1e-12)


def test_importances_of_correlated_inputs_are_not_negative():
    """x1 offsets most of x2, so that its share of the variance is negative."""
    rng = np.random.default_rng(0)
    x2 = rng.normal(size=500)
    X = np.column_stack([x2 + 0.3 * rng.normal(size=500), x2, rng.normal(size=500)])
    model = QuadraticRegressor((), layer_kinds="linear", random_state=0, alpha=1e-6)
    found = explain(model.fit(X, X @ [-1.0, 3.0, 0.5]), X)
    assert min(term.share for term in found.classes[0].terms) < 0
    deviations = np.abs((X - X.mean(axis=0)) * [-1.0, 3.0, 0.5]).mean(axis=0)
    expected = deviations / deviations.sum()
    assert [one.name for one in found.importances] == ["x2", "x1", "x3"]
    for one in found.importances:
        assert one.total == pytest.approx(expected[int(one.name[1]) - 1], rel=1e-3)
        assert one.total == pytest.approx(one.linear + one.squared + one.interactions)
    assert "Importances: shares of the mean absolute effects of the inputs." in str(found)
    assert "Importances: shares of the variance." in str(explain(model))


def test_the_effects_in_a_network_are_those_of_its_equation():
    """A network of linear layers is a linear function, whose effects are known."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    network = Network.create(3, [("linear", 4, "identity"), ("linear", 1, "identity")], rng=0)
    W = (network.layers[1].W @ network.layers[0].W)[0]
    effects = dict(mean_effects(network, X))
    for k in range(3):
        # the mean distance of two values of a normal input is 2 / sqrt(pi)
        assert effects[f"x{k + 1}"] == pytest.approx(abs(W[k]) * 2 / np.sqrt(np.pi), rel=0.15)


def test_the_dependence_on_hundreds_of_inputs_needs_few_predictions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 300))
    model = QuadraticRegressor((2,), max_iter=5, random_state=0).fit(X, X[:, 7])
    calls = []
    predict = model.predict
    model.predict = lambda rows: calls.append(len(rows)) or predict(rows)
    assert len(rank_inputs(model, X)) == 300
    found = explain(model, X, top=3)
    assert len(found.dependences) == 3
    assert "(297 less important inputs; top=None lists all)" in str(found)
    assert len(calls) < 100
    assert max(calls) * 300 <= 4_000_000


def test_certify_C13_dependence_uses_500_rows_only():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 2))
    model = QuadraticRegressor((), random_state=0).fit(X, X[:, 0] * X[:, 1] ** 2)
    for max_rows in (100, 1200, 5000):
        found = dependence(model, X, [0], size=3, max_rows=max_rows)
        used = X[np.linspace(0, 1199, min(max_rows, 1200)).astype(int)]
        wanted = [
            model.predict(np.column_stack([np.full(len(used), value), used[:, 1]])).mean()
            for value in found.grids[0]
        ]
        np.testing.assert_allclose(found.mean[:, 0], wanted, rtol=1e-12)
    with pytest.raises(ValueError, match="max_rows must be a whole number of at least 1"):
        dependence(model, X, [0], max_rows=0)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_partial_dependence(library):
    frame, price = shop(library)
    model = shop_model(frame, price)
    on_color = dependence(model, frame, ["color"])
    assert on_color.grids == (["blue", "green", "red"],)
    income = frame["income"].to_numpy()
    assert on_color.mean[2, 0] - on_color.mean[0, 0] == pytest.approx(10 * income.mean(), rel=0.05)
    both = dependence(model, frame, ["age", "color"], size=5)
    assert both.mean.shape == (5, 3, 1)
    with pytest.raises(ValueError, match=r"the inputs are age, income, color, size\. Got 'weight'"):
        dependence(model, frame, ["weight"])


@pytest.mark.parametrize("names", [[0, 1, 2], [("a", 1), ("a", 2), ("b", 1)]])
def test_column_names_that_are_not_strings_are_accepted(names):
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(size=(100, 3))
    frame, y = pandas.DataFrame(X), X[:, 0] * X[:, 1]
    frame.columns = names
    before = frame.copy()
    model = QuadraticRegressor((), random_state=0).fit(X, y)
    found = permutation_importances(model, frame, y)
    expected = permutation_importances(model, X, y)
    assert [one.name for one in found] == [str(names[int(e.name[1]) - 1]) for e in expected]
    assert [one.mean for one in found] == [one.mean for one in expected]
    np.testing.assert_array_equal(
        dependence(model, frame, [0], size=4).mean, dependence(model, X, [0], size=4).mean
    )
    pandas.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize("library", ["pandas", "polars", "numpy"])
def test_a_column_without_numbers_is_missing(library):
    X = np.random.default_rng(0).normal(size=(60, 2))

    def table(X):
        if library == "numpy":
            return X
        return pytest.importorskip(library).DataFrame({"x1": X[:, 0], "x2": X[:, 1]})

    model = make_pipeline(SimpleImputer(), QuadraticRegressor((3,), max_iter=5, random_state=0))
    model.fit(table(X), X[:, 0] * X[:, 1])
    data = table(X * [1, np.nan])
    found = dependence(model, data, ["x2"])
    assert found.grids == ([None],)
    assert found.mean[0, 0] == pytest.approx(model.predict(data).mean())
    assert str(found).endswith(" at missing")
    assert [one.inputs for one in explain(model, data).dependences] == [("x1",), ("x2",)]


def test_nullable_columns_equal_ordinary_ones():
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(0).integers(0, 9, (60, 2))
    model = make_pipeline(SimpleImputer(), QuadraticRegressor((), random_state=0))
    y, full = X[:, 0] * X[:, 1], pandas.DataFrame(X, columns=["x1", "x2"])
    model.fit(full, y)
    nullable = full.astype("Int64")
    assert permutation_importances(model, nullable, y) == permutation_importances(model, full, y)
    nullable["x2"] = pandas.array([None] * 60, dtype="Int64")
    found = dependence(model, nullable, ["x2"])
    assert found.grids == ([None],)
    assert found.mean[0, 0] == pytest.approx(model.predict(nullable).mean())


@pytest.mark.parametrize("library", ["numpy", "pandas", "polars"])
def test_columns_of_integers_are_set_to_values_between_them(library):
    X = np.random.default_rng(0).integers(0, 5, size=(80, 2))
    y, model = X[:, 0] ** 2.0, QuadraticRegressor((), random_state=0)
    expected = dependence(model.fit(X, y), X.astype(float), [0]).mean
    if library != "numpy":
        X = pytest.importorskip(library).DataFrame({"x1": X[:, 0], "x2": X[:, 1]})
    mean = dependence(model.fit(X, y), X, [0]).mean
    assert len(np.unique(mean)) == len(mean)
    np.testing.assert_array_equal(mean, expected)


def test_dependence_needs_a_row():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = QuadraticRegressor((), random_state=0).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"X must have at least one row\. Got none"):
        dependence(model, X[:0], ["x1"])


def test_a_hidden_layer_is_explained_by_partial_dependence():
    frame, price = shop()
    model = shop_model(frame, price, hidden=(8,))
    found = explain(model, frame, target="price")
    text = str(found)
    assert "hidden_layer_sizes=()" in text
    header, means = next(one.table() for one in found.dependences if one.inputs == ("color",))
    assert header == ["color", "blue", "green", "red"]
    assert f"  {means[0]}  " in text
    assert "h1²" not in text
    assert [one.inputs[0] for one in found.dependences] == [one.name for one in found.importances]
    assert f"\nImportance of inputs   total\n  {found.importances[0].name} " in text
    assert str(explain(model)).endswith(
        "Importances and partial dependence need data: explain(model, X)."
    )


def test_scores_drop_if_an_input_of_a_network_is_shuffled_and_targets_are_given():
    frame, price = shop()
    model = shop_model(frame, price, hidden=(8,))
    found = explain(model, frame, price, target="price")
    assert found.permutation == permutation_importances(model, frame, price)
    order = [one.name for one in found.permutation]
    assert f"Drop of the R² if an input is shuffled ({len(price)} rows)\n  {order[0]}  " in str(
        found
    )
    pair = found.pairs[0]
    assert pair.interaction == max(one.interaction for one in found.pairs)
    assert f"if {pair.inputs[0]} (down) and {pair.inputs[1]} (across)" in str(found)
    assert pair.table()[0][0] == " × ".join(pair.inputs)
    assert len(pair.table()) == 1 + len(pair.grids[0])
    state = found.to_dict()
    assert [one["name"] for one in state["permutation"]] == order
    assert (state["permutation_metric"], state["permutation_rows"]) == ("R²", len(price))
    html = found._repr_html_()
    assert html.count("<table") == 3 + min(5, len(order))


def test_an_interaction_is_what_is_not_a_sum():
    X = np.random.default_rng(0).normal(size=(100, 3))
    model = QuadraticRegressor((), random_state=0, alpha=1e-6).fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    product, total = (dependence(model, X, pair, size=5) for pair in (["x1", "x2"], ["x1", "x3"]))
    assert product.interaction > 0.5
    assert total.interaction < 0.01


def test_many_rows_are_sampled_for_the_importances_of_a_hidden_layer():
    X = np.random.default_rng(0).normal(size=(12_000, 2))
    y = X[:, 0] * X[:, 1]
    model = QuadraticRegressor((3,), max_iter=20, random_state=0).fit(X[:200], y[:200])
    found = explain(model, X, y)
    assert found.n_rows == 10_000
    assert len(found.permutation) == 2


def test_linear_layers_are_explained():
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(
        StandardScaler(), QuadraticClassifier((), layer_kinds="linear", random_state=0)
    ).fit(X, y)
    item = explain(model, X).classes[1]
    assert {term.kind for term in item.terms} == {"linear"}
    assert item.kind == "hyperplane"
    hidden = QuadraticClassifier((4,), layer_kinds="linear", random_state=0).fit(X, y)
    assert "\n  p(2)  " in str(explain(hidden, X))


def test_omitted_pairs_are_counted():
    network = Network.create(2, [("quadratic", 12, "softmax")], init="normal", scale=1.0, rng=0)
    text = str(explain(network))
    assert "45 of 66 pairs; omitted: those after 4 and 11, in the order of the classes" in text
    assert explain(network).to_dict()["omitted_boundaries"] == 21
    whole = explain(network, top=None)
    assert len(whole.boundaries) == 66
    assert "omitted" not in str(whole)


def test_certify_C4_a_network_depends_on_inputs_by_its_outputs_and_is_scored_by_its_classes():
    X, y = load_iris(return_X_y=True)
    network = Network.create(4, [("linear", 5, "tanh"), ("quadratic", 3, "softmax")], rng=0)
    network.fit(X, np.eye(3)[y], solver="adam", batch_size=32, epochs=60)
    found = dependence(network, X, [2])
    np.testing.assert_allclose(found.mean.sum(axis=1), 1.0)  # probabilities, not numbers of classes
    assert len(explain(network, X).dependences) == 4
    drops = {one.name: one.mean for one in permutation_importances(network, X, y, rng=0)}
    assert max(drops.values()) > 0.2
    assert max(drops.values()) <= 1  # a share of the rows; R² could fall by more
