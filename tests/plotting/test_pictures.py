"""Plots: the drawn curves agree with the geometry."""

import runpy
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quadric import Network, QuadraticClassifier, QuadraticLogisticRegression, datasets
from quadric.explain import boundary, explain, quadrics
from quadric.geometry import Quadric
from quadric.plotting import (
    animate,
    plot_clusters,
    plot_conic,
    plot_eigenvectors,
    plot_history,
    plot_points,
    plot_regions,
    plot_slice,
    plot_slices,
    plot_surface,
)

mpl.use("agg")


@pytest.fixture
def ax():
    figure = Figure()
    ax = figure.subplots()
    yield ax
    figure.canvas.draw()  # the figure can be rendered


def lines(ax):
    return [np.column_stack(line.get_data()) for line in ax.lines]


@pytest.mark.parametrize(
    ("Q", "w", "b", "pieces"),
    [
        ([[1, 0.5], [0.5, 3]], [1, 0], -1, 1),
        ([[1, 0], [0, -2]], [0, 1], -1, 2),
        ([[1, 0], [0, 0]], [0, -1], 0, 1),
        ([[1, 0], [0, -1]], [0, 0], 0, 2),
        ([[0, 0], [0, 0]], [1, 2], 1, 1),
        ([[1, 0], [0, 1]], [0, 0], 0, 1),
        ([[1, 0], [0, 1]], [0, 0], 1, 0),
    ],
)
def test_conics_are_drawn_from_their_geometry(ax, Q, w, b, pieces):
    conic = Quadric(Q, w, b)
    assert plot_conic(conic, ax, label="boundary") is ax
    drawn = lines(ax)
    assert len(drawn) == pieces
    for line in drawn:
        scale = 1 + np.abs(line).max() ** 2
        assert np.abs(conic.value(line)).max() < 1e-9 * scale
    assert [line.get_label() for line in ax.lines].count("boundary") == min(1, pieces)


def test_without_axes_pyplot_creates_them():
    from matplotlib import pyplot

    made = plot_conic(Quadric(np.eye(2), [-20, 0], 99))
    assert made.get_xlim()[0] < 9 < 11 < made.get_xlim()[1]  # the circle is visible
    pyplot.close(made.figure)


@pytest.mark.slow
def test_clusters_have_the_boundaries_of_their_neurons(ax):
    X, y = datasets.clusters(100, rng=0)
    net = Network.create(2, [("quadratic", 6, "logistic")], rng=0)
    net.fit(X, np.eye(6)[y], learning_rate=1e-3, epochs=20, rng=0)
    assert plot_clusters(net, X, y, ax) is ax
    neurons = quadrics(net)
    drawn = [c for c in ax.collections if not c.get_label().startswith("_")]
    points = {c.get_label(): mpl.colors.to_hex(c.get_facecolor()[0]) for c in drawn}
    assert len(points) == 6
    colors = list(points.values())
    assert len(set(colors)) == 6
    assert ax.lines
    for line in ax.lines:  # each line is the boundary of the neuron of the class with its color
        k = colors.index(mpl.colors.to_hex(line.get_color()))
        drawn = np.column_stack(line.get_data())
        assert np.abs(neurons[k].value(drawn)).max() < 1e-9 * np.abs(neurons[k].Q).max() * 1e3


@pytest.mark.parametrize("hidden", [(), (5,)])
def test_regions_agree_with_predictions_and_lines_with_ties(ax, hidden):
    X, y = load_iris(return_X_y=True)
    X = X[:, :2]
    model = make_pipeline(StandardScaler(), QuadraticClassifier(hidden, random_state=0, alpha=1e-2))
    model.fit(X, y)
    plot_regions(model, X, y, ax)
    (image,) = ax.images
    winners = np.asarray(image.get_array())
    assert set(np.unique(winners)) == {0, 1, 2}
    x0, x1, y0, y1 = image.get_extent()
    corner = model.predict([[x0, y0], [x1, y1]])
    assert [winners[0, 0], winners[-1, -1]] == corner.tolist()
    if not hidden:  # on the lines, the two most likely classes tie
        assert lines(ax)
        for line in lines(ax):
            z = np.sort(model.decision_function(line), axis=1)
            assert (z[:, 2] - z[:, 1]).max() < 1e-9


