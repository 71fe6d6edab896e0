"""Figures of the MNIST table: accuracy, gain over the ANN, parameters, and differences."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from quadric.apps.paper.experiments._experiment import MODELS, new_figure
from quadric.apps.paper.experiments._mnist_cells import Cell
from quadric.datasets import ImageData
from quadric.plotting import color_of, marker_of
from quadric.reference import PARAMETERS

CAPTIONS = {
    "accuracy": "Test accuracy for each number of hidden neurons: means and standard deviations "
    "over the seeds.",
    "gain": "How much more accurate each model is than the ANN with as many hidden neurons, after "
    "the fewest epochs.",
    "parameters": "Test accuracy after the most epochs for each number of parameters.",
    "differences": "Our means minus the paper's, in standard errors of the difference. Values "
    "beyond 2 are printed in white.",
}
CROSS: dict[str, Any] = {  # the style of the paper's values
    "linestyle": "",
    "marker": "x",
    "markersize": 6,
    "markeredgewidth": 1.6,
}


def parameters(hidden: int, model: str, inputs: int = 784, outputs: int = 10) -> int:
    """Return the number of parameters of a cell's network."""
    return PARAMETERS["ann"](hidden, inputs) + PARAMETERS[model](outputs, hidden)


def figures(cells: Sequence[Cell], data: ImageData, compared: bool) -> dict[str, Figure]:
    """Draw accuracy and gain against width, accuracy against parameters, and the differences."""
    ann = {cell.key[:3]: cell for cell in cells if cell.model == "ann"}
    fewest, most = min(cell.epochs for cell in cells), max(cell.epochs for cell in cells)

    def paper_mean(cell: Cell) -> float:
        return cell.paper.mean if cell.paper else float("nan")

    drawn = {
        "accuracy": _panels(
            cells,
            ("hidden neurons", lambda cell: cell.hidden),
            ("test accuracy, %", lambda cell: cell.ours.mean),
            paper=paper_mean if compared else None,
            error=lambda cell: cell.ours.std or 0.0,
        ),
        "gain": _panels(
            [cell for cell in cells if cell.epochs == fewest],
            ("hidden neurons", lambda cell: cell.hidden),
            (
                "gain over ANN, percentage points",
                lambda cell: cell.ours.mean - ann[cell.key[:3]].ours.mean,
            ),
            paper=(lambda cell: paper_mean(cell) - paper_mean(ann[cell.key[:3]]))
            if compared
            else None,
        ),
        "parameters": _panels(
            [cell for cell in cells if cell.epochs == most],
            ("parameters", lambda c: parameters(c.hidden, c.model, data.X_train.shape[1])),
            ("test accuracy, %", lambda cell: cell.ours.mean),
        ),
    }
    if any(cell.z is not None for cell in cells):  # more than one run
        drawn["differences"] = _differences(cells)
    return {f"{data.name}_{name}": figure for name, figure in drawn.items()}


def _panels(
    cells: Sequence[Cell],
    x: tuple[str, Callable[[Cell], float]],
    y: tuple[str, Callable[[Cell], float]],
    *,
    paper: Callable[[Cell], float] | None = None,
    error: Callable[[Cell], float] | None = None,
) -> Figure:
    """Draw a line for each model, with a panel for each number of epochs and each size.

    `x` and `y` contain the label of an axis and a function that returns the coordinate of a cell.
    `paper` returns the paper's y, drawn as a cross, and `error` the length of an error bar.
    """
    sizes, epochs = (sorted({cell.key[k] for cell in cells}) for k in (0, 1))
    figure = new_figure(2.9 * len(sizes) + 0.4, 2.3 * len(epochs) + 0.9)
    axes = figure.subplots(len(epochs), len(sizes), squeeze=False)
    for (i, j), ax in np.ndenumerate(axes):
        for k, model in enumerate(MODELS):
            mine = [
                c
                for c in cells
                if (c.epochs, c.train_size, c.model) == (epochs[i], sizes[j], model)
            ]
            places, color = [x[1](cell) for cell in mine], color_of(k)
            ax.errorbar(
                places,
                [y[1](cell) for cell in mine],
                [error(cell) for cell in mine] if error else None,
                capsize=2,
                color=color,
                marker=marker_of(k),
                markersize=4,
                linewidth=1.3,
                label=model.upper(),
            )
            if paper:
                ax.plot(places, [paper(cell) for cell in mine], color=color, **CROSS)
        ax.set_title(f"{sizes[j]:,} images, {epochs[i]} epochs", fontsize=10)
        ax.grid(alpha=0.25)
    if paper:
        axes[0, 0].plot([], [], color="#222222", label="the paper", **CROSS)
    for ax in axes[-1]:
        ax.set_xlabel(x[0])
    figure.supylabel(y[0], fontsize=10)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


def _differences(cells: Sequence[Cell]) -> Figure:
    """Draw our means minus the paper's, in standard errors."""
    z = {cell.key: cell.z for cell in cells if cell.z is not None}
    columns, widths = sorted({key[:2] for key in z}), sorted({key[2] for key in z})
    figure = new_figure(0.62 * len(columns) + 1.6, 5.2)
    axes = figure.subplots(len(MODELS), 1, sharex=True)
    for ax, model in zip(axes, MODELS, strict=True):
        values = np.array(
            [[z.get((*column, width, model), np.nan) for column in columns] for width in widths]
        )
        image = ax.imshow(values, cmap="PuOr", vmin=-3, vmax=3, aspect="auto")
        for (i, j), value in np.ndenumerate(values):
            if np.isfinite(value):
                color = "white" if abs(value) > 2 else "black"
                ax.text(j, i, f"{value:+.1f}", ha="center", va="center", fontsize=7, color=color)
        ax.set_yticks(range(len(widths)), [str(width) for width in widths])
        ax.set_ylabel(f"{model.upper()}\nhidden")
    labels = [f"{size:,}\n{count} ep." for size, count in columns]
    axes[-1].set_xticks(range(len(columns)), labels, fontsize=8)
    figure.colorbar(image, ax=axes, label="z = (ours - paper) / standard error")
    return figure
