"""Time and accuracy: the paper's ratios of training times, measured in one run on one core."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from quadric.paper.experiments._experiment import MODELS, Claim, Context, Outcome, Table, new_figure
from quadric.paper.sweep import Recipe, Task, run_task
from quadric.plotting._style import color_of, marker_of

# The paper's seconds and accuracies: 60 000 images, 5 epochs, 30 hidden neurons.
PAPER = {"ann": (1.63, 94.76), "qnn": (5.98, 96.35), "rpqnn": (1.71, 95.22)}

SLIGHTLY = 1.25  # the ratio up to which "slightly longer" is accepted


def run(context: Context) -> Outcome:
    """Train the three networks in turn, three times (five times in a full run)."""
    data, recipe = context.images, Recipe(epochs=(5,))
    assert data is not None
    compared, size = data.name == "mnist", len(data.X_train)
    repeats = 5 if context.full else 3
    results: dict[str, list[Any]] = {model: [] for model in MODELS}
    # in turn, so that a temporary slowdown affects all three
    for done, (seed, model) in enumerate(product(range(repeats), MODELS), start=1):
        results[model].append(run_task(Task(size, 30, MODELS[model], seed), recipe, data))
        context.progress(done, 3 * repeats, f"timing: {model.upper()}")
    seconds = {model: np.array([one.seconds for one in results[model]]) for model in MODELS}
    rows, claims = [], []
    for model, (paper_seconds, paper_accuracy) in PAPER.items():
        paper = paper_seconds / PAPER["ann"][0]
        ratio = float(np.median(seconds[model] / seconds["ann"]))
        median = float(np.median(seconds[model]))
        rows.append(
            (
                model.upper(),
                paper_seconds if compared else None,
                paper if compared else None,
                median,
                ratio,
                paper_accuracy if compared else None,
                float(np.mean([100 * one.accuracies[-1] for one in results[model]])),
                5 * size / median / 1e6,
            )
        )
        if model == "qnn":
            claims.append(
                Claim(
                    "training a QNN takes longer than training an ANN",
                    f"{paper:.2f} times as long",
                    f"{ratio:.2f} times as long in the compiled loop. The ratio depends on how V "
                    "is computed: see the last table of the experiment `complexity`",
                    ratio > 1 if compared else None,
                    paper_holds=True,
                )
            )
        elif model == "rpqnn":
            claims.append(
                Claim(
                    "training an RPQNN takes only slightly longer than training an ANN",
                    f"{paper:.2f} times as long",
                    f"{ratio:.2f} times as long; judged as at most {SLIGHTLY:.2f}",
                    ratio <= SLIGHTLY if compared else None,
                    paper_holds=True,
                )
            )
    columns = ("model", "paper, seconds", "paper, ratio", "seconds", "ratio", "paper, accuracy")
    table = Table(
        "timing",
        f"{size:,} images, 5 epochs, 30 hidden neurons, one core",
        (*columns, "accuracy", "million steps per second"),
        rows,
        "The paper does not name its machine, so ratios are compared. The models are run in turn, "
        "and the ratios are medians.",
        dict.fromkeys((*columns[2:5], "accuracy", "million steps per second"), ".2f"),
    )
    return Outcome(
        "timing",
        "Time and accuracy",
        f"Training time on {data.name} without evaluation, {repeats} runs, with the default recipe."
        + ("" if compared else " This is not MNIST: the paper's times are omitted."),
        [table],
        claims,
        {"timing": draw(rows)},
        {"data": data.name, "repeats": repeats},
    )


def draw(rows: Sequence[tuple[Any, ...]]) -> Figure:
    """Draw accuracy against seconds."""
    figure = new_figure(4.8, 3.4)
    ax = figure.subplots()
    for k, row in enumerate(rows):
        ax.scatter([row[3]], [row[6]], s=70, c=color_of(k), marker=marker_of(k), label=str(row[0]))
    ax.margins(x=0.3, y=0.25)
    ax.set(xlabel="seconds of training", ylabel="test accuracy, %", xlim=(0, None))
    ax.grid(alpha=0.25)
    ax.legend(frameon=False)
    return figure
