"""Counterfactuals: the nearest input of another class, verified by the model itself."""

import re

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from quadric import Network, QuadraticLogisticRegression
from quadric.certify import Change, counterfactual, radius
from quadric.certify._row_and_changes import written
from quadric.core import Linear, Quadratic


def draw(seed, classes=3):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    network = Network.create(
        n, [("quadratic", classes, "softmax")], init="normal", scale=1.0, rng=seed
    )
    return network, rng.normal(size=n)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    y = np.array(["setosa", "versicolor", "virginica"])[y]
    return make_pipeline(StandardScaler(), QuadraticLogisticRegression()).fit(X, y), X


@pytest.mark.parametrize("seed", range(10))
def test_the_nearest_point_of_another_class_agrees_with_the_radius(seed):
    network, x = draw(seed)
    found, wanted = counterfactual(network, x), radius(network, x[None])
    assert found.exact
    assert network.predict(found.point[None])[0] == found.becomes != found.predicted
    np.testing.assert_allclose(found.distance, wanted.distance[0], rtol=1e-6)
    assert found.lower_bound == wanted.radius[0]
    assert wanted.radius[0] <= found.distance
    np.testing.assert_allclose(np.linalg.norm(found.point - x), found.distance)


def minimized(network, x, k):
    """The distance to class k by a numerical minimizer from many starts."""
    layer, rng, best = network.layers[0], np.random.default_rng(1), np.inf
    others = np.arange(layer.n_outputs) != k
    Q, W, b = (part[k] - part[others] for part in (layer.Q, layer.W, layer.b))
    constraint = {
        "type": "ineq",
        "fun": lambda y: (Q @ y + W) @ y + b,
        "jac": lambda y: 2 * Q @ y + W,
    }
    for start in x + rng.normal(size=(30, len(x))) * 3:
        solved = minimize(
            lambda y: ((y - x) @ (y - x), 2 * (y - x)),
            start,
            jac=True,
            method="SLSQP",
            constraints=[constraint],
        )
        if solved.success and constraint["fun"](solved.x).min() > -1e-8:
            best = min(best, np.sqrt(solved.fun))
    return best


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 100), marks=pytest.mark.full)])
def test_a_given_class_beats_all_others(seeds):
    exact = []
    for seed in seeds:
        network, x = draw(seed, classes=4)
        predicted = network.predict(x[None])[0]
        for k in set(range(4)) - {predicted}:
            found = counterfactual(network, x, to=k)
            wanted = minimized(network, x, k)
            if np.isinf(found.distance):
                assert np.isinf(wanted)
                continue
            assert network.predict(found.point[None])[0] == k == found.becomes
            assert found.lower_bound <= wanted * (1 + 1e-7) + 1e-7  # the minimizer is not exact
            assert found.distance <= wanted * (1 + 1e-5) + 1e-7
            if found.exact:
                np.testing.assert_allclose(found.distance, wanted, rtol=1e-5, atol=1e-7)
            exact.append(found.exact)
    assert 0.3 < np.mean(exact) < 1  # both cases occur


def test_weights_change_the_metric():
    plane = Network([Linear([[1.0, 1.0]], [0.0])], ["logistic"])
    cheap = counterfactual(plane, [1.0, 1.0], weights={"x1": 10.0})
    assert abs(cheap.point[0] - 1) < 0.1 < abs(cheap.point[1] - 1)
    # the nearest point on x1 + x2 = 0 for the length (10 d1)^2 + d2^2
    np.testing.assert_allclose(cheap.point, [1 - 2 / 101, 1 - 200 / 101], rtol=1e-9)
    np.testing.assert_allclose(cheap.distance, 20 / np.sqrt(101), rtol=1e-9)
    assert cheap.exact


def test_fixed_inputs_do_not_change(iris):
    model, X = iris
    found = counterfactual(model, X[70], fixed=["x3"], to="virginica")
    assert found.point[2] == X[70, 2]
    assert model.predict(found.point[None])[0] == "virginica"
    nothing = counterfactual(model, X[70], fixed=range(4))
    assert nothing.exact
    assert nothing.distance == np.inf
    assert nothing.changes == []
    assert "no input with another class" in str(nothing)


def test_bounds_lengthen_the_change_beside_the_lower_bound(iris):
    model, X = iris
    x = X[60]
    free = counterfactual(model, x, to="setosa")
    limits = {i: (value - 0.3, value + 0.3) for i, value in enumerate(x[:2])}
    found = counterfactual(model, x, to="setosa", bounds=limits)
    assert model.predict(found.point[None])[0] == "setosa" == found.becomes
    assert all(least <= found.point[i] <= most for i, (least, most) in limits.items())
    assert found.exact
    assert found.lower_bound <= free.distance < found.distance
    wide = counterfactual(model, x, to="setosa", bounds={0: (None, 100.0)})
    assert wide.exact
    with pytest.raises(ValueError, match=r"bounds must contain x. x1 is 5,"):
        counterfactual(model, x, bounds={"x1": (0.0, 1.0)})


