"""Study: whether a quadratic or reduced head makes a convolutional network more accurate.

The network has two convolutions, a layer of features and the head. All heads start as the same
linear head (`replace_head`), and see the same images in the same order.
"""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

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
from quadric.apps.paper.sweep import Study, StudyTask
from quadric.apps.paper.sweep._study import Measured
from quadric.datasets import ImageData
from quadric.plotting import color_of, marker_of
from quadric.reference import PARAMETERS
from quadric.utils import require

# Epochs after which the accuracy is measured, and seeds, for each number of images.
SIZES = {600: ((5, 15), 40), 1200: ((3, 8), 40), 6000: ((1, 2), 20)}
FEATURES = (16,)
HEADS = ("linear", "quadratic", "reduced")
SETTINGS: dict[str, Any] = {"rate": 0.003, "batch": 32}

Samples = Mapping[Group, Sample]


def train(task: StudyTask, settings: Mapping[str, Any], data: ImageData | None) -> Measured:
    """Train one network and return its test accuracies."""
    from quadric.apps.paper.studies._convolutional import train as train_network

    assert data is not None
    accuracies, steps = train_network(task, settings, data)
    return tuple(accuracies), steps


def parts_for(context: Context) -> list[Part]:
    """Return the runs; sizes larger than the data set are left out."""
    assert context.images is not None
    parts = []
    for size, (epochs, seeds) in SIZES.items():
        if size <= len(context.images.X_train):
            study = Study(
                "cnn-head",
                tuple(f"after {count} epochs" for count in epochs),
                train,
                {**SETTINGS, "epochs": list(epochs)},
            )
            tasks = [
                StudyTask(size, features, head, seed, size * epochs[-1] * 1.5e-4 + 1)
                for features in FEATURES
                for head in HEADS
                for seed in seeds_of(context, seeds)
            ]
            parts.append(Part(study, tasks, context.images))
    return parts


def estimate(context: Context) -> float:
    """Estimate how many seconds all runs take."""
    return estimated_seconds(context, parts_for(context))


def run(context: Context) -> Outcome:
    """Run the tasks that are not in the store, and compare the heads."""
    require("torch", extra="torch", by="The study cnn-head")
    assert context.images is not None
    parts = parts_for(context)
    runs = run_parts(context, parts)
    cells = samples(parts, runs)
    judged = context.images.name == "mnist" and are_enough(cells)
    return Outcome(
        "cnn-head",
        "Study: heads of a convolutional network",
        f"{context.images.name}: two convolutions with stride 2 (8 and 16 channels), a layer of "
        "features with ReLU, and a head with softmax, trained by Adam (learning rate "
        f"{SETTINGS['rate']}, {SETTINGS['batch']} images per step). Only the head differs. {RULE}",
        [_table(cells), _tests_table(cells)],
        [_claim(cells, kind, judged) for kind in HEADS[1:]],
        {"cnn_head": _figure(cells)},
        facts_of(runs),
        {
            "cnn_head": "Test accuracy of the network with a quadratic or reduced head minus its "
            "accuracy with a linear head, with 2 standard errors."
        },
    )


def comparisons(cells: Samples, head: str) -> dict[Group, Comparison]:
    """Compare a head with the linear one, by (images, features, measure)."""
    return holm(
        {
            (size, features, measure): contrast(
                (1, cells[size, features, head, measure]),
                (-1, cells[size, features, "linear", measure]),
            )
            for size, features, kind, measure in cells
            if kind == head
        }
    )


def _claim(cells: Samples, head: str, judged: bool) -> Claim:
    tests = comparisons(cells, head)
    signs = [test.sign for test in tests.values()]
    better, worse = signs.count(1), signs.count(-1)
    differences = [test.difference for test in tests.values()]
    if not judged or not (better or worse):
        verdict = Verdict.UNKNOWN  # differences that are not significant decide nothing
    elif worse or 2 * better > len(signs):
        verdict = Verdict.of(not worse)
    else:
        verdict = Verdict.CONDITIONALLY  # in some of the rows
    return Claim(
        "cnn-head" if head == "quadratic" else "cnn-head-reduced",
        "no experiment",
        f"significantly better in {better}, worse in {worse} of {len(signs)} rows; differences "
        f"from {min(differences):+.2f} to {max(differences):+.2f} points",
        verdict,
        method="Welch's test, Holm over all rows. Not judged if no difference is significant",
    )


def _table(cells: Samples) -> Table:
    return Table(
        "cnn_head",
        "Test accuracy in percent",
        ("images", "features", "head", "parameters of the head", "measured", "mean", "std", "runs"),
        [
            (
                *(size, features, head, PARAMETERS[NAMES[head]](10, features), measure),
                *(sample.mean, sample.std, sample.runs),
            )
            for (size, features, head, measure), sample in cells.items()
        ],
        "",
        {"mean": ".2f", "std": ".2f"},
    )


def _tests_table(cells: Samples) -> Table:
    return Table(
        "cnn_head_comparisons",
        "Heads compared with the linear head",
        ("head", "images", "features", "measured", "difference", "standard error", "p", "is"),
        [
            (head, *place, test.difference, test.error, test.p, sign_text(test))
            for head in HEADS[1:]
            for place, test in comparisons(cells, head).items()
        ],
        "In percentage points; p values are corrected by Holm's method for each head.",
        {"difference": "+.2f", "standard error": ".2f", "p": ".2g"},
    )


def _figure(cells: Samples) -> Figure:
    places = list(comparisons(cells, "quadratic"))
    labels = [
        f"{size:,} images\n{measure}"
        for size, measure in dict.fromkeys((size, measure) for size, _, measure in places)
    ]
    widths = sorted({features for _, features, _ in places})
    figure = new_figure(9.0, 3.4)
    axes = figure.subplots(1, len(widths), sharey=True, squeeze=False)[0]
    for ax, width in zip(axes, widths, strict=True):
        for k, head in enumerate(HEADS[1:], start=1):
            tests = [test for key, test in comparisons(cells, head).items() if key[1] == width]
            ax.errorbar(
                [i + 0.12 * (2 * k - 3) for i in range(len(tests))],
                [test.difference for test in tests],
                [2 * (test.error or 0.0) for test in tests],
                linestyle="",
                capsize=2,
                color=color_of(k),
                marker=marker_of(k),
                markersize=5,
                label=f"{head} head",
            )
        ax.axhline(0, color="#888888", linewidth=0.8)
        ax.set_xticks(range(len(labels)), labels, fontsize=7, rotation=30)
        ax.set_title(f"{width} features", fontsize=10)
        ax.grid(alpha=0.25)
    axes[0].set_ylabel("difference, points")
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False)
    return figure
