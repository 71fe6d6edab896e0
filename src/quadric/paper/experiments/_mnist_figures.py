"""Figures of the MNIST table."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from quadric.paper.experiments._experiment import MODELS, new_figure
from quadric.paper.experiments._mnist_cells import Cell
from quadric.plotting._style import color_of, marker_of

CROSS: dict[str, Any] = {
    "linestyle": "",
    "marker": "x",
    "markersize": 6,
    "markeredgewidth": 1.6,
}  # the paper's


def accuracy_against_width(cells: Sequence[Cell], compared: bool) -> Figure:
    """Draw test accuracy against width: a row per number of epochs, a column per size."""
    return _panels(
        cells,
        ("hidden neurons", lambda cell: cell.hidden),
        ("test accuracy, %", lambda cell: cell.mean),
        paper=(lambda cell: cell.paper_mean) if compared else None,
        error=lambda cell: cell.std or 0.0,
    )


def gain_against_width(cells: Sequence[Cell], compared: bool) -> Figure:
    """Draw the gain over the ANN, in points, against width, for the smallest number of epochs."""
    ann = {cell.key[:3]: cell for cell in cells if cell.model == "ann"}
    fewest = min(cell.epochs for cell in cells)

    def paper_gain(cell: Cell) -> float:
        return (cell.paper_mean or 0) - (ann[cell.key[:3]].paper_mean or 0)

    return _panels(
        [cell for cell in cells if cell.epochs == fewest],
        ("hidden neurons", lambda cell: cell.hidden),
        ("gain over ANN, points", lambda cell: cell.mean - ann[cell.key[:3]].mean),
        paper=paper_gain if compared else None,
    )


def accuracy_against_parameters(cells: Sequence[Cell], parameters: Callable[[Cell], int]) -> Figure:
    """Draw test accuracy against the number of parameters, for the largest number of epochs."""
    most = max(cell.epochs for cell in cells)
    return _panels(
        [cell for cell in cells if cell.epochs == most],
        ("parameters", parameters),
        ("test accuracy, %", lambda cell: cell.mean),
    )


def _panels(
    cells: Sequence[Cell],
    x: tuple[str, Callable[[Cell], float]],
    y: tuple[str, Callable[[Cell], float]],
    *,
    paper: Callable[[Cell], float | None] | None = None,
    error: Callable[[Cell], float] | None = None,
) -> Figure:
    """Draw a line per model in a panel per number of epochs and size.

    `x` and `y` are the label of an axis and the coordinate of a cell. `paper` returns the paper's
    y, drawn as a cross, and `error` the length of an error bar.
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
    figure.supxlabel(x[0], fontsize=10)
    figure.supylabel(y[0], fontsize=10)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


def differences(cells: Sequence[Cell]) -> Figure:
    """Draw our means minus the paper's, in its standard deviations."""
    sigmas = {cell.key: cell.sigmas for cell in cells if cell.sigmas is not None}
    columns, widths = sorted({key[:2] for key in sigmas}), sorted({key[2] for key in sigmas})
    figure = new_figure(0.62 * len(columns) + 1.6, 5.2)
    axes = figure.subplots(len(MODELS), 1, sharex=True)
    for ax, model in zip(axes, MODELS, strict=True):
        values = np.array(
            [
                [sigmas.get((*column, width, model), np.nan) for column in columns]
                for width in widths
            ]
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
    figure.colorbar(image, ax=axes, label="(ours - paper) / printed std")
    return figure
