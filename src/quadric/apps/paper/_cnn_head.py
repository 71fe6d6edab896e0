"""Study: whether a quadratic or reduced head makes a convolutional network more accurate.

The network has two convolutions, a layer of features and the head. All heads start as the same
linear head (`replace_head`), and see the same images in the same order.
"""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from quadric.apps.paper._experiment import (
    NAMES,
    RULE,
    Claim,
    Context,
    Outcome,
    Part,
    Samples,
    Tests,
    Verdict,
    are_enough,
    comparisons_table,
    differences,
    facts_of,
    headline,
    legend_below,
    line_style,
    new_figure,
    run_parts,
    samples,
    samples_table,
)
from quadric.apps.paper.sweep import Measured, Study, StudyTask
from quadric.datasets import ImageData
from quadric.reference import PARAMETERS

# Epochs after which the accuracy is measured, and seeds, for each number of images.
SIZES = {600: ((5, 15), 40), 1200: ((3, 8), 40), 6000: ((1, 2), 20)}
FEATURES = 16
HEADS = ("linear", "quadratic", "reduced")
CLAIMS = {"quadratic": "cnn-head", "reduced": "cnn-head-reduced"}
SETTINGS: dict[str, Any] = {"rate": 0.003, "batch": 32}


def train(task: StudyTask, settings: Mapping[str, Any], data: ImageData | None) -> Measured:
    """Train one network and return its test accuracies."""
    from quadric.apps.paper._torch_networks import train_convolutional

    assert data is not None
    return train_convolutional(task, settings, data)


def parts(context: Context) -> list[Part]:
    """Return the runs; sizes larger than the data set are left out."""
    return [
        Part(
            Study(
                "cnn-head",
                tuple(f"after {count} epochs" for count in epochs),
                train,
                {**SETTINGS, "epochs": list(epochs)},
            ),
            [
                StudyTask(size, FEATURES, head, seed, size * epochs[-1] * 1.5e-4 + 1)
                for head in HEADS
                for seed in context.all_seeds(seeds)
            ],
            context.data,
        )
        for size, (epochs, seeds) in SIZES.items()
        if size <= len(context.data.X_train)
    ]


def run(context: Context) -> Outcome:
    """Train the networks, and compare both heads with the linear one."""
    finished = run_parts(context, parts(context))
    cells = samples(finished)
    tests = {head: comparisons(cells, head) for head in CLAIMS}
    judged = context.has_mnist and are_enough(cells)
    claims = [claim(cells, head, judged) for head in CLAIMS]
    ranges = {head: _range(mine) for head, mine in tests.items()}
    return Outcome(
        "cnn-head",
        "Study: heads of a convolutional network",
        f"{context.data.name}: two convolutions with stride 2 (8 and 16 channels), a layer of "
        "features with ReLU, and a head with softmax, trained by Adam (learning rate "
        f"{SETTINGS['rate']}, {SETTINGS['batch']} images per step). Only the head differs. {RULE}",
        [
            samples_table(
                "cnn_head",
                "Test accuracy in percent",
                ("images", "features", "head", "parameters of the head", "measured"),
                {
                    (size, features, head, PARAMETERS[NAMES[head]](10, features), measure): sample
                    for (size, features, head, measure), sample in cells.items()
                },
            ),
            comparisons_table(
                "cnn_head_comparisons",
                "Heads compared with the linear head",
                ("head", "images", "features", "measured"),
                {(head, *place): test for head in tests for place, test in tests[head].items()},
                "In percentage points; p values are corrected by Holm's method for each head.",
            ),
        ],
        claims,
        {"cnn_head": draw(tests)},
        facts_of(finished),
        {
            "cnn_head": "Test accuracy of the network with a quadratic or reduced head minus its "
            "accuracy with a linear head, with 2 standard errors."
        },
        [
            f"A convolutional network with a quadratic head is {ranges['quadratic']} percentage "
            "points more accurate than with a linear head; with a reduced head, the difference is "
            f"{ranges['reduced']} points."
        ],
        headline=headline(
            claims, CLAIMS["quadratic"], "cnn-head: gain, in points", "-", ranges["quadratic"]
        ),
        descriptions={
            "cnn_head": "Differences with error bars around a line at 0, for each number of images "
            f"and epochs: {ranges['quadratic']} points for the quadratic head, "
            f"{ranges['reduced']} for the reduced head."
        },
    )


def _range(tests: Tests) -> str:
    found = [test.difference for test in tests.values()]
    return f"{min(found):+.2f} to {max(found):+.2f}"


def comparisons(cells: Samples, head: str) -> Tests:
    """Compare a head with the linear one, by (images, features, measure)."""
    return differences(
        {
            (size, features, measure): (sample, cells[size, features, "linear", measure])
            for (size, features, kind, measure), sample in cells.items()
            if kind == head
        }
    )


def claim(cells: Samples, head: str, judged: bool) -> Claim:
    """Judge a head by the rows in which it differs significantly from the linear one."""
    tests = comparisons(cells, head)
    signs = [test.sign for test in tests.values()]
    better, worse = signs.count(1), signs.count(-1)
    return Claim(
        CLAIMS[head],
        "no experiment",
        f"significantly better in {better}, worse in {worse} of {len(signs)} rows; differences "
        f"from {_range(tests)} points",
        Verdict.of(
            not worse and 2 * better > len(signs),
            partly=not worse,  # in some of the rows
            judged=judged and any(signs),  # differences that are not significant decide nothing
        ),
        method="Welch's test, Holm over all rows. Not judged if no difference is significant",
    )


def draw(tests: Mapping[str, Tests]) -> Figure:
    """Draw the differences from the linear head."""
    places = list(tests["quadratic"])
    figure, ax = new_figure(9.0, 3.4)
    for k, (head, mine) in enumerate(tests.items(), start=1):
        ax.errorbar(
            [i + 0.12 * (2 * k - 3) for i in range(len(mine))],
            [test.difference for test in mine.values()],
            [2 * (test.error or 0.0) for test in mine.values()],
            capsize=2,
            **line_style(k, linestyle="", markersize=5, linewidth=1.5, label=f"{head} head"),
        )
    ax.axhline(0, color="#888888", linewidth=0.8)
    ax.set_xticks(
        range(len(places)),
        [f"{size:,} images\n{measure}" for size, _, measure in places],
        fontsize=7,
        rotation=30,
    )
    ax.set_title(f"{places[0][1]} features", fontsize=10)
    ax.set_ylabel("difference, points")
    ax.grid(alpha=0.25)
    legend_below(figure, ax, 2)
    return figure
