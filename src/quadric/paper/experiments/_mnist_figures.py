"""Figures of the MNIST table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from quadric.plotting._style import color_of, marker_of

if TYPE_CHECKING:
    from quadric.paper.experiments._mnist import Cell


MODELS = ("ann", "qnn", "rpqnn")


def _grid(cells: Sequence[Cell]) -> tuple[list[int], list[int]]:
    return sorted({cell.train_size for cell in cells}), sorted({cell.epochs for cell in cells})


def _panels(cells: Sequence[Cell]) -> Any:
    """A figure with a row for each number of epochs and a column for each training size."""
    sizes, epochs = _grid(cells)
    figure = Figure(
        figsize=(2.9 * len(sizes) + 0.4, 2.3 * len(epochs) + 0.8), layout="constrained", dpi=150
    )
    axes = figure.subplots(len(epochs), len(sizes), squeeze=False, sharex=True)
    for i, count in enumerate(epochs):
        for j, size in enumerate(sizes):
            if i == 0:
                axes[i, j].set_title(f"{size:,} images", fontsize=10)
            if j == 0:
                axes[i, j].set_ylabel(f"{count} epochs", fontsize=10)
            if i == len(epochs) - 1:
                axes[i, j].set_xlabel("hidden neurons")
    return figure, {
        (size, count): axes[i, j] for i, count in enumerate(epochs) for j, size in enumerate(sizes)
    }


def _series(cells: Sequence[Cell], size: int, epochs: int, model: str) -> list[Cell]:
    mine = [c for c in cells if (c.train_size, c.epochs, c.model) == (size, epochs, model)]
    return sorted(mine, key=lambda cell: cell.hidden)


def accuracy_against_width(cells: Sequence[Cell], compared: bool) -> Figure:
    """Test accuracy against the number of hidden neurons: ours, and the paper's as crosses."""
    figure, axes = _panels(cells)
    for (size, epochs), ax in axes.items():
        for k, model in enumerate(MODELS):
            mine = _series(cells, size, epochs, model)
            if not mine:
                continue
            widths = [cell.hidden for cell in mine]
            ax.errorbar(
                widths, [cell.mean for cell in mine], [cell.std or 0.0 for cell in mine],
                color=color_of(k), marker=marker_of(k), markersize=4, linewidth=1.3, capsize=2,
                label=model.upper() if ax is next(iter(axes.values())) else None,
            )  # fmt: skip
            if compared:
                theirs = [cell.paper_mean for cell in mine]
                ax.plot(widths, theirs, "x", color=color_of(k), markersize=6, markeredgewidth=1.6)
        ax.grid(alpha=0.25)
    handles, labels = next(iter(axes.values())).get_legend_handles_labels()
    if compared:
        (cross,) = next(iter(axes.values())).plot([], [], "x", color="#222222", markersize=6)
        handles, labels = [*handles, cross], [*labels, "the paper"]
    figure.supylabel("test accuracy, %", fontsize=10)
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


def gain_against_width(cells: Sequence[Cell], compared: bool) -> Figure:
    """How much QNN and RPQNN gain over ANN, in points, against the number of hidden neurons."""
    sizes, epochs = _grid(cells)
    count = epochs[0]
    figure = Figure(figsize=(2.9 * len(sizes) + 0.4, 3.2), layout="constrained", dpi=150)
    for ax, size in zip(np.atleast_1d(figure.subplots(1, len(sizes))), sizes, strict=True):
        base = _series(cells, size, count, "ann")
        for k, model in enumerate(MODELS[1:], start=1):
            mine = _series(cells, size, count, model)
            widths = [cell.hidden for cell in mine]
            gain = [cell.mean - other.mean for cell, other in zip(mine, base, strict=True)]
            ax.plot(widths, gain, marker=marker_of(k), color=color_of(k), label=model.upper())
            if compared:
                theirs = [
                    (cell.paper_mean or 0) - (other.paper_mean or 0)
                    for cell, other in zip(mine, base, strict=True)
                ]
                ax.plot(widths, theirs, "x", color=color_of(k), markersize=6, markeredgewidth=1.6)
        ax.axhline(0, color="#888888", linewidth=0.8)
        ax.set_title(f"{size:,} images, {count} epochs", fontsize=10)
        ax.set_xlabel("hidden neurons")
        ax.grid(alpha=0.25)
    figure.axes[0].set_ylabel("gain over ANN, points")
    if compared:
        figure.axes[0].plot([], [], "x", color="#222222", label="the paper")
    figure.axes[0].legend(frameon=False)
    return figure


def accuracy_against_parameters(
    cells: Sequence[Cell], counts: dict[str, list[int]], widths: Sequence[int]
) -> Figure:
    """Test accuracy against the number of parameters, for the largest number of epochs."""
    sizes, epochs = _grid(cells)
    figure = Figure(figsize=(2.9 * len(sizes) + 0.4, 3.2), layout="constrained", dpi=150)
    for ax, size in zip(np.atleast_1d(figure.subplots(1, len(sizes))), sizes, strict=True):
        for k, model in enumerate(MODELS):
            mine = _series(cells, size, epochs[-1], model)
            x = [counts[model][list(widths).index(cell.hidden)] for cell in mine]
            ax.plot(
                x, [cell.mean for cell in mine], marker=marker_of(k), color=color_of(k),
                label=model.upper(),
            )  # fmt: skip
        ax.set_title(f"{size:,} images, {epochs[-1]} epochs", fontsize=10)
        ax.set_xlabel("parameters")
        ax.grid(alpha=0.25)
    figure.axes[0].set_ylabel("test accuracy, %")
    figure.axes[0].legend(frameon=False)
    return figure


def differences(cells: Sequence[Cell]) -> Figure:
    """Ours less the paper's in its standard deviations: where it does not match."""
    judged = [cell for cell in cells if cell.sigmas is not None]
    sizes, epochs = _grid(judged)
    columns = [(size, count) for size in sizes for count in epochs]
    widths = sorted({cell.hidden for cell in judged})
    figure = Figure(figsize=(0.62 * len(columns) + 1.6, 5.2), layout="constrained", dpi=150)
    axes = figure.subplots(len(MODELS), 1, sharex=True)
    for ax, model in zip(axes, MODELS, strict=True):
        values = np.full((len(widths), len(columns)), np.nan)
        for cell in judged:
            if cell.model == model and cell.sigmas is not None:
                place = columns.index((cell.train_size, cell.epochs))
                values[widths.index(cell.hidden), place] = cell.sigmas
        image = ax.imshow(values, cmap="PuOr", vmin=-3, vmax=3, aspect="auto")
        for (i, j), value in np.ndenumerate(values):
            if np.isfinite(value):
                color = "white" if abs(value) > 2 else "black"
                ax.text(j, i, f"{value:+.1f}", ha="center", va="center", fontsize=7, color=color)
        ax.set_yticks(range(len(widths)), [str(width) for width in widths])
        ax.set_ylabel(f"{model.upper()}\nhidden")
    axes[-1].set_xticks(
        range(len(columns)), [f"{size:,}\n{count} ep." for size, count in columns], fontsize=8
    )
    figure.colorbar(image, ax=axes, label="(ours - paper) / printed std")
    return figure
