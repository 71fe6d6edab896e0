"""Study: whether a network with a quadratic output layer needs fewer hidden layers.

A row compares a network with d - 1 hidden layers and a quadratic or reduced output with a linear
network with d hidden layers of the same width. It counts only if the d-th hidden layer helps the
linear network: otherwise, it can be left out even without quadratic neurons.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer, load_digits, make_circles, make_moons
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from quadric import QuadraticClassifier, datasets
from quadric.apps.paper._experiment import (
    NAMES,
    RULE,
    Claim,
    Context,
    Outcome,
    Part,
    Samples,
    Table,
    Tests,
    Verdict,
    are_enough,
    differences,
    facts_of,
    fitted,
    headline,
    legend_below,
    line_style,
    new_figure,
    run_parts,
    samples,
    samples_table,
    sign_text,
)
from quadric.apps.paper._statistics import Sample, contrast, holm
from quadric.apps.paper.sweep import Measured, Study, StudyTask
from quadric.checks import Array
from quadric.reference import PARAMETERS

SEEDS = 10
# Training samples, inputs, classes, and the width of every hidden layer.
DATA = {
    "mnist": (1200, 49, 10, 16),
    "digits": (900, 64, 10, 16),
    "breast cancer": (400, 30, 2, 8),
    "six clusters": (600, 2, 6, 8),
    "two moons": (300, 2, 2, 8),
    "two circles": (300, 2, 2, 8),
}
DEPTHS = {"linear": (0, 1, 2, 3), "quadratic": (0, 1, 2), "reduced": (0, 1, 2)}
MARGIN = 0.5  # percentage points by which an accuracy may be lower and still count as equal
SETTINGS: dict[str, Any] = {"max_iter": 100}


def train(
    task: StudyTask, settings: Mapping[str, Any], data: datasets.ImageData | None
) -> Measured:
    """Train a network and return its test accuracy. The estimator chooses the penalty."""
    kind, depth = task.kind.split()
    X, y, X_test, y_test = split(settings["data"], task.size, task.seed, data)
    scaler = StandardScaler().fit(X)
    model = QuadraticClassifier(
        hidden_layer_sizes=(task.hidden,) * int(depth),
        layer_kinds=(*["linear"] * int(depth), kind),
        solver="lbfgs",
        max_iter=settings["max_iter"],
        random_state=task.seed,
    )
    fitted(model, scaler.transform(X), y)
    return (model.score(scaler.transform(X_test), y_test),), len(X) * model.n_iter_


def parameters(name: str, kind: str, depth: int) -> int:
    """Return the number of parameters of a network."""
    _, inputs, classes, width = DATA[name]
    widths = [inputs, *[width] * depth]
    hidden = sum(PARAMETERS["ann"](m, n) for n, m in pairwise(widths))
    return hidden + PARAMETERS[NAMES[kind]](1 if classes == 2 else classes, widths[-1])


def parts(context: Context) -> list[Part]:
    """Return the runs of every data set; MNIST is left out if it is not available."""
    return [
        Part(
            Study("fewer-layers", ("accuracy",), train, {**SETTINGS, "data": name}),
            [
                StudyTask(
                    size, width, f"{kind} {depth}", seed, size * (inputs + 30) * classes * 4e-7
                )
                for kind, depths in DEPTHS.items()
                for depth in depths
                for seed in context.all_seeds(SEEDS)
            ],
            context.images if name == "mnist" else None,
            (name,),
        )
        for name, (size, inputs, classes, width) in DATA.items()
        if name != "mnist" or context.has_mnist
    ]


def run(context: Context) -> Outcome:
    """Train the networks, and compare those with one hidden layer fewer."""
    finished = run_parts(context, parts(context))
    cells = {
        (name, kind.split()[0], int(kind.split()[1])): sample
        for (name, _, _, kind, _), sample in samples(finished).items()
    }
    helps, claims = depth_helps(cells), [claim(cells)]
    rows = [row for row, test in helps.items() if test.sign == 1]
    enough = sum(is_equal(cells, "quadratic")[row].sign == 1 for row in rows)
    names = list(dict.fromkeys(key[0] for key in cells))
    return Outcome(
        "fewer-layers",
        "Study: fewer hidden layers",
        "Linear hidden layers of equal width with tanh, and an output of one kind, trained by "
        "L-BFGS with a penalty chosen on held-out samples. A linear network with d hidden layers "
        "is compared with networks that have d - 1. Equal means not more than "
        f"{MARGIN} points lower (Welch's test against this margin). {RULE}",
        [
            samples_table(
                "fewer_layers",
                "Test accuracy in percent",
                ("data", "output", "hidden layers", "parameters"),
                {(*key, parameters(*key)): sample for key, sample in cells.items()},
                "Every hidden layer is linear with tanh and has the width given in the study.",
            ),
            Table(
                "fewer_layers_comparisons",
                "Networks with one hidden layer fewer",
                (
                    *("data", "linear hidden layers", "gain of the last one", "this gain is"),
                    *("output of the other", "difference", "p", "equal with one less"),
                ),
                [
                    (
                        *(*row, helps[row].difference, sign_text(helps[row])),
                        *(kind, test.difference - MARGIN, test.p, test.sign == 1),
                    )
                    for kind in ("quadratic", "reduced")
                    for row, test in is_equal(cells, kind).items()
                ],
                "Differences in percentage points: the other network minus the linear one. The p "
                f"values are for a difference of -{MARGIN} and corrected by Holm's method.",
                {"gain of the last one": "+.2f", "difference": "+.2f", "p": ".2g"},
            ),
        ],
        claims,
        {"fewer_layers": draw(cells)},
        facts_of(finished),
        {
            "fewer_layers": "Test accuracy for each number of hidden layers: a quadratic output is "
            "compared with the linear network that has one hidden layer more."
        },
        [
            f"The last hidden layer helps a linear network in {len(rows)} of {len(helps)} cases. "
            f"In {enough} of them, a network with a quadratic output is as accurate without it."
        ],
        headline=headline(
            claims,
            "fewer-hidden-layers",
            "fewer-layers: one fewer is enough",
            "argued",
            f"{enough} of {len(rows)} cases",
        ),
        descriptions={
            "fewer_layers": f"A panel for each of {', '.join(names)}, with accuracy against the "
            "number of hidden layers. Without a hidden layer, the quadratic output reaches "
            + ", ".join(f"{cells[name, 'quadratic', 0].mean:.1f}" for name in names)
            + " %, and the linear one "
            + ", ".join(f"{cells[name, 'linear', 0].mean:.1f}" for name in names)
            + " %."
        },
    )


def depth_helps(cells: Samples) -> Tests:
    """Compare linear networks with d and with d - 1 hidden layers, by (data, d)."""
    return differences(
        {
            (name, d): (sample, cells[name, "linear", d - 1])
            for (name, kind, d), sample in cells.items()
            if kind == "linear" and d > 0
        }
    )


def is_equal(cells: Samples, kind: str) -> Tests:
    """Test whether d - 1 hidden layers are less than MARGIN worse than d linear ones.

    The margin is added to the difference, so a positive sign means equal or better.
    """
    margin = Sample(MARGIN, 0.0, MARGIN, MARGIN, 2)
    return holm(
        {
            (name, d): contrast(
                (1, cells[name, kind, d - 1]), (-1, cells[name, "linear", d]), (1, margin)
            )
            for name, other, d in cells
            if other == "linear" and d > 0
        }
    )


def claim(cells: Samples) -> Claim:
    """Judge by the rows in which the last hidden layer helps the linear network."""
    helps = depth_helps(cells)
    rows = [row for row, test in helps.items() if test.sign == 1]
    reached = {
        kind: [row for row in rows if is_equal(cells, kind)[row].sign == 1]
        for kind in ("quadratic", "reduced")
    }
    return Claim(
        "fewer-hidden-layers",
        "argued; no experiment",
        f"the last hidden layer helps the linear network in {len(rows)} of {len(helps)} cases: "
        f"{_names(rows)}; "
        + "; ".join(
            f"with a {kind} output, one hidden layer fewer is enough in {len(enough)} of "
            f"{len(rows)}" + (f" ({_names(enough)})" if enough else "")
            for kind, enough in reached.items()
        ),
        Verdict.of(
            reached["quadratic"] == rows,
            partly=reached["quadratic"],  # on some of the data sets
            judged=rows and are_enough(cells),
        ),
        method="tests of equal accuracy with one hidden layer fewer, where this layer helps "
        "the linear network",
    )


def _names(rows: Sequence[tuple[Any, ...]]) -> str:
    return ", ".join(f"{name} with {d} hidden layer{'s' * (d > 1)}" for name, d in rows) or "none"


def draw(cells: Samples) -> Figure:
    """Draw the accuracies by number of hidden layers, with a panel for each data set."""
    names = list(dict.fromkeys(key[0] for key in cells))
    lines = math.ceil(len(names) / 3)
    figure, axes = new_figure(8.4, 2.6 * lines + 0.5, lines, 3, "both", squeeze=False)
    for ax in axes.flat[len(names) :]:
        ax.remove()
    for ax, name in zip(axes.flat, names, strict=False):
        for k, (kind, depths) in enumerate(DEPTHS.items()):
            ax.errorbar(
                depths,
                [cells[name, kind, depth].mean for depth in depths],
                [cells[name, kind, depth].std or 0.0 for depth in depths],
                capsize=2,
                **line_style(k, label=kind),
            )
        ax.set_title(name, fontsize=10)
        ax.set(xticks=range(4), xlabel="hidden layers")
    figure.supylabel("test accuracy, %", fontsize=10)
    legend_below(figure, axes[0, 0], 3)
    return figure


# ---- the data sets: a seed determines the split into training and test samples -------------------

Split = tuple[Array, Array, Array, Array]  # X_train, y_train, X_test, y_test
PLANE_TEST = 3000  # number of test points in the plane


def split(name: str, size: int, seed: int, data: datasets.ImageData | None) -> Split:
    """Return `size` training samples and the test samples of a data set.

    The images of MNIST are made small: each pixel is the mean of 4 x 4 pixels.
    """
    if name != "mnist":
        return SPLITS[name](size, seed)
    assert data is not None
    rows = np.random.default_rng(seed).permutation(len(data.X_train))[:size]
    height, width = data.shape
    X_train, X_test = (
        pixels.reshape(-1, height // 4, 4, width // 4, 4)
        .mean(axis=(2, 4), dtype=np.float32)
        .reshape(len(pixels), -1)
        / data.largest
        for pixels in (data.X_train[rows], data.X_test)
    )
    return X_train, data.y_train[rows], X_test, data.y_test


def _clusters(size: int, seed: int) -> Split:
    rng = np.random.default_rng(seed)
    return *datasets.clusters(size // 6, rng), *datasets.clusters(PLANE_TEST // 6, rng)


def _plane(make: Callable[..., tuple[Array, Array]], size: int, seed: int, **options: Any) -> Split:
    X, y = make(size + PLANE_TEST, random_state=seed, **options)
    return X[:size], y[:size], X[size:], y[size:]


def _part_of(load: Callable[..., tuple[Array, Array]], size: int, seed: int) -> Split:
    X, y = load(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, train_size=size, stratify=y, random_state=seed
    )
    return X_train, y_train, X_test, y_test


# The data sets other than MNIST.
SPLITS: dict[str, Callable[[int, int], Split]] = {
    "digits": partial(_part_of, load_digits),
    "breast cancer": partial(_part_of, load_breast_cancer),
    "six clusters": _clusters,
    "two moons": partial(_plane, make_moons, noise=0.2),
    "two circles": partial(_plane, make_circles, noise=0.1, factor=0.5),
}
