"""Plots of Shapley values."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from quadric import Network
from quadric.core import Quadratic
from quadric.explain import attribute
from quadric.plotting import plot_interactions, plot_waterfall


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    network = Network(
        [Quadratic(rng.normal(size=(1, 5)), [0.0], rng.normal(size=(1, 5, 5)))], ["identity"]
    )
    return attribute(network, rng.normal(size=(8, 5)))


def test_the_bars_lead_from_the_mean_to_the_score(found):
    ax = Figure().subplots()
    assert plot_waterfall(found, 2, ax, top=3) is ax
    bars = ax.patches
    values, base = found.of()
    assert len(bars) == 4
    assert bars[0].get_x() == pytest.approx(base)
    assert bars[-1].get_x() + bars[-1].get_width() == pytest.approx(base + values[2].sum())
    assert ax.get_yticklabels()[3].get_text() == "2 other inputs"


def test_a_cell_holds_the_whole_interaction_value(found):
    ax = Figure().subplots()
    assert plot_interactions(found, 2, ax, top=4) is ax
    names = [text.get_text() for text in ax.get_xticklabels()]
    drawn, pairs = ax.images[0].get_array(), found.interactions()[2]
    i, j = (found.names.index(name) for name in names[1::-1])
    assert drawn[1, 0] == pytest.approx(2 * pairs[i, j])
    assert drawn.mask[0, 1]
    assert plot_interactions(found, None, Figure().subplots()).images[0].get_array().min() >= 0
