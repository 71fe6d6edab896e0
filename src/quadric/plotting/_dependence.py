"""How predictions depend on the inputs: partial dependence, interactions and importances."""

import itertools
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quadric.checks import Array, check_integer
from quadric.explain import (
    Dependence,
    Explanation,
    InputData,
    background_of,
    dependence,
    dependences,
    grid_of,
    mean_predictions,
    written,
)
from quadric.models import input_names_of
from quadric.plotting._style import BOUNDARY, DASHES, color_of, get_ax, get_figure, plain

MOST_LINES = 7
PARTS = ("linear", "squared", "interactions")  # of an importance


def plot_dependence(model: Any, X: Any, *, target: str = "y", figure: Any = None) -> Figure:
    """Draw how the mean prediction depends on the strongest inputs and interactions.

    The upper plots show the prediction, averaged over the data, if one input is set to a value.
    The lower plots show pairs of inputs. Their lines are parallel if the inputs do not interact.

    Parameters
    ----------
    model : fitted estimator, or Pipeline
        A classifier or regressor.
    X : array of shape (n_samples, n_features) or DataFrame
        Data, in the form that the model accepts.
    target : str
        Name of the predicted number.
    figure : matplotlib.figure.Figure or SubFigure, optional
        Figure to draw on. By default, a new one is created, which pyplot does not know.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    names = [one.inputs[0] for one in dependences(model, X, target=target)[:4]]
    curves = [dependence(model, X, [name], size=25, target=target) for name in names]
    pairs = _strongest_pairs(model, X, names, target)
    rows = 2 if pairs else 1
    figure = get_figure(figure, 3.1 * max(len(names), 2), 3.2 * rows)
    upper, *lower = figure.subfigures(rows, 1, squeeze=False)[:, 0]
    upper.suptitle("Mean prediction if one input is set to a value", fontsize=10)
    axes = upper.subplots(1, len(curves), squeeze=False, sharey=True)[0]
    for ax, curve in zip(axes, curves, strict=True):
        _curve(ax, curve)
    outputs = curves[0].outputs
    axes[0].set_ylabel("probability" if _is_class(outputs[0]) else f"mean {plain(target)}")
    if len(_outputs_shown(curves[0])) > 1:
        axes[-1].legend(fontsize=7)
    elif _is_class(outputs[0]):
        axes[0].set_ylabel(plain(outputs[curves[0].main_output]))
    if lower:
        lower[0].suptitle(
            "Strongest interactions: without one, the lines would be parallel", fontsize=10
        )
        for ax, pair in zip(lower[0].subplots(1, len(pairs), squeeze=False)[0], pairs, strict=True):
            _interaction(ax, pair)
    return figure


def _is_class(output: str) -> bool:
    return output.startswith("p(")


def _outputs_shown(curve: Dependence) -> list[int]:
    """Two classes are complementary, so one of them is drawn."""
    if len(curve.outputs) == 2 and _is_class(curve.outputs[0]):
        return [1]
    return list(range(len(curve.outputs)))[:MOST_LINES]


def _curve(ax: Axes, curve: Dependence) -> None:
    places = _places(ax, curve.inputs[0], curve.grids[0])
    style = "o" if _has_categories(curve.grids[0]) else "-"
    for k in _outputs_shown(curve):
        label = plain(curve.outputs[k])
        ax.plot(places, curve.mean[:, k], style, color=color_of(k), label=label, linewidth=1.8)


def _interaction(ax: Axes, pair: Dependence) -> None:
    places = _places(ax, pair.inputs[0], pair.grids[0])
    categories, k = _has_categories(pair.grids[0]), pair.main_output
    for j, value in enumerate(pair.grids[1]):
        label = f"{plain(pair.inputs[1])} = {plain(written(value))}"
        style = {"marker": "o", "linestyle": ""} if categories else {"linestyle": DASHES[j % 4]}
        ax.plot(places, pair.mean[:, j, k], color=color_of(j), label=label, **style)
    ax.set_ylabel(plain(pair.outputs[k]))
    ax.legend(fontsize=7)


def _has_categories(grid: list[Any]) -> bool:
    return not all(isinstance(value, float) for value in grid)


def _places(ax: Axes, name: str, grid: list[Any]) -> Array:
    ax.set_xlabel(plain(name))
    if not _has_categories(grid):
        return np.array(grid)
    places = np.arange(len(grid), dtype=float)
    ax.set_xticks(places, [plain(written(v)) for v in grid], rotation=30 if len(grid) > 4 else 0)
    ax.set_xlim(-0.5, len(grid) - 0.5)
    return places


def _strongest_pairs(model: Any, X: Any, names: list[str], target: str) -> list[Dependence]:
    """The pairs among `names` whose joint dependence is least like a sum of two functions."""
    pairs = [
        dependence(model, X, pair, size=5, target=target)
        for pair in itertools.combinations(names, 2)
    ]
    # an interaction below a hundredth of the variation of the prediction is not drawn
    pairs = [pair for pair in pairs if _interaction_strength(pair) > 0.01 * pair.mean.std()]
    strongest = sorted(pairs, key=lambda pair: -_interaction_strength(pair))[:2]
    columns = InputData(X, input_names_of(model))
    found = []
    for pair in strongest:
        # a number is on the axis rather than a category; the other input distinguishes the lines
        chosen = [columns.names.index(name) for name in pair.inputs]
        chosen.sort(key=lambda k: columns.numbers(k) is None)
        grids = [grid_of(columns, chosen[0], 25), grid_of(columns, chosen[1], 3)]
        found.append(mean_predictions(model, background_of(columns), chosen, grids, target))
    return found


def _interaction_strength(pair: Dependence) -> float:
    mean = pair.mean
    rest = mean - mean.mean(axis=0, keepdims=True) - mean.mean(axis=1, keepdims=True)
    return float((rest + mean.mean(axis=(0, 1))).std(axis=(0, 1)).max())


def plot_importances(explanation: Explanation, ax: Axes | None = None, *, top: int = 10) -> Axes:
    """Draw the importance of each input as a bar of its linear, squared and interaction terms.

    Parameters
    ----------
    explanation : Explanation
        The result of `explain` for a single layer.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, new axes are created.
    top : int
        Maximum number of inputs to draw, the most important first.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Notes
    -----
    A negative part offsets other terms. It is drawn to the left of zero.
    """
    top = check_integer("top", top, at_least=1)
    if not explanation.importances:
        raise ValueError(
            "explanation must be that of a single layer. After a hidden layer, use plot_dependence."
        )
    shown = explanation.importances[:top]
    ax = get_ax(ax)
    places = np.arange(len(shown))
    right, left = np.zeros(len(shown)), np.zeros(len(shown))
    for k, part in enumerate(PARTS):
        width = np.array([100 * getattr(one, part) for one in shown])
        start = np.where(width > 0, right, left)
        ax.barh(places, width, left=start, height=0.7, color=color_of(k), label=part)
        right += np.maximum(width, 0)
        left += np.minimum(width, 0)
    if left.min() < 0:
        ax.axvline(0, color=BOUNDARY, linewidth=0.8)
    ax.set_yticks(places, [plain(one.name) for one in shown])
    ax.invert_yaxis()
    ax.set_xlabel("share of the variance of z (%)")
    ax.legend(title="terms", fontsize=8, title_fontsize=8, loc="lower right")
    return ax
