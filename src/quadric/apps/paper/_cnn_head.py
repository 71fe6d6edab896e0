"""Study: whether a quadratic or reduced head makes a convolutional network more accurate.

The network has two convolutions, a layer of features and the head. All heads start as the same
linear head (`replace_head`), and see the same images in the same order.
"""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from quadric.apps.paper._claims import Claim, Verdict
from quadric.apps.paper._comparison import (
    RULE,
    Compared,
    Part,
    Results,
    Samples,
    Tests,
    are_enough,
    comparisons_table,
    differences,
    samples_table,
    seeds_of,
)
from quadric.apps.paper._experiment import (
    NAMES,
    Context,
    Table,
    legend_below,
    line_style,
    new_figure,
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
    parts = []
    for size, (epochs, seeds) in SIZES.items():
        if size <= len(context.data.X_train):
            measures = tuple(f"after {count} epochs" for count in epochs)
            study = Study("cnn-head", measures, train, {**SETTINGS, "epochs": list(epochs)})
            tasks = [
                StudyTask(size, FEATURES, head, seed, size * epochs[-1] * 1.5e-4 + 1)
                for head in HEADS
                for seed in seeds_of(context, seeds)
            ]
            parts.append(Part(study, tasks, context.data))
    return parts


def summary(context: Context) -> str:
    """Return the method and the data."""
    return (
        f"{context.data.name}: two convolutions with stride 2 (8 and 16 channels), a layer of "
        "features with ReLU, and a head with softmax, trained by Adam (learning rate "
        f"{SETTINGS['rate']}, {SETTINGS['batch']} images per step). Only the head differs. {RULE}"
    )


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
    tests = comparisons(cells, head).values()
    signs = [test.sign for test in tests]
    better, worse = signs.count(1), signs.count(-1)
    if not judged or not (better or worse):
        verdict = Verdict.UNKNOWN  # differences that are not significant decide nothing
    elif worse or 2 * better > len(signs):
        verdict = Verdict.of(not worse)
    else:
        verdict = Verdict.CONDITIONALLY  # in some of the rows
    return Claim(
        CLAIMS[head],
        "no experiment",
        f"significantly better in {better}, worse in {worse} of {len(signs)} rows; differences "
        f"from {min(test.difference for test in tests):+.2f} to "
        f"{max(test.difference for test in tests):+.2f} points",
        verdict,
        method="Welch's test, Holm over all rows. Not judged if no difference is significant",
    )


def claims(results: Results) -> list[Claim]:
    """Judge both heads."""
    judged = results.context.data.name == "mnist" and are_enough(results.cells)
    return [claim(results.cells, head, judged) for head in CLAIMS]


def tables(results: Results) -> list[Table]:
    """Return the accuracies, and the comparisons with the linear head."""
    return [
        samples_table(
            "cnn_head",
            "Test accuracy in percent",
            ("images", "features", "head", "parameters of the head", "measured"),
            {
                (size, features, head, PARAMETERS[NAMES[head]](10, features), measure): sample
                for (size, features, head, measure), sample in results.cells.items()
            },
        ),
        comparisons_table(
            "cnn_head_comparisons",
            "Heads compared with the linear head",
            ("head", "images", "features", "measured"),
            {
                (head, *place): test
                for head in CLAIMS
                for place, test in comparisons(results.cells, head).items()
            },
            "In percentage points; p values are corrected by Holm's method for each head.",
        ),
    ]


def draw(cells: Samples) -> Figure:
    """Draw the differences from the linear head."""
    tests = {head: comparisons(cells, head) for head in CLAIMS}
    places = list(tests["quadratic"])
    figure = new_figure(9.0, 3.4)
    ax = figure.subplots()
    for k, (head, mine) in enumerate(tests.items(), start=1):
        ax.errorbar(
            [i + 0.12 * (2 * k - 3) for i in range(len(mine))],
            [test.difference for test in mine.values()],
            [2 * (test.error or 0.0) for test in mine.values()],
            capsize=2,
            **line_style(k, linestyle="", markersize=5, linewidth=1.5, label=f"{head} head"),
        )
    ax.axhline(0, color="#888888", linewidth=0.8)
    labels = [f"{size:,} images\n{measure}" for size, _, measure in places]
    ax.set_xticks(range(len(labels)), labels, fontsize=7, rotation=30)
    ax.set_title(f"{places[0][1]} features", fontsize=10)
    ax.grid(alpha=0.25)
    ax.set_ylabel("difference, points")
    legend_below(figure, ax, 2)
    return figure


STUDY = Compared(
    "cnn-head",
    "Study: heads of a convolutional network",
    summary,
    parts,
    tables,
    lambda results: {
        "cnn_head": (
            draw(results.cells),
            "Test accuracy of the network with a quadratic or reduced head minus its accuracy with "
            "a linear head, with 2 standard errors.",
        )
    },
    claims,
    needs_torch="The study cnn-head",
)
