"""XOR with one neuron: the paper's two boundaries for 50 seeds."""

from collections import Counter

import numpy as np
import pytest

from quadric import datasets
from quadric.apps.paper import _xor as xor


@pytest.mark.slow
@pytest.mark.parametrize(
    "seeds", [50, pytest.param(1000, marks=pytest.mark.full)], ids=["50 seeds", "1000 seeds"]
)
@pytest.mark.parametrize("variant", xor.VARIANTS[:2], ids=lambda variant: variant.start)
def test_every_seed_finds_the_papers_solution(variant, seeds):
    trained = [xor.train(variant, seed) for seed in range(seeds)]
    assert all(one.correct == 4 for one in trained)
    assert Counter(one.neuron.kind for one in trained) == {variant.expected: seeds}


def test_training_from_the_identity_stops_when_solved():
    variant = xor.VARIANTS[0]
    assert (variant.learning_rate, variant.stop_when_solved) == (0.01, True)
    trained = xor.train(variant, seed=3)
    assert trained.epochs < variant.epochs
    assert trained.neuron.Q[0, 0] > 0
    assert np.array_equal(trained.neuron.Q, trained.neuron.Q.T)


def test_further_training_turns_the_ellipse_into_a_hyperbola():
    trained = [xor.train(xor.VARIANTS[2], seed) for seed in range(5)]
    assert {one.neuron.kind for one in trained} == {"hyperbola"}


def test_the_same_seed_gives_the_same_bits():
    a, b = (xor.train(xor.VARIANTS[1], seed=4) for _ in range(2))
    assert np.array_equal(a.neuron.Q, b.neuron.Q)
    assert a.neuron.b == b.neuron.b


def test_figure_shows_both_solutions():
    figure = xor.draw(*(xor.train(variant, 0) for variant in xor.VARIANTS[:2]))
    titles = [ax.get_title() for ax in figure.axes]
    assert "hyperbola" in titles[0]
    assert "ellipse" in titles[1]
    assert all("= 0" in title for title in titles)


def test_a_linear_neuron_classifies_at_most_three_points_correctly():
    """Each class is a pair x, -x, so the mean of w'x + b is b for both classes."""
    X, y = datasets.xor()
    for label in (0, 1):
        np.testing.assert_array_equal(X[y == label].mean(axis=0), 0)
    assert max(xor.train_linear(seed) for seed in range(3)) == 3
