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
    Group,
    Outcome,
    Part,
    Samples,
    Tests,
    Verdict,
    are_enough,
    by_seed,
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
from quadric.apps.paper._statistics import Comparison, holm, paired
from quadric.apps.paper.sweep import Measured, Study, StudyTask
from quadric.datasets import ImageData
from quadric.reference import PARAMETERS

# The early and the late number of epochs after which the accuracy is measured, for each number of
# images.
SIZES = {600: (5, 15), 1200: (3, 8), 6000: (1, 2)}
SEEDS = 60
FEATURES = 16
HEADS = ("linear", "quadratic", "reduced")
CLAIMS = {"quadratic": "cnn-head", "reduced": "cnn-head-reduced"}
SETTINGS: dict[str, Any] = {"rate": 0.003, "batch": 32}


def train(task: StudyTask, settings: Mapping[str, Any], data: ImageData) -> Measured:
    """Train one network and return its test accuracies."""
    from quadric.apps.paper._torch_networks import train_convolutional

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
                for seed in context.all_seeds(SEEDS)
            ],
            context.data,
        )
        for size, epochs in SIZES.items()
        if size <= len(context.data.X_train)
    ]


def run(context: Context) -> Outcome:
    """Train the networks, and compare both heads with the linear one."""
    finished = run_parts(context, parts(context))
    cells = samples(finished)
    tests = {head: comparisons(cells, head) for head in CLAIMS}
    runs = by_seed(finished)
    claims = [claim(runs, head, context.has_mnist and are_enough(cells)) for head in CLAIMS]
    gains = {
        head: " and ".join(f"{test.difference:+.2f}" for test in pooled(runs, head).values())
        for head in CLAIMS
    }
    return Outcome(
        "cnn-head",
        "Study: heads of a convolutional network",
        f"{context.data.name}: two convolutions with stride 2 (8 and 16 channels), a layer of "
        "features with ReLU, and a head with softmax, trained by Adam (learning rate "
        f"{SETTINGS['rate']}, {SETTINGS['batch']} images per step). Only the head differs. {RULE} "
        "The claims are judged by paired t tests over the seeds, early and late, with differences "
        "averaged over the numbers of images.",
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
            f"With a quadratic head, a convolutional network is {gains['quadratic']} percentage "
            "points more accurate than with a linear head, early and late in the training; with a "
            f"reduced head, {gains['reduced']}."
        ],
        headline=headline(
            claims,
            CLAIMS["quadratic"],
            "cnn-head: gain early and late",
            "-",
            gains["quadratic"],
        ),
        descriptions={
            "cnn_head": "Differences with error bars around a line at 0, for each number of images "
            f"and epochs: {_range(tests['quadratic'])} points for the quadratic head, "
            f"{_range(tests['reduced'])} for the reduced head."
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


def pooled(runs: Mapping[Group, Mapping[int, float]], head: str) -> dict[str, Comparison]:
    """Compare a head with the linear one in pairs of runs, early and late, over all sizes.

    For each seed, the difference is averaged over the numbers of images.
    """
    tests = {}
    for when, name in enumerate(("early", "late")):
        pairs = [
            (values, runs[size, features, "linear", measure])
            for (size, features, kind, measure), values in runs.items()
            if kind == head and measure == f"after {SIZES[size][when]} epochs"
        ]
        seeds = set.intersection(*(set(values) for pair in pairs for values in pair))
        tests[name] = paired(
            [sum(a[seed] - b[seed] for a, b in pairs) / len(pairs) for seed in sorted(seeds)]
        )
    return holm(tests)


def claim(runs: Mapping[Group, Mapping[int, float]], head: str, judged: bool) -> Claim:
    """Judge a head by its paired differences from the linear one."""
    tests = pooled(runs, head)
    signs = [test.sign for test in tests.values()]
    return Claim(
        CLAIMS[head],
        "no experiment",
        "; ".join(
            f"{name} {test.difference:+.2f} points (standard error {test.error or 0:.2f}, p "
            f"{test.p:.2g})"
            for name, test in tests.items()
        ),
        Verdict.of(
            set(signs) == {1},
            partly=1 in signs and -1 not in signs,
            judged=judged and any(signs) and set(signs) != {1, -1},
        ),
        method="paired t tests over the seeds, differences averaged over the numbers of images, "
        "Holm over early and late; fixed before the runs (results/rules.md)",
    )


def draw(tests: Mapping[str, Tests]) -> Figure:
    """Draw the differences from the linear head."""
    places = list(tests["quadratic"])
    figure, ax = new_figure(9.0, 3.4, grid="both")
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
    legend_below(figure, ax, 2)
    return figure
