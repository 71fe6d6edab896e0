"""Study: whether a network with a quadratic output layer needs fewer hidden layers.

A row compares a network with d - 1 hidden layers and a quadratic or reduced output with a linear
network with d hidden layers of the same width. It counts only if the d-th hidden layer helps the
linear network: otherwise, it can be left out even without quadratic neurons.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from quadric.apps.paper.claims import Claim, Verdict
from quadric.apps.paper.experiments._experiment import NAMES, Context, Outcome, Table, new_figure
from quadric.apps.paper.experiments._statistics import Comparison, Sample, contrast, holm
from quadric.apps.paper.studies._runs import (
    RULE,
    Group,
    Part,
    are_enough,
    estimated_seconds,
    facts_of,
    run_parts,
    samples,
    seeds_of,
    sign_text,
)
from quadric.apps.paper.studies._splits import split
from quadric.apps.paper.sweep import Study, StudyTask
from quadric.apps.paper.sweep._study import Measured
from quadric.datasets import ImageData
from quadric.estimators import QuadraticClassifier
from quadric.plotting import color_of, marker_of
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

Samples = Mapping[Group, Sample]


def train(task: StudyTask, settings: Mapping[str, Any], data: ImageData | None) -> Measured:
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the iterations are a setting
        model.fit(scaler.transform(X), y)
    return (model.score(scaler.transform(X_test), y_test),), len(X) * model.n_iter_


def parameters(name: str, kind: str, depth: int) -> int:
    """Return the number of parameters of a network."""
    _, inputs, classes, width = DATA[name]
    widths = [inputs, *[width] * depth]
    hidden = sum(PARAMETERS["ann"](m, n) for n, m in pairwise(widths))
    outputs = 1 if classes == 2 else classes
    return int(hidden + PARAMETERS[NAMES[kind]](outputs, widths[-1]))


def parts_for(context: Context) -> list[Part]:
    """Return the runs of every data set; MNIST is left out if it is not available."""
    assert context.images is not None
    parts = []
    for name, (size, inputs, classes, width) in DATA.items():
        if name == "mnist" and context.images.name != "mnist":
            continue
        study = Study("fewer-layers", ("accuracy",), train, {**SETTINGS, "data": name})
        tasks = [
            StudyTask(size, width, f"{kind} {depth}", seed, size * (inputs + 30) * classes * 4e-7)
            for kind, depths in DEPTHS.items()
            for depth in depths
            for seed in seeds_of(context, SEEDS)
        ]
        parts.append(Part(study, tasks, context.images if name == "mnist" else None, (name,)))
    return parts


def estimate(context: Context) -> float:
    """Estimate how many seconds all runs take."""
    return estimated_seconds(context, parts_for(context))


def run(context: Context) -> Outcome:
    """Run the tasks that are not in the store, and compare the depths."""
    parts = parts_for(context)
    runs = run_parts(context, parts)
    cells: dict[Group, Sample] = {}
    for (name, _, _, kind_and_depth, _), sample in samples(parts, runs).items():
        kind, depth = kind_and_depth.split()
        cells[name, kind, int(depth)] = sample
    return Outcome(
        "fewer-layers",
        "Study: fewer hidden layers",
        "Linear hidden layers of equal width with tanh, and an output of one kind, trained by "
        "L-BFGS with a penalty chosen on held-out samples. A linear network with d hidden layers "
        "is compared with networks that have d - 1. Equal means not more than "
        f"{MARGIN} points lower (Welch's test against this margin). {RULE}",
        [_table(cells), _comparisons_table(cells)],
        _claims(cells),
        {"fewer_layers": _figure(cells)},
        facts_of(runs),
        {
            "fewer_layers": "Test accuracy for each number of hidden layers: a quadratic output is "
            "compared with the linear network that has one hidden layer more."
        },
    )


def depth_helps(cells: Samples) -> dict[Group, Comparison]:
    """Compare linear networks with d and with d - 1 hidden layers, by (data, d)."""
    return holm(
        {
            (name, d): contrast((1, cells[name, "linear", d]), (-1, cells[name, "linear", d - 1]))
            for name, kind, d in cells
            if kind == "linear" and d > 0
        }
    )


def is_equal(cells: Samples, kind: str) -> dict[Group, Comparison]:
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


def _claims(cells: Samples) -> list[Claim]:
    helps = depth_helps(cells)
    rows = [row for row, test in helps.items() if test.sign == 1]
    reached = {
        kind: [row for row in rows if is_equal(cells, kind)[row].sign == 1]
        for kind in ("quadratic", "reduced")
    }
    shown = "; ".join(
        f"with a {kind} output, one hidden layer fewer is enough in {len(enough)} of {len(rows)}"
        + (f" ({_names(enough)})" if enough else "")
        for kind, enough in reached.items()
    )
    verdict = Verdict.UNKNOWN
    if are_enough(cells) and rows:
        verdict = Verdict.of(len(reached["quadratic"]) == len(rows))
        if verdict is Verdict.FAILS and reached["quadratic"]:
            verdict = Verdict.CONDITIONALLY  # on some of the data sets
    return [
        Claim(
            "fewer-hidden-layers",
            "argued; no experiment",
            f"the last hidden layer helps the linear network in {len(rows)} of {len(helps)} cases: "
            f"{_names(rows)}; {shown}",
            verdict,
            method="tests of equal accuracy with one hidden layer fewer, where this layer helps "
            "the linear network",
        )
    ]


def _names(rows: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{name} with {d} hidden layer{'s' * (d > 1)}" for name, d in rows) or "none"


def _table(cells: Samples) -> Table:
    return Table(
        "fewer_layers",
        "Test accuracy in percent",
        ("data", "output", "hidden layers", "parameters", "mean", "std", "runs"),
        [
            (name, kind, depth, parameters(name, kind, depth), sample.mean, sample.std, sample.runs)
            for (name, kind, depth), sample in cells.items()
        ],
        "Every hidden layer is linear with tanh and has the width given in the study.",
        {"mean": ".2f", "std": ".2f"},
    )


def _comparisons_table(cells: Samples) -> Table:
    helps = depth_helps(cells)
    rows: list[tuple[Any, ...]] = []
    for kind in ("quadratic", "reduced"):
        for (name, d), test in is_equal(cells, kind).items():
            gain = helps[name, d]
            rows.append(
                (
                    name,
                    d,
                    gain.difference,
                    sign_text(gain),
                    kind,
                    test.difference - MARGIN,
                    test.p,
                    test.sign == 1,
                )
            )
    return Table(
        "fewer_layers_comparisons",
        "Networks with one hidden layer fewer",
        (
            "data",
            "linear hidden layers",
            "gain of the last one",
            "this gain is",
            "output of the other",
            "difference",
            "p",
            "equal with one less",
        ),
        rows,
        "Differences in percentage points: the other network minus the linear one. The p values "
        f"are for a difference of -{MARGIN} and corrected by Holm's method.",
        {"gain of the last one": "+.2f", "difference": "+.2f", "p": ".2g"},
    )


def _figure(cells: Samples) -> Figure:
    names = list(dict.fromkeys(key[0] for key in cells))
    lines = math.ceil(len(names) / 3)
    figure = new_figure(8.4, 2.6 * lines + 0.5)
    axes = figure.subplots(lines, 3, squeeze=False).ravel()
    for ax in axes[len(names) :]:
        ax.remove()
    for ax, name in zip(axes, names, strict=False):
        for k, (kind, depths) in enumerate(DEPTHS.items()):
            by_depth = [cells[name, kind, depth] for depth in depths]
            ax.errorbar(
                depths,
                [sample.mean for sample in by_depth],
                [sample.std or 0.0 for sample in by_depth],
                capsize=2,
                color=color_of(k),
                marker=marker_of(k),
                markersize=4,
                linewidth=1.3,
                label=kind,
            )
        ax.set_title(name, fontsize=10)
        ax.set_xticks(range(4))
        ax.set_xlabel("hidden layers")
        ax.grid(alpha=0.25)
    figure.supylabel("test accuracy, %", fontsize=10)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure
