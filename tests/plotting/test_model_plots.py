"""Plots of models with any number of inputs."""

import itertools
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from quadric import (
    Network,
    QuadraticClassifier,
    QuadraticLogisticRegression,
    QuadraticRegressor,
)
from quadric.explain import boundary, dependence, explain, strongest_pairs
from quadric.plotting import (
    plot_boundaries,
    plot_calibration,
    plot_confusion,
    plot_dependence,
    plot_eigenvectors,
    plot_importances,
    plot_points,
    plot_precision_recall,
    plot_prediction,
    plot_regions,
    plot_residuals,
    plot_roc,
    plot_slices,
    precision_recall_figure,
    residuals_figure,
    roc_figure,
)
from quadric.plotting._boundaries import InputAxis, ModelSlice, _edges, slice_model
from tests.support.fitted_models import shop, shop_model

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


def test_threshold_curves_are_those_of_scikit_learn(model):
    P = np.array([[0.9, 0.1], [0.6, 0.4], [0.65, 0.35], [0.2, 0.8], [0.7, 0.3], [0.8, 0.2]])
    truth = ["ok", "ok", "fraud", "fraud", "ok", "ok"]
    (ax,) = precision_recall_figure(P[:, ::-1], truth, ["fraud", "ok"]).axes
    assert texts(ax) == ["fraud: average precision 0.833"]  # (1 + 2 / 3) / 2
    curve, share = ax.get_lines()
    assert np.allclose(curve.get_xdata(), [1, 1, 1, 1, 0.5, 0.5, 0])
    assert np.allclose(curve.get_ydata(), [2 / 6, 2 / 5, 2 / 4, 2 / 3, 1 / 2, 1, 1])
    assert share.get_ydata()[0] == pytest.approx(2 / 6)
    (ax,) = roc_figure(P[:, ::-1], truth, ["fraud", "ok"]).axes
    assert texts(ax) == ["fraud: AUC 0.875"]  # 7 of 8 pairs
    assert (ax.get_xlabel(), ax.get_ylabel()) == (
        "false positive rate",
        "recall (true positive rate)",
    )
    for draw in (plot_precision_recall, plot_roc):
        assert [text.split(":")[0] for text in texts(draw(model, X, Y).axes[0])] == [
            "setosa",
            "versicolor",
            "virginica",
        ]
        with pytest.raises(ValueError, match="y must hold at least two of the model's classes"):
            draw(model, X[:5], Y[:5])


def test_labels_of_another_type_are_no_classes(ax):
    numbers = np.where(Y == "setosa", 0, 1)
    model = QuadraticClassifier((), max_iter=2, random_state=0).fit(X, numbers.astype(str))
    with pytest.raises(ValueError, match=r"the model's classes, \['0', '1'\]\. Got \[0, 1\]"):
        plot_confusion(model, X, numbers, ax)


@pytest.mark.parametrize("hidden", [(), (4,)])
def test_regions_have_a_legend_and_labels(ax, hidden):
    model = QuadraticClassifier(hidden, random_state=0).fit(X[:, 2:], Y)
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


def test_importances_of_a_network_need_data_and_have_no_parts(ax):
    model = QuadraticClassifier((4,), random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=r"need data: explain\(model, X\)"):
        plot_importances(explain(model), ax)
    explanation = explain(model, X)
    plot_importances(explanation, ax)
    (bars,) = ax.containers
    totals = [100 * one.total for one in explanation.importances]
    assert np.allclose([bar.get_width() for bar in bars], totals)
    assert sum(totals) == pytest.approx(100)


