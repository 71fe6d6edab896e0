"""Plots of models with any number of inputs."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quadric import (
    Network,
    QuadraticClassifier,
    QuadraticLogisticRegression,
    QuadraticRegressor,
)
from quadric.explain import boundary, explain
from quadric.plotting import (
    plot_boundaries,
    plot_calibration,
    plot_confusion,
    plot_dependence,
    plot_eigenvectors,
    plot_importances,
    plot_points,
    plot_prediction,
    plot_regions,
    plot_residuals,
    plot_slices,
)
from quadric.plotting._boundaries import InputAxis, ModelSlice, _edges, slice_model
from tests.support.shop import shop, shop_model

IRIS = load_iris()
X, Y = IRIS.data, IRIS.target_names[IRIS.target]


@pytest.fixture(scope="module")
def model():
    return make_pipeline(StandardScaler(), QuadraticLogisticRegression()).fit(X, Y)


def texts(ax):
    legend = ax.get_legend()
    return [text.get_text() for text in legend.get_texts()]


def test_boundaries_state_inputs_and_values(model, ax):
    plot_boundaries(model, X, Y, ax)
    title = ax.get_title(loc="left")
    assert "The two most important inputs: x4 and x3" in title
    assert "Fixed at typical values: x1 = 5.8, x2 = 3" in title
    assert "Points: the" in title
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x4", "x3")
    assert texts(ax) == ["setosa", "versicolor", "virginica"]


def test_regions_are_the_predictions_of_the_model(model, ax):
    plot_boundaries(model, X, Y, ax, inputs=["x1", "x2"])
    (image,) = ax.images
    winners = np.asarray(image.get_array())
    left, right, bottom, top = image.get_extent()
    typical = np.median(X, axis=0)
    for corner, x, y in ((winners[0, 0], left, bottom), (winners[-1, -1], right, top)):
        row = np.array([[x, y, typical[2], typical[3]]])
        assert model.classes_[corner] == model.predict(row)[0]


def test_only_rows_near_the_plane_are_drawn(model):
    found = slice_model(model, X)
    assert 0 < found.near.sum() <= 0.3 * len(X)
    others = np.abs(X[:, :2] - np.median(X[:, :2], axis=0)).sum(axis=1)
    assert others[found.near].mean() < others[~found.near].mean()
    two = QuadraticLogisticRegression().fit(X[:, 2:], Y)
    assert slice_model(two, X[:, 2:]).near.all()
    assert slice_model(two, X[:, 2:]).title == ""


def test_a_plane_with_one_class_is_moved_between_the_classes(ax):
    cancer = load_breast_cancer()
    model = make_pipeline(StandardScaler(), QuadraticLogisticRegression(C=0.01))
    model.fit(cancer.data, cancer.target)
    plot_boundaries(model, cancer.data, cancer.target, ax)
    assert set(np.unique(np.asarray(ax.images[0].get_array()))) == {0, 1}


def test_no_class_is_painted_over_another(ax):
    points = np.zeros((160, 2))
    labels = np.repeat([0, 1], 80)
    plot_points(points, labels, ax)
    order = [tuple(c.get_facecolor()[0]) for c in ax.collections]
    assert order[0] != order[1]
    assert order[0::2] == [order[0]] * 8
    assert order[1::2] == [order[1]] * 8


def test_categories_are_drawn_as_strips(ax):
    frame, price = shop()
    plot_prediction(
        shop_model(frame, price), frame, price, ax, inputs=["age", "color"], target="price"
    )
    assert [label.get_text() for label in ax.get_yticklabels()] == ["blue", "green", "red"]
    assert "Fixed at typical values: income = " in ax.get_title(loc="left")
    assert ax.figure.axes[1].get_ylabel() == "predicted price"


def test_dependence_shows_the_interaction():
    rng = np.random.default_rng(0)
    data = rng.normal(size=(200, 3))
    model = QuadraticRegressor((), random_state=0).fit(data, data[:, 0] * data[:, 2] + data[:, 1])
    figure = plot_dependence(model, data, target="value")
    first = next(ax for ax in figure.axes if ax.get_legend() is not None)
    assert {first.get_xlabel(), texts(first)[0][:2]} == {"x1", "x3"}
    assert len(first.lines) == 3


def test_calibration_confusion_and_residuals_show_the_rows(model, ax):
    assert "Calibration on 150 rows" in plot_calibration(model, X, Y).axes[0].get_title()
    plot_confusion(model, X, Y, ax)
    counts = [int(text.get_text()) for text in ax.texts]
    assert sum(counts) == 150
    assert counts[0] == 50
    with pytest.raises(ValueError, match=r"y must hold the model's classes, .*Got \['rose'\]"):
        plot_confusion(model, X[:1], ["rose"], ax)
    regressor = QuadraticRegressor((), random_state=0).fit(X[:, :3], X[:, 3])
    figure = plot_residuals(regressor, X[:, :3], X[:, 3], target="width")
    assert figure.axes[0].get_xlabel() == "predicted width"


def test_labels_of_another_type_are_no_classes(ax):
    numbers = np.where(Y == "setosa", 0, 1)
    model = QuadraticClassifier((), max_iter=2, random_state=0).fit(X, numbers.astype(str))
    with pytest.raises(ValueError, match=r"the model's classes, \['0', '1'\]\. Got \[0, 1\]"):
        plot_confusion(model, X, numbers, ax)


@pytest.mark.parametrize("hidden", [(), (4,)])
def test_regions_have_a_legend_and_labels(ax, hidden):
    model = QuadraticClassifier(hidden, random_state=0, max_iter=20).fit(X[:, 2:], Y)
    plot_regions(model, X[:, 2:], Y, ax)
    assert texts(ax) == ["setosa", "versicolor", "virginica"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x1", "x2")


def test_arguments_that_do_not_suit_the_model_are_refused(model, ax):
    with pytest.raises(ValueError, match="inputs must be two of x1, x2, x3, x4"):
        plot_boundaries(model, X, Y, ax, inputs=["x1", "x1"])
    with pytest.raises(ValueError, match="classes must hold two or more of setosa"):
        plot_boundaries(model, X, Y, ax, classes=["setosa"])


def test_bars_of_importances_add_up_to_the_totals(model, ax):
    explanation = explain(model, X)
    assert plot_importances(explanation, ax, top=3) is ax
    widths = np.array([[bar.get_width() for bar in part] for part in ax.containers])
    totals = [100 * one.total for one in explanation.importances[:3]]
    assert np.allclose(widths.sum(axis=0), totals)
    assert [text.get_text() for text in ax.get_yticklabels()] == [
        one.name for one in explanation.importances[:3]
    ]
    assert texts(ax) == ["linear", "squared", "interactions"]


def test_negative_importances_are_drawn_to_the_left_of_zero(ax):
    explanation = explain(QuadraticLogisticRegression().fit(X, Y), X)
    one = replace(explanation.importances[0], linear=0.5, squared=-0.2, interactions=-0.1)
    plot_importances(replace(explanation, importances=[one]), ax)
    bars = [part[0] for part in ax.containers]
    ends = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in bars]
    assert np.allclose(ends, [(0, 50), (0, -20), (-20, -30)])


def test_importances_need_a_single_layer(ax):
    model = QuadraticClassifier((4,), random_state=0, max_iter=20).fit(X, Y)
    with pytest.raises(ValueError, match="After a hidden layer, use plot_dependence"):
        plot_importances(explain(model), ax)


def test_plots_with_several_axes_are_drawn_on_a_given_figure(model):
    regressor = QuadraticRegressor((), random_state=0).fit(X[:, :3], X[:, 3])
    draw = [
        lambda figure: plot_slices(boundary(model, "setosa", "virginica"), figure=figure),
        lambda figure: plot_dependence(model, X, figure=figure),
        lambda figure: plot_eigenvectors(model, (2, 2), figure=figure),
        lambda figure: plot_calibration(model, X, Y, figure=figure),
        lambda figure: plot_residuals(regressor, X[:, :3], X[:, 3], figure=figure),
    ]
    for one in draw:
        figure = Figure(figsize=(7, 3), layout="constrained")
        assert one(figure) is figure
        assert figure.axes
        assert figure.get_size_inches().tolist() == [7, 3]
        whole = Figure()
        part = whole.subfigures(1, 2)[0]
        assert one(part) is part
        assert whole.axes


def test_faults_R6_a_model_with_thousands_of_classes_is_refused(monkeypatch):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = QuadraticClassifier((), max_iter=1).fit(X, np.arange(40) % 2)
    model.classes_ = np.arange(3000)
    monkeypatch.setattr(QuadraticClassifier, "predict_proba", None)  # nothing is computed
    with pytest.raises(ValueError, match=r"at most 200 classes.* has 3000.* classes="):
        plot_boundaries(model, X)


def test_faults_R6_edges_are_drawn_only_between_classes_that_win_somewhere():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(200), size=(20, 30))
    axes = tuple(InputAxis("x", [], np.arange(n, dtype=float), None) for n in (30, 20))
    found = ModelSlice(axes, P, np.zeros((0, 2)), np.zeros(0, dtype=bool), "")
    drawn = []
    ax = SimpleNamespace(contour=lambda x, y, margin, *_, **__: drawn.append(margin))
    _edges(ax, found, P)
    expected = []
    for k in range(200):
        margin = P[:, :, k] - np.delete(P, k, axis=2).max(axis=2)
        if margin.min() < 0 < margin.max():
            expected.append(margin)
    assert len(expected) > 50
    np.testing.assert_array_equal(drawn, expected)


def test_faults_R12_a_multi_label_model_is_refused_with_the_next_step():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    Y = np.column_stack([X[:, 0] > 0, X[:, 1] > 9, X[:, 2] > 0]).astype(int)
    model = QuadraticClassifier((), max_iter=5).fit(X, Y)
    with pytest.raises(
        ValueError, match=r"labels that are not mutually exclusive.*plot_dependence"
    ):
        plot_boundaries(model, X)
    pipeline = make_pipeline(StandardScaler(), model).fit(X, Y)
    with pytest.raises(ValueError, match="labels that are not mutually exclusive"):
        plot_boundaries(pipeline, X)


@pytest.mark.parametrize("plot", [plot_prediction, plot_boundaries])
def test_faults_R12_a_network_is_refused_with_the_next_step(plot):
    net = Network.create(3, [("quadratic", 2, "softmax")], rng=0)
    with pytest.raises(TypeError, match=r"must be a fitted .*Got Network; .*plot_regions"):
        plot(net, np.ones((5, 3)))
