"""Study: whether the features of wide hidden layers become linearly separable.

784 - h - 10 networks are trained with the paper's recipe. Their hidden layer is then kept fixed,
and a linear and a quadratic layer are fitted to its outputs (the features).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.preprocessing import StandardScaler

from quadric import Network, QuadraticClassifier
from quadric.apps.paper._experiment import (
    RULE,
    Claim,
    Context,
    Group,
    Outcome,
    Part,
    Samples,
    Table,
    Tests,
    Verdict,
    are_enough,
    by_seed,
    comparisons_table,
    differences,
    facts_of,
    fitted,
    headline,
    legend_below,
    line_style,
    new_figure,
    run_parts,
    samples,
)
from quadric.apps.paper._statistics import contrast, holm
from quadric.apps.paper.sweep import (
    Measured,
    Recipe,
    Study,
    StudyTask,
    Task,
    fit_network,
    initial_network,
    prepare,
)
from quadric.checks import Array, Matrix
from quadric.datasets import ImageData

SEEDS = 10
SIZE, WIDTHS = 1200, (10, 20, 30, 50, 100, 200, 300)
KINDS = ("linear", "quadratic")
MEASURES = (
    "linear, training",
    "linear, test",
    "quadratic, training",
    "quadratic, test",
    "untrained, linear, training",
)
SEPARATING = (MEASURES[0], MEASURES[4])  # 100 % if a linear layer separates the training images
# Almost no penalty to look for a separating layer, and the penalty of the layers that are tested.
SETTINGS: dict[str, Any] = {"epochs": 20, "weakest": 1e-3, "alpha": 10.0, "max_iter": 60}


def train(task: StudyTask, settings: Mapping[str, Any], data: ImageData) -> Measured:
    """Train a network, and fit linear and quadratic layers to its features."""
    recipe = Recipe(epochs=(settings["epochs"],))
    sweep_task = Task(task.size, task.hidden, task.kind, task.seed)
    ready = prepare(data, recipe.dtype)
    net, X, Y = initial_network(sweep_task, recipe, ready)
    y = Y.argmax(axis=1)
    untrained = _features(net, recipe, X)[0]
    history = fit_network(net, X, Y, sweep_task, recipe)
    F, F_test = _features(net, recipe, X, ready.test)
    linear, quadratic = (_fitted(kind, F, y, settings["alpha"], settings) for kind in KINDS)
    return (
        _fitted("linear", F, y, settings["weakest"], settings).score(F, y),
        linear.score(F_test, ready.labels),
        quadratic.score(F, y),
        quadratic.score(F_test, ready.labels),
        _fitted("linear", untrained, y, settings["weakest"], settings).score(untrained, y),
    ), history.n_samples * history.epochs


def _features(net: Network, recipe: Recipe, *images: Matrix) -> list[Array]:
    """Return the outputs of the hidden layer for each set of images, standardized by the first set.

    Standardizing does not affect separability.
    """
    hidden = Network(net.layers[:1], net.activations[:1])
    outputs = [hidden.forward(X, offset=recipe.offset) for X in images]
    scaler = StandardScaler().fit(outputs[0])
    return [scaler.transform(features) for features in outputs]


def _fitted(
    kind: str, F: Array, y: Array, alpha: float, settings: Mapping[str, Any]
) -> QuadraticClassifier:
    return fitted(
        QuadraticClassifier(
            hidden_layer_sizes=(),
            layer_kinds=kind,
            solver="lbfgs",
            alpha=alpha,
            max_iter=settings["max_iter"],
            random_state=0,
        ),
        F,
        y,
    )


def parts(context: Context) -> list[Part]:
    """Return the runs."""
    size = min(SIZE, len(context.data.X_train))
    return [
        Part(
            Study("wide-layers", MEASURES, train, SETTINGS),
            [
                StudyTask(size, width, kind, seed, size * (width**2 * 4e-8 + 3e-4))
                for width in WIDTHS
                for kind in KINDS
                for seed in context.all_seeds(SEEDS)
            ],
            context.data,
        )
    ]


def run(context: Context) -> Outcome:
    """Train the networks, and compare the layers that are fitted to their features."""
    finished = run_parts(context, parts(context))
    cells = samples(finished)
    claims, tests = [claim(cells, context.has_mnist)], gains(cells)
    trained, untrained = (_first_separable(cells, measure) for measure in SEPARATING)
    low, high = (
        np.mean([test.difference for key, test in tests.items() if key[1] == width])
        for width in (WIDTHS[0], WIDTHS[-1])
    )
    return Outcome(
        "wide-layers",
        "Study: features of wide hidden layers",
        f"{context.data.X_train.shape[1]} - h - 10 networks of {context.data.name}, "
        f"{SETTINGS['epochs']} epochs with the paper's recipe. The trained hidden layer is kept, "
        "and a linear and a quadratic layer with softmax are fitted to its outputs by L-BFGS. A "
        "linear layer with almost no penalty that has all training images right proves that they "
        "are separable. The layers that are tested have the penalty alpha = "
        f"{SETTINGS['alpha']:g}. {RULE}",
        [
            _table(cells, by_seed(finished)),
            comparisons_table(
                "wide_layers_gains",
                "Gain of a quadratic layer over a linear one on the same features",
                ("images", "h", "output"),
                tests,
                "In percentage points of test accuracy; p values are corrected by Holm's method.",
                "gain",
                "quadratic is",
            ),
        ],
        claims,
        {"wide_layers": draw(cells)},
        facts_of(finished),
        {
            "wide_layers": "The share of the training images that a linear layer has right rises "
            "with the number of hidden neurons, also before training; the right panel shows how "
            "much more accurate a quadratic layer is than a linear one on the same features."
        },
        [
            f"A linear layer separates the training images by the features of a trained hidden "
            f"layer {_from(trained)}, and of an untrained one {_from(untrained)}. The gain of a "
            f"quadratic layer on these features is {low:+.2f} points with {WIDTHS[0]} hidden "
            f"neurons and {high:+.2f} with {WIDTHS[-1]}."
        ],
        headline=headline(
            claims,
            "wide-layers-separable",
            "wide-layers: features separable",
            "with many",
            _from(trained),
        ),
        descriptions={
            "wide_layers": "Left: the share of training images that are right rises to 100 % "
            f"{_from(trained)}, and with the untrained layer (dashed) {_from(untrained)}. Right: "
            f"the gain of a quadratic layer, with error bars, from {low:+.2f} points with "
            f"{WIDTHS[0]} hidden neurons to {high:+.2f} with {WIDTHS[-1]}."
        },
    )


def gains(cells: Samples) -> Tests:
    """Compare quadratic and linear layers on the same features, by (size, h, kind)."""
    return differences(
        {
            place: (cells[*place, "quadratic, test"], cells[*place, "linear, test"])
            for place in dict.fromkeys(key[:3] for key in cells)
        }
    )


def falls(cells: Samples) -> Tests:
    """Compare this gain at the smallest width with that at the largest, by (size, kind)."""
    widths = sorted({key[1] for key in cells})
    low, high = widths[0], widths[-1]
    return holm(
        {
            (size, kind): contrast(
                (1, cells[size, low, kind, "quadratic, test"]),
                (-1, cells[size, low, kind, "linear, test"]),
                (-1, cells[size, high, kind, "quadratic, test"]),
                (1, cells[size, high, kind, "linear, test"]),
            )
            for size, kind in dict.fromkeys((key[0], key[2]) for key in cells)
        }
    )


def _first_separable(cells: Samples, measure: str) -> int | None:
    """Return the smallest width from which a linear layer separates the images of every run.

    `measure` is one of `SEPARATING`.
    """
    others = [key[1] for key, sample in cells.items() if key[3] == measure and sample.worst < 100]
    return min((key[1] for key in cells if key[1] > max(others, default=0)), default=None)


def claim(cells: Samples, compared: bool) -> Claim:
    """Judge separability, and whether the gain of a quadratic layer falls and vanishes."""
    size, widths = next(iter(cells))[0], sorted({key[1] for key in cells})
    trained, untrained = (_first_separable(cells, measure) for measure in SEPARATING)
    tests, changes = gains(cells), falls(cells)
    at_the_end = [test for key, test in tests.items() if key[1] == widths[-1]]
    lower = sum(test.sign == 1 for test in changes.values())
    better = sum(test.sign == 1 for test in at_the_end)
    means = ", ".join(
        f"{np.mean([test.difference for key, test in tests.items() if key[1] == h]):+.2f}"
        for h in widths
    )
    falling = lower == len(changes)
    learned = trained and (untrained is None or trained < untrained)
    return Claim(
        "wide-layers-separable",
        "inferred from Table IV; no features are examined",
        f"{size} images: a linear layer separates the training images in every run "
        f"{_from(trained)}, and by the features of the untrained layer {_from(untrained)}. Gain of "
        f"a quadratic layer for h = {', '.join(map(str, widths))} with {size} images: {means} "
        f"points. It is significantly smaller at h = {widths[-1]} than at h = {widths[0]} in "
        f"{lower} of {len(changes)} cases, and significantly above 0 there in {better} of "
        f"{len(at_the_end)}",
        Verdict.of(
            learned and falling and not better,
            partly=trained and (falling or not better),
            judged=compared and are_enough(cells),
        ),
        method="linear separability of the features of every run; Welch's test, Holm over all "
        "cases. With a condition: untrained features are separable at the same width, or the gain "
        "of a quadratic layer does not fall in all cases, or does not vanish. The fits are not "
        "tuned, and the widest quadratic layer has not converged",
    )


def _table(cells: Samples, runs: Mapping[Group, Mapping[int, float]]) -> Table:
    rows = []
    for place in dict.fromkeys(key[:3] for key in cells):
        fitted = [cells[*place, name] for name in MEASURES]
        numbers = [number for sample in fitted[:4] for number in (sample.mean, sample.std)]
        separable = [[*runs[*place, measure].values()].count(100) for measure in SEPARATING]
        rows.append((*place, *numbers, fitted[4].mean, fitted[0].runs, *separable))
    columns = [f"{name}, {statistic}" for name in MEASURES for statistic in ("mean", "std")][:-1]
    return Table(
        "wide_layers",
        "Layers fitted to the features, in percent",
        (
            *("images", "h", "output"),
            *columns,
            *("runs", "separable runs", "separable runs, untrained"),
        ),
        rows,
        "The output is that of the network that was trained. Untrained: the same hidden layer "
        "before training, with N(0, 0.006²).",
        dict.fromkeys(columns, ".2f"),
    )


def _from(width: int | None) -> str:
    return f"from h = {width}" if width else "at no h"


def draw(cells: Samples) -> Figure:
    """Draw how many images are right, and the gain of a quadratic layer, by width."""
    figure, (left, right) = new_figure(9.0, 3.6, 1, 2, grid="both")
    tests, size = gains(cells), next(iter(cells))[0]
    widths = [key[1] for key in tests if key[2] == KINDS[0]]
    for k, kind in enumerate(KINDS):
        style = line_style(k, label=f"{size} images, {kind} output")
        left.plot(widths, [cells[size, h, kind, MEASURES[0]].mean for h in widths], **style)
        if kind == KINDS[0]:  # before training, the features do not depend on the output
            left.plot(
                widths,
                [cells[size, h, kind, MEASURES[4]].mean for h in widths],
                **line_style(k, linestyle="--", label=f"{size} images, before training"),
            )
        right.errorbar(
            widths,
            [tests[size, h, kind].difference for h in widths],
            [2 * (tests[size, h, kind].error or 0.0) for h in widths],
            capsize=2,
            **style,
        )
    right.axhline(0, color="#888888", linewidth=0.8)
    for ax, label in (
        (left, "training images right, linear layer, %"),
        (right, "gain of a quadratic layer, points"),
    ):
        ax.set(xscale="log", xticks=WIDTHS, xticklabels=WIDTHS)
        ax.set(xlabel="hidden neurons h", ylabel=label)
        ax.minorticks_off()
    legend_below(figure, left, 3)
    return figure
