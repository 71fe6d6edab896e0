"""Plots of spectra, truncation curves and similarities."""

import numpy as np
import pytest

from quadric import Network, QuadraticRegressor
from quadric.convert import truncation_scores
from quadric.core import Quadratic
from quadric.explain import explain, similarity, spectrum
from quadric.plotting import plot_eigenvectors, plot_similarity, plot_spectrum, plot_truncation


def network(m=3, n=6, seed=0):
    return Network.create(n, [("quadratic", m, "softmax")], init="normal", scale=1.0, rng=seed)


def test_bars_are_the_eigenvalues_of_each_sign():
    model = network()
    figure, found = plot_spectrum(model, count=2), spectrum(model)
    assert len(figure.axes) == 3
    for k, panel in enumerate(figure.axes):
        heights = [bar.get_height() for bar in panel.patches]
        wanted = [*found.positive[k].eigenvalues[:2], *found.negative[k].eigenvalues[:2]]
        np.testing.assert_allclose(heights, wanted)
        assert panel.get_title() == f"{k}  (rank {found.effective_rank[k]:.1f})"
    figure.canvas.draw()


def test_panels_that_are_omitted_are_counted():
    figure = plot_spectrum(network(m=23, n=2))
    assert len(figure.axes) == 20
    assert "the first 20 of 23" in figure.get_suptitle()


def test_positive_and_negative_eigenvectors_are_separated():
    Q = [np.diag([4.0, 3.0, -2.0, 1.0]), np.diag([1.0, 2.0, 3.0, 4.0])]
    layer = Quadratic(np.zeros((2, 4)), np.zeros(2), Q)
    figure = plot_eigenvectors(layer, (2, 2), 2, separate=True)
    titles = [ax.get_title() for ax in figure.axes]
    assert titles == ["+4.00", "+3.00", "", "-2.00", "", "+4.00", "+3.00", "", "", ""]
    shown = np.asarray(figure.axes[3].images[0].get_array())
    np.testing.assert_allclose(shown, [[0, 0], [1, 0]])
    figure.canvas.draw()
    with pytest.raises(ValueError, match="separate needs a Spectrum or a model"):
        plot_eigenvectors(explain(layer), (2, 2), separate=True)


def test_the_curve_shows_the_scores_by_rank(ax):
    model = network()
    X = np.random.default_rng(0).normal(size=(200, 6))
    y = model.logits(X).argmax(axis=1)
    assert plot_truncation(model, X, y, ax) is ax
    ranks, scores = truncation_scores(model, X, y)
    curve = ax.lines[1]
    np.testing.assert_array_equal(curve.get_xdata(), ranks)
    np.testing.assert_array_equal(curve.get_ydata(), scores)
    assert scores[-1] == 1.0
    enough = ranks[scores >= 0.99][0]
    assert ax.texts[0].get_text().startswith(f"rank {enough}: ")
    assert ax.get_ylabel() == "accuracy"
    ax.figure.canvas.draw()


def test_the_curve_of_a_regressor_shows_r2(ax):
    X = np.random.default_rng(0).normal(size=(50, 3))
    model = QuadraticRegressor((), random_state=0).fit(X, X[:, 0] * X[:, 1])
    assert plot_truncation(model, X, X[:, 0] * X[:, 1], ax).get_ylabel() == "R²"


def test_the_heat_map_shows_the_similarities(ax):
    a, b = network(seed=0), network(m=2, seed=1)
    plot_similarity(a, b, ax)
    np.testing.assert_array_equal(np.asarray(ax.images[0].get_array()), similarity(a, b))
    assert [text.get_text() for text in ax.texts] == [
        f"{round(value, 2) + 0.0:.2f}" for value in similarity(a, b).ravel()
    ]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "1", "2"]
    ax.figure.canvas.draw()
