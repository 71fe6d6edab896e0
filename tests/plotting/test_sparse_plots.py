"""Plots of sparse models show the terms, frequencies and pairs that the model has."""

import numpy as np
import pytest

from quadric import SparseQuadraticRegressor
from quadric.explain import explain

plt = pytest.importorskip("matplotlib.pyplot")
plotting = pytest.importorskip("quadric.plotting")

NAMES = ["width", "height", "depth", "$price$"]


@pytest.fixture(scope="module")
def fitted():
    X = np.random.default_rng(0).normal(size=(200, 4))
    y = 2 * X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3] + X[:, 2] + 0.5 * X[:, 0] ** 2
    model = SparseQuadraticRegressor(alpha=0.1, random_state=0).fit(X, y)
    return model, model.stability(X, y, n_pairs=3), X, y


def test_the_path_names_the_terms_that_enter_first(fitted):
    _, _, X, y = fitted
    path = SparseQuadraticRegressor(n_alphas=10, eps=0.1).fit_path(X, y)
    ax = plotting.plot_path(path, names=NAMES, top=2)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "width·height",
        r"depth·\$price\$",
    ]
    lines = [line for line in ax.get_lines() if len(line.get_xdata()) == 10]
    assert len(lines) == len(path.terms)
    np.testing.assert_array_equal(np.sort(lines[0].get_xdata()), np.sort(path.alphas))
    assert ax.get_xlim()[0] > ax.get_xlim()[1]
    plt.close("all")


def test_frequencies_are_bars(fitted):
    _, found, _, _ = fitted
    ax = plotting.plot_frequencies(found, names=NAMES, top=3)
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(widths, 100 * found.frequencies[:3])
    assert ax.get_yticklabels()[0].get_text() == "width·height" or found.frequencies[1] == 1
    plt.close("all")


def test_pairs_are_lines_with_their_frequencies(fitted):
    model, found, _, _ = fitted
    explanation = explain(model, names=NAMES, top=None)
    ax = plotting.plot_pairs(explanation)
    drawn = [line for line in ax.get_lines() if len(line.get_xdata()) == 2]
    pairs = [row for row in explanation.rows() if row["kind"] == "interaction"]
    assert len(drawn) == len(pairs) == 2
    signs = {plotting.color_of(0): 1, plotting.color_of(1): -1}
    assert sorted(signs[line.get_color()] for line in drawn) == [-1, 1]
    texts = [text.get_text() for text in ax.texts]
    assert f"{100 * found.by_term[(0, 1)]:.0f} %" in texts
    assert "width" in texts
    assert len(plotting.plot_pairs(explanation, top=1).get_lines()) == 1 + 2  # and the legend
    plt.close("all")


def test_a_model_without_terms_is_drawn():
    X = np.random.default_rng(0).normal(size=(50, 3))
    model = SparseQuadraticRegressor(alpha=1e6).fit(X, X[:, 0])
    assert not plotting.plot_pairs(explain(model)).texts
    plt.close("all")