def test_regions_of_one_neuron_end_at_its_boundary_and_named_columns_are_labels(ax):
    X, y = datasets.xor()
    net = Network.create(2, [("quadratic", 1, "logistic")], init="normal", scale=1.0, rng=0)
    net.fit(X, y, learning_rate=0.1, epochs=200)
    plot_regions(net, X, y, ax)
    assert np.abs(net.logits(np.vstack(lines(ax)))).max() < 1e-9
    data = load_iris(as_frame=True)
    named = QuadraticLogisticRegression().fit(data.data.iloc[:, :2], data.target)
    other = plot_regions(named, data.data.iloc[:, :2].to_numpy(), data.target, Figure().subplots())
    assert other.get_xlabel() == "sepal length (cm)"


@pytest.mark.parametrize(
    "diagonal", [(1, 2, 3), (1, 1, -1), (1, -1, -1), (1, 2, 0), (1, -1, 0), (1, 0, 0)]
)
def test_surfaces_are_drawn_on_axes_in_space_only(diagonal):
    figure = Figure()
    ax = figure.add_subplot(projection="3d")
    assert plot_surface(Quadric(np.diag(diagonal), np.zeros(3), -1), ax) is ax
    assert ax.collections
    figure.canvas.draw()
    with pytest.raises(ValueError, match="projection='3d'"):
        plot_surface(Quadric(np.eye(3), np.zeros(3), -1), Figure().subplots())


def test_slices_and_outlines_satisfy_their_equations(ax):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(10, 10))
    q = Quadric(A @ A.T + np.eye(10), rng.normal(size=10), -30)
    X = rng.normal(size=(50, 10))
    plot_slice(q, (2, 7), ax=ax, X=X, outline=True, window=(-9, 9, -9, 9))
    cut, outline = lines(ax)
    full = np.tile(X.mean(axis=0), (len(cut), 1))
    full[:, [2, 7]] = cut
    assert np.abs(q.value(full)).max() < 1e-8
    assert np.abs(q.project([2, 7]).value(outline)).max() < 1e-8
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x3", "x8")
    figure = plot_slices(q, X=X, y=X[:, 0] > 0)
    assert len(figure.axes) == 6
    assert len(plot_slices(q, pairs=[(0, 1), (2, 3)]).axes) == 2
    with pytest.raises(ValueError, match="1 to 12 pairs"):
        plot_slices(q, pairs=[])


@pytest.mark.slow
def test_eigenvectors_are_drawn_as_images():
    X, y = load_digits(return_X_y=True)
    model = QuadraticLogisticRegression(C=0.01, tol=1e-2).fit(X / 16, y)
    figure = plot_eigenvectors(model, (8, 8), count=3)
    axes = figure.axes
    assert len(axes) == 30
    value, vector = (part[0] for part in explain(model).classes[0].eigenvectors(1))
    shown = axes[0].images[0].get_array().ravel()
    assert abs(shown @ vector) == pytest.approx(1.0)
    assert axes[0].get_title() == f"{value:+.2f}"
    figure.canvas.draw()
    with pytest.raises(ValueError, match="with 64 pixels"):
        plot_eigenvectors(model, (28, 28))


def test_history_shows_loss_and_validation_score(ax):
    X, y = datasets.clusters(50, rng=0)
    net = Network.create(2, [("quadratic", 6, "logistic")], rng=0)
    history = net.fit(X, np.eye(6)[y], epochs=7, learning_rate=1e-3, validation=(X, np.eye(6)[y]))
    assert plot_history(history, ax) is ax
    assert ax.lines[0].get_ydata().tolist() == history.loss
    assert ax.figure.axes[1].lines[0].get_ydata().tolist() == history.validation_score
    model = QuadraticClassifier((4,), solver="adam", max_iter=5, early_stopping=True)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert len(plot_history(model, Figure().subplots()).lines[0].get_ydata()) == 5
    with pytest.raises(ValueError, match=r"at least one epoch. Got str"):
        plot_history("loss", ax)