@pytest.mark.parametrize("shape", [(), (1, 1, 2), (0, 2), (2, 2)])
def test_x_must_be_one_row(shape):
    circle = Network([Quadratic([[0.0, 0.0]], [4.0], [-np.eye(2)])], ["logistic"])
    got = re.escape(f"Got shape {shape}; pass X[[i]]")
    with pytest.raises(ValueError, match=rf"x must be one row, .*{got}"):
        counterfactual(circle, np.ones(shape))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_x_must_have_a_value_for_each_input(count):
    circle = Network([Quadratic([[0.0, 0.0]], [4.0], [-np.eye(2)])], ["logistic"])
    with pytest.raises(ValueError, match=rf"x must have 2 values.*Got {count}\."):
        counterfactual(circle, np.ones(count))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("bound", [1.957, 1.95, 1.9, 1.9572348123, 1.23456789, 5.0])
def test_the_named_values_are_within_the_bounds(bound, dtype):
    circle = Network([Quadratic([[0.0, 0.0]], [4.0], [-np.eye(2)])], ["logistic"])
    x = np.array([1.0, 0.0], dtype=dtype)
    for sign in (1, -1):
        limits = (None, bound) if sign > 0 else (-bound, None)
        found = counterfactual(circle, sign * x, bounds={0: limits, 1: (-1.9, 1.9)})
        named = dict.fromkeys(("x1", "x2"), 0.0)
        named |= {change.name: change.after for change in found.changes}
        assert sign * named["x1"] <= bound
        assert abs(named["x2"]) <= 1.9
        row = np.array([[named["x1"], named["x2"]]], dtype=dtype)
        assert circle.predict(row)[0] == 0 == found.becomes
    if bound == 1.957:
        assert str(found).startswith("0 with x1 -1.957 instead of -1 and x2 ")


@pytest.mark.parametrize("seed", range(20))
def test_the_named_values_of_random_networks_are_within_the_bounds(seed):
    network, x = draw(seed)
    step = counterfactual(network, x).point - x
    share = np.random.default_rng(seed).uniform(0.3, 1.5, len(x))
    low, high = x + np.minimum(0, share * step), x + np.maximum(0, share * step)
    limits = {i: (low[i] - 1e-3, high[i] + 1e-3) for i in range(0, len(x), 2)}
    found = counterfactual(network, x, bounds=limits)
    row = x.copy()
    for change in found.changes:
        row[int(change.name[1:]) - 1] = change.after
    for i, (least, most) in limits.items():
        assert least <= row[i] <= most
    assert network.predict(row[None])[0] == found.becomes


def test_integer_inputs_stay_integers():
    # approved if income / 1000 + 2 * years >= 40
    model = Network([Linear([[1e-3, 2.0]], [-40.0])], ["logistic"])
    found = counterfactual(model, [29_800.0, 3.0], integers=["x2"], weights=[1e-3, 1.0])
    assert found.point[1] == round(found.point[1])
    assert model.predict(found.point[None])[0] == 1
    assert not found.exact
    assert found.lower_bound <= found.distance
    # every integer number of years, with the smallest income that suffices
    lengths = [np.hypot((40_000 - 2000 * k) / 1e3 - 29.8, k - 3.0) for k in range(10)]
    np.testing.assert_allclose(found.distance, min(lengths), rtol=1e-6)
    whole = counterfactual(model, [29_800.0, 3.0], integers=[0, 1], weights=[1e-3, 1.0])
    assert (whole.point == whole.point.round()).all()
    assert model.predict(whole.point[None])[0] == 1


def test_changes_are_worded_with_rounded_numbers():
    model = Network([Linear([[1.0]], [-31_150.0])], ["logistic"])
    found = counterfactual(model, [29_800.0])
    assert str(found) == "1 with x1 31 200 instead of 29 800"
    assert found.changes == [Change("x1", 29_800.0, 31_200.0)]
    assert written(-1234567.25) == "-1 234 567.25"
    assert written(1e-20) == "1e-20"


def test_the_rounded_values_have_the_class_that_is_named(iris):
    model, X = iris
    for x in X[::10]:
        found = counterfactual(model, x)
        changed = x.copy()
        for change in found.changes:
            i = found.names.index(change.name)
            assert change.before == x[i]
            changed[i] = change.after
        assert model.predict(changed[None])[0] == found.becomes
        assert str(found).startswith(f"{found.becomes} with x")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_with_categories(library):
    frames = pytest.importorskip(library, reason=f"needs {library}")
    X, y = load_iris(return_X_y=True)
    table = frames.DataFrame(
        {"color": np.where(X[:, 2] > 4, "red", "blue"), "length": X[:, 0], "width": X[:, 1]}
    )
    encode = make_column_transformer(
        (StandardScaler(), ["length", "width"]), (OneHotEncoder(), ["color"])
    )
    model = make_pipeline(encode, QuadraticLogisticRegression()).fit(table, y)
    found = counterfactual(model, table[60:61], units="scaled")
    assert found.predicted == model.predict(table[60:61])[0] != found.becomes
    assert {change.name for change in found.changes} <= {"length", "width"}
    moved = dict(zip(found.names, found.point, strict=True))
    again = frames.DataFrame(
        {"color": list(table[60:61]["color"])}
        | {name: [moved[name]] for name in ("length", "width")}
    )
    assert model.predict(again)[0] == found.becomes


