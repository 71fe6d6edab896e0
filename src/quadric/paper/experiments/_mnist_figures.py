"""Figures of the MNIST table."""

from collections.abc import Sequence
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


def _grid(cells: Sequence[Cell]) -> tuple[list[int], list[int]]:
    return sorted({cell.train_size for cell in cells}), sorted({cell.epochs for cell in cells})


def _series(cells: Sequence[Cell], size: int, epochs: int, model: str) -> list[Cell]:
    mine = [c for c in cells if (c.train_size, c.epochs, c.model) == (size, epochs, model)]
    return sorted(mine, key=lambda cell: cell.hidden)


def accuracy_against_width(cells: Sequence[Cell], compared: bool) -> Figure:
    """Draw test accuracy against width: a row per number of epochs, a column per size."""
    sizes, epochs = _grid(cells)
    figure = new_figure(2.9 * len(sizes) + 0.4, 2.3 * len(epochs) + 0.8)
    axes = figure.subplots(len(epochs), len(sizes), squeeze=False, sharex=True)
    for (i, j), ax in np.ndenumerate(axes):
        for k, model in enumerate(MODELS):
            mine = _series(cells, sizes[j], epochs[i], model)
            widths = [cell.hidden for cell in mine]
            style: dict[str, Any] = {"color": color_of(k), "marker": marker_of(k), "markersize": 4}
            means, stds = [cell.mean for cell in mine], [cell.std or 0.0 for cell in mine]
            ax.errorbar(widths, means, stds, linewidth=1.3, capsize=2, label=model.upper(), **style)
            if compared:
                ax.plot(widths, [cell.paper_mean for cell in mine], color=color_of(k), **CROSS)
        ax.grid(alpha=0.25)
    for ax, size in zip(axes[0], sizes, strict=True):
        ax.set_title(f"{size:,} images", fontsize=10)
    for ax, count in zip(axes[:, 0], epochs, strict=True):
        ax.set_ylabel(f"{count} epochs", fontsize=10)
    for ax in axes[-1]:
        ax.set_xlabel("hidden neurons")
    if compared:
        axes[0, 0].plot([], [], color="#222222", label="the paper", **CROSS)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.supylabel("test accuracy, %", fontsize=10)
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


def _row(sizes: Sequence[int], epochs: int, xlabel: str, ylabel: str) -> tuple[Figure, Any]:
    """Return a figure with one panel per size, and its axes."""
    figure = new_figure(2.9 * len(sizes) + 0.4, 3.2)
    axes = figure.subplots(1, len(sizes), squeeze=False)[0]
    for ax, size in zip(axes, sizes, strict=True):
        ax.set_title(f"{size:,} images, {epochs} epochs", fontsize=10)
        ax.set_xlabel(xlabel)
        ax.grid(alpha=0.25)
    axes[0].set_ylabel(ylabel)
    return figure, axes


def gain_against_width(cells: Sequence[Cell], compared: bool) -> Figure:
    """Draw the gain of QNN and RPQNN over ANN, in points, against width."""
    sizes, (epochs, *_) = _grid(cells)
    figure, axes = _row(sizes, epochs, "hidden neurons", "gain over ANN, points")
    for ax, size in zip(axes, sizes, strict=True):
        base, *others = (_series(cells, size, epochs, model) for model in MODELS)
        widths = [cell.hidden for cell in base]
        for k, (model, mine) in enumerate(zip(list(MODELS)[1:], others, strict=True), start=1):
            pairs = list(zip(mine, base, strict=True))
            gain = [cell.mean - ann.mean for cell, ann in pairs]
            ax.plot(widths, gain, marker=marker_of(k), color=color_of(k), label=model.upper())
            if compared:
                theirs = [(cell.paper_mean or 0) - (ann.paper_mean or 0) for cell, ann in pairs]
                ax.plot(widths, theirs, color=color_of(k), **CROSS)
        ax.axhline(0, color="#888888", linewidth=0.8)
    if compared:
        axes[0].plot([], [], color="#222222", label="the paper", **CROSS)
    axes[0].legend(frameon=False)
    return figure


def accuracy_against_parameters(
    cells: Sequence[Cell], counts: dict[str, list[int]], widths: Sequence[int]
) -> Figure:
    """Draw test accuracy against the number of parameters, for the largest number of epochs."""
    sizes, (*_, epochs) = _grid(cells)
    figure, axes = _row(sizes, epochs, "parameters", "test accuracy, %")
    for ax, size in zip(axes, sizes, strict=True):
        for k, (model, numbers) in enumerate(counts.items()):
            mine = _series(cells, size, epochs, model)
            x = [numbers[list(widths).index(cell.hidden)] for cell in mine]
            means = [cell.mean for cell in mine]
            ax.plot(x, means, marker=marker_of(k), color=color_of(k), label=model.upper())
    axes[0].legend(frameon=False)
    return figure


def differences(cells: Sequence[Cell]) -> Figure:
    """Draw our means minus the paper's, in its standard deviations."""
    judged = [cell for cell in cells if cell.sigmas is not None]
    sizes, epochs = _grid(judged)
    columns = [(size, count) for size in sizes for count in epochs]
    widths = sorted({cell.hidden for cell in judged})
    figure = new_figure(0.62 * len(columns) + 1.6, 5.2)
    axes = figure.subplots(len(MODELS), 1, sharex=True)
    for ax, model in zip(axes, MODELS, strict=True):
        values = np.full((len(widths), len(columns)), np.nan)
        for cell in judged:
            if cell.model == model:
                place = widths.index(cell.hidden), columns.index((cell.train_size, cell.epochs))
                values[place] = cell.sigmas
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
