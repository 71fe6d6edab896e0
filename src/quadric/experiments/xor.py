"""XOR with a single quadratic neuron: an ellipse from Q = I, a hyperbola from a random Q.

The paper shows one solution of each sort. How it stopped is not said, and it matters: training
on turns every ellipse into a hyperbola, because |q12| outgrows q11. So the neuron that starts
from the identity is stopped as soon as all four points are right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from quadric import datasets
from quadric.arrays import Array
from quadric.geometry import conic_kind
from quadric.network import Network

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["RECIPES", "Recipe", "Row", "draw", "run", "train"]


@dataclass(frozen=True)
class Recipe:
    """How to start and when to stop; `expected` is the kind of boundary that the paper shows."""

    name: str
    start: str
    learning_rate: float
    epochs: int
    stop_when_solved: bool
    expected: str | None


RECIPES = (
    Recipe("identity", "identity", 0.01, 1000, True, "ellipse"),
    Recipe("random", "N(0, 1)", 0.1, 200, False, "hyperbola"),
    # Not the paper's: the same starts, stopped at other moments.
    Recipe("identity, trained on", "identity", 0.01, 2000, False, None),
    Recipe("random, stopped at once", "N(0, 1)", 0.01, 1000, True, None),
)


@dataclass(frozen=True)
class Row:
    """One trained neuron."""

    recipe: Recipe
    seed: int
    epochs: int
    correct: int
    kind: str
    Q: Array
    w: Array
    b: float


def train(recipe: Recipe, seed: int) -> Row:
    """Train one neuron on the four points, one sample at a time."""
    X, y = datasets.xor()
    random = recipe.name.startswith("random")
    net = Network.create(
        2,
        [("quadratic", 1, "logistic")],
        init="normal" if random else "identity",
        scale=1.0 if random else None,
        rng=seed,
    )
    neuron: Any = net.layers[0]
    neuron.W, neuron.b = np.zeros((1, 2)), np.zeros(1)

    def correct() -> int:
        return int(((net.logits(X)[:, 0] > 0) == (y == 1)).sum())

    history = net.fit(
        X,
        y,
        learning_rate=recipe.learning_rate,
        epochs=recipe.epochs,
        rng=seed,
        callback=(lambda epoch: correct() == 4) if recipe.stop_when_solved else None,
    )
    Q, w, b = neuron.Q[0].copy(), neuron.W[0].copy(), float(neuron.b[0])
    return Row(recipe, seed, history.epochs, correct(), conic_kind(Q, w, b), Q, w, b)


def run(
    seeds: int = 50,
    recipes: Sequence[Recipe] = RECIPES,
    progress: Callable[[Row], object] | None = None,
) -> list[Row]:
    """Train each recipe with each seed 0, 1, ..., seeds - 1."""
    rows = []
    for recipe in recipes:
        for seed in range(seeds):
            rows.append(train(recipe, seed))
            if progress is not None:
                progress(rows[-1])
    return rows


def draw(rows: Sequence[Row]) -> Figure:
    """The paper's figure: (a) a hyperbola from a random Q, (b) an ellipse from Q = I."""
    from quadric import plotting

    X, y = datasets.xor()
    panels = []
    for letter, name, start in (("a", "random", "Q at random"), ("b", "identity", "Q = I")):
        row = next(row for row in rows if row.recipe.name == name)
        title = f"({letter}) {start}: {row.kind}"
        panels.append((title, row.Q, row.w, row.b))
    return plotting.conic_panels(panels, X, y)