@pytest.mark.slow
def test_animation_has_one_frame_per_epoch(tmp_path):
    X, y = datasets.xor()
    net = Network.create(2, [("quadratic", 1, "logistic")], rng=0)
    frames = []
    net.fit(X, y, epochs=4, learning_rate=0.1, callback=lambda e: frames.append(quadrics(net)))
    path = tmp_path / "learning.gif"
    animate(frames, X, y).save(path, writer="pillow")
    from PIL import Image

    with Image.open(path) as image:
        assert image.n_frames == 4
    with pytest.raises(ValueError, match="at least one list"):
        animate([], X, y)


def test_data_of_the_wrong_shape_is_refused(ax):
    with pytest.raises(ValueError, match="for more features use plot_slices"):
        plot_points(np.zeros((3, 4)), [0, 1, 2], ax)
    with pytest.raises(ValueError, match="window must be given if"):
        plot_regions(Network.create(2, [("quadratic", 2, "softmax")], rng=0), ax=ax)
    with pytest.raises(ValueError, match="take a section first"):
        plot_conic(Quadric(np.eye(3), np.zeros(3), -1), ax)


def test_boundary_of_two_classes_can_be_drawn(ax):
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), QuadraticLogisticRegression()).fit(X, y)
    surface = boundary(model, 1, 2)
    plot_slice(surface, (2, 3), X=X, y=y, ax=ax)
    assert lines(ax)


@pytest.mark.slow
@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "name", ["xor.png", "clusters.png", "surfaces.png", "slices.png", "digits.png", "learning.gif"]
)
def test_the_pictures_of_the_documentation_are_drawn(name, tmp_path, monkeypatch):
    root = Path(__file__).parents[2]
    monkeypatch.setattr("sys.argv", ["pictures.py", str(tmp_path), name])
    namespace = runpy.run_path(str(root / "docs" / "assets" / "pictures.py"), run_name="__main__")
    assert name in namespace["PICTURES"]
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (root / "docs" / "assets" / name).exists()


def test_inverted_axes_stay_inverted(ax):
    ax.plot([0, 1], [0, 1])
    ax.invert_yaxis()
    plot_conic(Quadric(np.eye(2), [-1, -1], 0.4), ax)
    assert ax.yaxis_inverted()
    assert not ax.xaxis_inverted()
    assert len(ax.lines) > 1


def test_one_neuron_has_the_color_of_the_second_class(ax):
    X, y = datasets.xor()
    net = Network.create(2, [("quadratic", 1, "logistic")], init="identity", rng=0)
    net.layers[0].b = [-1.0]  # the unit circle
    plot_clusters(net, X, y, ax)
    assert {line.get_color() for line in ax.lines} == {"#D55E00"}


def test_arguments_that_do_not_fit_the_model_are_refused(ax):
    X, y = load_iris(return_X_y=True)
    model = QuadraticLogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="must have two inputs"):
        plot_regions(model, X[:, :2], y, ax)
    with pytest.raises(ValueError, match="y must hold 150 labels"):
        plot_points(X[:, :2], y[:3], ax)
    two = QuadraticLogisticRegression().fit(X[:, :2], y)
    with pytest.raises(ValueError, match="must hold the model's classes"):
        plot_regions(two, X[:, :2], y.astype(str), ax)
    q = quadrics(model)[0]
    with pytest.raises(ValueError, match="dims must be two coordinates below 4"):
        plot_slice(q, (0, 9), X=X, ax=ax)
    with pytest.raises(ValueError, match=r"X must have shape \(n_samples, 4\)"):
        plot_slices(q, X=X[:, :3])
    with pytest.raises(ValueError, match="extent must be a finite number above 0"):
        plot_surface(q.slice([0, 1, 2], 0), extent=-1)


def test_a_conic_that_no_window_can_show_is_refused():
    far = Quadric(np.eye(2), [0, 0], -1).transform(1.0, [1e20, 0])
    with pytest.raises(ValueError, match=r"cannot be drawn: its center .* Pass window, or rescale"):
        plot_conic(far)