def test_single_precision_points_are_verified_as_they_are():
    X, y = load_iris(return_X_y=True)
    X = X.astype("float32")
    model = QuadraticLogisticRegression().fit(X, y)
    for x in X[::15]:
        found = counterfactual(model, x)
        assert (found.point == found.point.astype("float32")).all()
        assert model.predict(found.point.astype("float32")[None])[0] == found.becomes


@pytest.mark.parametrize("kind", ["array", "pandas", "polars"])
def test_certify_C13_points_in_single_precision_are_within_the_bounds(kind):
    X, y = load_iris(return_X_y=True)
    X = X.astype("float32")
    model = QuadraticLogisticRegression().fit(X, y)
    rng = np.random.default_rng(0)
    for x in X[::5]:
        near = counterfactual(model, x).point
        share = rng.uniform(0.2, 0.9, size=4)
        ends = x + share * (near - x)  # in float64
        low, high = np.minimum(x, ends), np.maximum(x, ends)
        limits = {i: (low[i], high[i]) for i in range(3)}
        row = x if kind == "array" else pytest.importorskip(kind).DataFrame(x[None])
        if kind == "pandas":
            row.columns = [f"x{i}" for i in range(4)]
        found = counterfactual(model.network_ if kind != "array" else model, row, bounds=limits)
        assert (found.point == found.point.astype("float32")).all()
        point = dict(enumerate(found.point.astype("float32").astype(float)))
        for i, (least, most) in limits.items():
            assert least <= point[i] <= most
        for change in found.changes:
            i = found.names.index(change.name)
            assert i not in limits or limits[i][0] <= change.after <= limits[i][1]
        label = model.predict(found.point.astype("float32")[None])[0]
        assert label == found.becomes != found.predicted


def test_certify_C13_a_series_is_a_row_of_a_table():
    X, y = load_iris(return_X_y=True, as_frame=True)
    models = [
        make_pipeline(StandardScaler(), QuadraticLogisticRegression()).fit(X, y),
        QuadraticLogisticRegression().fit(X, y),
        QuadraticLogisticRegression().fit(X.to_numpy(), y),
    ]
    for model in models:  # a warning is an error
        named = hasattr(model, "feature_names_in_")
        wanted = counterfactual(model, X[70:71] if named else X.to_numpy()[70])
        found = counterfactual(model, X.iloc[70])
        np.testing.assert_array_equal(found.point, wanted.point)
        assert found.names == wanted.names
    X["color"] = np.where(y == 0, "red", "blue")
    encode = make_column_transformer(
        (StandardScaler(), list(X.columns[:4])), (OneHotEncoder(), ["color"])
    )
    model = make_pipeline(encode, QuadraticLogisticRegression()).fit(X, y)
    np.testing.assert_array_equal(
        counterfactual(model, X.iloc[70]).point, counterfactual(model, X[70:71]).point
    )


@pytest.mark.parametrize("width", [1e-3, 1e-6, 1e-12])
def test_certify_C13_thin_regions_end_soon_after_the_boundary(width):
    # class 0 for 1 <= x <= 1 + width
    strip = Network([Quadratic([[-2.0 - width]], [1.0 + width], [[[1.0]]])], ["logistic"])
    predict, near = strip.predict, radius(strip, [[0.0]])
    np.testing.assert_allclose(near.distance, 1.0, rtol=1e-9)
    assert predict(np.array([[1.0 + width / 2]]))[0] == 0 == near.becomes[0]
    assert predict(1.001 * near.nearest + width)[0] == 1 == near.predicted[0]
    found = counterfactual(strip, [0.0])
    assert predict(found.point[None])[0] == 0 == found.becomes
    assert found.distance <= 1 + width


def test_wrong_arguments_are_refused(iris):
    model, X = iris
    with pytest.raises(ValueError, match=r"x must be one row, .* Got shape \(150, 4\)"):
        counterfactual(model, X)
    with pytest.raises(ValueError, match=r"to must be a class of the model: \['setosa'"):
        counterfactual(model, X[0], to="rose")
    with pytest.raises(ValueError, match="The model predicts 'setosa' already"):
        counterfactual(model, X[0], to="setosa")
    with pytest.raises(ValueError, match="weights must be 4 positive numbers"):
        counterfactual(model, X[0], weights=[1, 2, 3, 0])
    with pytest.raises(ValueError, match=r"integers must name inputs: x1, x2, x3, x4. Got 'age'"):
        counterfactual(model, X[0], integers=["age"])
    deep = Network.create(4, [("linear", 3, "tanh"), ("quadratic", 3, "softmax")], rng=0)
    with pytest.raises(ValueError, match="folds to 2 layers, so its distances have no exact"):
        counterfactual(deep, X[0])