def test_lines_of_a_classifier_without_interactions_are_parallel():
    """Probabilities of an additive model interact; its log-odds and centered scores do not."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(300, 2))
    z = 2 * data[:, 0] + data[:, 1] ** 2 - 1 + rng.logistic(size=300)
    for y in ((z > 0).astype(int), np.digitize(z, [-1, 1])):
        model = LogisticRegression().fit(np.column_stack([data, data**2])[:, :2], y)
        pair = dependence(model, data, [0, 1], size=5, scores=True)
        assert pair.interaction < 1e-12
        assert dependence(model, data, [0, 1], size=5).interaction > 0.01
        assert strongest_pairs(model, data, ["x1", "x2"]) == []
        figure = plot_dependence(model, data)
        label = "log-odds of 1" if len(np.unique(y)) == 2 else "score"
        assert figure.axes[0].get_ylabel() == label
        k = 0 if len(np.unique(y)) == 2 else pair.main_output
        bent = np.diff(figure.axes[0].lines[k].get_ydata(), 2)
        np.testing.assert_allclose(bent, 0, atol=1e-12)


@pytest.mark.parametrize("plot", [plot_boundaries, plot_prediction])
def test_at_most_2000_points_are_drawn_and_counted(ax, plot):
    rng = np.random.default_rng(0)
    data = rng.normal(size=(12_000, 3))
    y = data[:, 0] ** 2 + data[:, 1]
    if plot is plot_boundaries:
        y = np.where(y > 1, "a", "b")
        model = QuadraticLogisticRegression().fit(data[:500], y[:500])
    else:
        model = QuadraticRegressor((), random_state=0).fit(data[:500], y[:500])
    plot(model, data, y, ax)
    assert sum(
        len(part.get_offsets()) for part in ax.collections if part.get_offsets().size > 2
    ) == (2000)
    text = "Points: a random choice of 2000 of the 3000 of 12000 rows nearest to this plane"
    assert text in ax.get_title(loc="left")
    plot(model, data[:, :3][:1000], y[:1000], ax)
    assert "Points: the 250 of 1000 rows nearest" in ax.get_title(loc="left")


def test_residuals_of_many_rows_are_sampled():
    y = np.random.default_rng(0).normal(size=5000) * 1e5
    figure = residuals_figure(y * 0.9, y)
    assert [len(ax.collections[0].get_offsets()) for ax in figure.axes] == [2000, 2000]
    title = figure.get_suptitle()
    assert title.startswith("2000 of 5000 rows drawn, ")
    assert re.search(r"RMSE \d\d? ?\d{3}$", title)
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert "200 000" in labels


def test_categories_that_are_not_drawn_are_counted(ax):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {"region": [f"r{i}" for i in np.arange(400) % 40], "a": rng.normal(size=400)}
    )
    price = frame["a"] + (np.arange(400) % 40 > 20)
    encode = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["region"]), remainder="passthrough"
    )
    model = make_pipeline(encode, QuadraticRegressor((), random_state=0)).fit(frame, price)
    names = {one.get_xlabel() for one in plot_dependence(model, frame).axes}
    assert "region (12 of 40 values)" in names
    plot_prediction(model, frame, price, ax)
    assert "region (12 of 40)" in {ax.get_xlabel(), ax.get_ylabel()}
    assert "region (12 of 40 values): y = " in str(dependence(model, frame, ["region"]))


def test_long_names_of_categories_do_not_overlap():
    rng = np.random.default_rng(0)
    kinds = ["Entire home or apartment", "Private room", "Shared room"]
    towns = [f"District {k}" for k in range(40)]
    table = pd.DataFrame(
        {"kind": rng.choice(kinds, 300), "town": rng.choice(towns, 300), "x": rng.normal(size=300)}
    )
    codes = OrdinalEncoder().fit_transform(table[["kind", "town"]])
    y = codes[:, 0] * codes[:, 1] + table["x"]
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["kind", "town"]), remainder="passthrough"
    )
    model = make_pipeline(encode, QuadraticRegressor((), alpha=0.1, random_state=0)).fit(table, y)
    figure = plot_dependence(model, table)
    figure.draw_without_rendering()
    several = [ax for ax in figure.axes if len(ax.get_xticklabels()) > 2]
    assert any(ax.get_xticklabels()[0].get_rotation() for ax in several)
    for ax in figure.axes:
        labels = [label for label in ax.get_xticklabels() if label.get_rotation() == 0]
        boxes = sorted((label.get_window_extent() for label in labels), key=lambda box: box.x0)
        assert all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes)), ax.get_xlabel()
        if legend := ax.get_legend():
            assert len(legend.get_texts()) <= 7


def test_dates_are_drawn_at_equal_distances():
    days = [f"2024-{1 + k % 12:02d}-{1 + k // 12:02d}" for k in range(300)]
    table = pd.DataFrame({"day": days, "x": np.arange(300) % 7})
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["day"])),
        QuadraticRegressor((), layer_kinds="linear", alpha=1.0),
    ).fit(table, table["x"])
    (grid,) = dependence(model, table, ["day"]).grids
    assert (len(grid), grid[0], grid[-1]) == (12, "2024-01-01", "2024-12-25")


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
    axes = tuple(InputAxis("x", list(range(n)), has_categories=False) for n in (30, 20))
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
