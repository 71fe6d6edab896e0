"""Time against accuracy: the paper's ratios of training times, in one run on one core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from quadric.datasets import ImageData
from quadric.paper.experiments._outcome import Claim, Outcome, Progress, Table, silent
from quadric.paper.sweep import Recipe, Task, run_task

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# the paper's seconds and accuracies: 60 000 images, 5 epochs, 30 hidden neurons
PAPER = {"ann": (1.63, 94.76), "qnn": (5.98, 96.35), "rpqnn": (1.71, 95.22)}
KINDS = {"ann": "linear", "qnn": "quadratic", "rpqnn": "reduced"}


def run(data: ImageData, *, full: bool = False, progress: Progress = silent) -> Outcome:
    """The three networks in turn, three times over (five in a full run); medians."""
    recipe = Recipe(epochs=(5,))
    size = len(data.X_train)
    repeats = 5 if full else 3
    seconds: dict[str, list[float]] = {model: [] for model in KINDS}
    accuracies: dict[str, list[float]] = {model: [] for model in KINDS}
    done = 0
    for seed in range(repeats):
        for model, kind in KINDS.items():  # in turn, so that a slow moment meets all three
            result = run_task(Task(size, 30, kind, seed), recipe, data)
            seconds[model].append(result.seconds)
            accuracies[model].append(100 * result.accuracies[-1])
            done += 1
            progress(done, 3 * repeats, f"timing: {model.upper()}")
    median = {model: float(np.median(values)) for model, values in seconds.items()}
    compared = data.name == "mnist"
    rows, claims = [], []
    for model in KINDS:
        paper = PAPER[model][0] / PAPER["ann"][0]
        ratios = np.array(seconds[model]) / np.array(seconds["ann"])
        ours = float(np.median(ratios))
        rows.append((
            model.upper(), PAPER[model][0] if compared else None, paper if compared else None,
            median[model], ours,
            PAPER[model][1] if compared else None, float(np.mean(accuracies[model])),
            5 * size / median[model] / 1e6,
        ))  # fmt: skip
        if model != "ann":
            claims.append(
                Claim(
                    f"{model.upper()} takes at most {paper:.2f} times the time of ANN",
                    f"{paper:.2f}", f"{ours:.2f}", ours <= paper if compared else None,
                )
            )  # fmt: skip
    table = Table(
        "timing", f"{size:,} images, 5 epochs, 30 hidden neurons, one core",
        ("model", "paper, seconds", "paper, ratio", "seconds", "ratio", "paper, accuracy",
         "accuracy", "million steps a second"), rows,
        "The paper does not name its machine: ratios are compared. Ratios are medians over runs "
        "taken in turn.",
        {"seconds": ".2f", "ratio": ".2f", "paper, ratio": ".2f", "accuracy": ".2f",
         "million steps a second": ".2f"},
    )  # fmt: skip
    return Outcome(
        "timing", "Time against accuracy",
        f"Training alone, without tests, on {data.name}, {repeats} times in turn, with the default "
        "recipe." + ("" if compared else " This is not MNIST: the paper's times are left out."),
        [table], claims, {"timing": draw(rows)}, {"data": data.name, "repeats": repeats},
    )  # fmt: skip


def draw(rows: Sequence[tuple[Any, ...]]) -> Figure:
    """Accuracy against seconds."""
    from matplotlib.figure import Figure

    from quadric.plotting._style import color_of, marker_of

    figure = Figure(figsize=(4.8, 3.4), layout="constrained", dpi=150)
    ax = figure.subplots()
    for k, row in enumerate(rows):
        ax.scatter([row[3]], [row[6]], s=70, c=color_of(k), marker=marker_of(k), label=str(row[0]))
    ax.set_xlabel("seconds of training")
    ax.set_ylabel("test accuracy, %")
    ax.margins(x=0.3, y=0.25)
    ax.set_xlim(left=0)
    ax.grid(alpha=0.25)
    ax.legend(frameon=False)
    return figure
