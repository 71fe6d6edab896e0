"""Plots of certified radii."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from quadric import QuadraticLogisticRegression
from quadric.certify import radius

pytest.importorskip("matplotlib", reason="needs matplotlib")

from matplotlib.figure import Figure

from quadric.plotting import plot_certified_accuracy, plot_flips


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    X = X[:300] / 16
    model = QuadraticLogisticRegression(C=0.1).fit(X, y[:300])
    return radius(model, X), X, y[:300]


def test_the_curve_starts_at_the_accuracy_and_falls(digits):
    found, _, y = digits
    ax = plot_certified_accuracy(found, y, Figure().subplots(), label="digits")
    at, shares = ax.get_lines()[0].get_data()
    assert shares[0] == (found.predicted == y).mean()
    assert (np.diff(shares) <= 0).all()
    middle = at[200]
    assert shares[200] == ((found.predicted == y) & (found.radius >= middle)).mean()
    assert ax.get_ylabel() == "certified accuracy"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["digits"]
    plot_certified_accuracy(found, None, ax)
    assert ax.get_lines()[1].get_ydata()[0] == 1.0
    assert ax.get_lines()[0].get_color() != ax.get_lines()[1].get_color()


def test_the_gallery_shows_images_and_their_flips(digits):
    found, X, _ = digits
    figure = plot_flips(found, X, (8, 8), rows=[3, 5])
    images = [ax.get_images()[0].get_array() for ax in figure.axes]
    np.testing.assert_array_equal(images[0], X[3].reshape(8, 8))
    np.testing.assert_allclose(images[2], found.nearest[3].reshape(8, 8))
    np.testing.assert_allclose(images[5], (found.nearest[5] - X[5]).reshape(8, 8))
    titles = [ax.get_title() for ax in figure.axes]
    assert titles[:4] == [
        str(found.predicted[3]),
        str(found.predicted[5]),
        str(found.becomes[3]),
        str(found.becomes[5]),
    ]
    assert len(plot_flips(found, X, (8, 8), count=10).axes) == 30
    with pytest.raises(ValueError, match=r"X must have shape \(300, 49\)"):
        plot_flips(found, X, (7, 7))


def test_an_image_without_a_flip_has_an_empty_difference(digits):
    found, X, _ = digits
    alone = replace(
        found,
        nearest=np.full_like(found.nearest, np.nan),
        distance=np.full_like(found.distance, np.inf),
        becomes=found.predicted,
    )
    parent = Figure()
    figure = plot_flips(alone, X, (8, 8), rows=[3], figure=parent)  # a warning would be an error
    assert figure is parent
    images = [ax.get_images()[0] for ax in figure.axes]
    assert [image.get_array().mask.all() for image in images] == [False, True, True]
    assert images[2].get_clim() == (-1, 1)
