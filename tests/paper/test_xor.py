"""The first experiment: what the paper shows, over 50 seeds."""

from collections import Counter

import numpy as np
import pytest

from quadric.paper.experiments import _xor as xor


@pytest.mark.parametrize(
    "seeds", [50, pytest.param(1000, marks=pytest.mark.full)], ids=["50 seeds", "1000 seeds"]
)
@pytest.mark.parametrize("name", ["identity", "random"])
def test_the_papers_two_solutions(name, seeds):
    (recipe,) = [recipe for recipe in xor.RECIPES if recipe.name == name]
    rows = xor.run_rows(seeds, [recipe])
    assert all(row.correct == 4 for row in rows)
    assert Counter(row.kind for row in rows) == {recipe.expected: seeds}


def test_identity_recipe_is_the_notes_one():
    recipe = xor.RECIPES[0]
    assert (recipe.learning_rate, recipe.stop_when_solved) == (0.01, True)
    row = xor.train(recipe, seed=3)
    assert row.epochs < recipe.epochs
    assert row.neuron.Q[0, 0] > 0
    assert np.array_equal(row.neuron.Q, row.neuron.Q.T)


def test_training_on_turns_the_ellipse_into_a_hyperbola():
    rows = xor.run_rows(5, [xor.RECIPES[2]])
    assert {row.kind for row in rows} == {"hyperbola"}


def test_same_seed_same_numbers():
    a, b = (xor.train(xor.RECIPES[1], seed=4) for _ in range(2))
    assert np.array_equal(a.neuron.Q, b.neuron.Q)
    assert a.neuron.b == b.neuron.b


def test_figure_shows_both_solutions():
    figure = xor.draw(xor.run_rows(1, xor.RECIPES[:2]))
    titles = [ax.get_title() for ax in figure.axes]
    assert "hyperbola" in titles[0]
    assert "ellipse" in titles[1]
    assert all("= 0" in title for title in titles)
