"""The MNIST table in sentences and figures."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from quadric.apps.paper._experiment import MODELS, legend_below, line_style, new_figure
from quadric.apps.paper._mnist_claims import (
    Block,
    Cell,
    expected_within,
    paper_table,
    row_name,
)
from quadric.datasets import ImageData
from quadric.plotting import color_of
from quadric.reference import PARAMETERS


def by_block(cells: Sequence[Cell]) -> dict[Block, list[Cell]]:
    """Return the cells of each block of images and epochs."""
    blocks: dict[Block, list[Cell]] = {}
    for cell in cells:
        blocks.setdefault(cell.key[:2], []).append(cell)
    return blocks


def block_means(cells: Sequence[Cell], model: str) -> tuple[float, float | None]:
    """Return our mean and the paper's over the cells of a model."""
    mine = [cell for cell in cells if cell.key[3] == model]
    printed = [cell.paper.mean for cell in mine if cell.paper]
    ours = float(np.mean([cell.ours.mean for cell in mine]))
    return ours, float(np.mean(printed)) if printed else None


def findings(cells: Sequence[Cell], compared: bool) -> list[str]:
    """Return sentences about the agreement with the paper, and the gains of both models."""
    gains = {model: _gains(cells, model) for model in ("qnn", "rpqnn")}
    texts = [
        f"The {model.upper()}, with a {MODELS[model]} last layer, has a higher mean accuracy than "
        f"the ANN in {sum(ours > 0 for ours, _ in mine.values())} of {len(mine)} blocks of images "
        "and epochs, averaged over the widths: "
        + ", ".join(
            _gain_text(*end(mine.items(), key=lambda gain: gain[1][0])) for end in (max, min)
        )
        + "."
        for model, mine in gains.items()
    ]
    if not compared:
        return texts
    within, runs = sum(bool(cell.is_within) for cell in cells), cells[0].ours.runs
    expected, _ = expected_within(len(cells), runs)
    missing = sorted({key[0] for key in paper_table()} - {cell.key[0] for cell in cells})
    agreement = (
        f"{within} of {len(cells)} mean accuracies of Table IV agree with the paper's within 2 "
        f"standard errors. With {runs} seeds, about {expected:.0f} are expected even from the "
        "authors' own program. The paper does not state the scaling and the initial values, so "
        "ours were fitted to its table."
        + "".join(f" The cells with {size} images were not run." for size in missing)
    )
    return [agreement, *texts]


def _gains(cells: Sequence[Cell], model: str) -> dict[Block, tuple[float, float | None]]:
    """Return a model's mean gain over the ANN in each block, ours and the paper's."""
    gains = {}
    for block, some in by_block(cells).items():
        (ours, paper), (ann, paper_ann) = (block_means(some, name) for name in (model, "ann"))
        printed = None if paper is None or paper_ann is None else paper - paper_ann
        gains[block] = (ours - ann, printed)
    return gains


def _gain_text(block: Block, gain: tuple[float, float | None]) -> str:
    ours, paper = gain
    printed = "" if paper is None else f" (paper: {round(paper, 1) + 0.0:+.1f})"
    return (
        f"{round(ours, 1) + 0.0:+.1f} points{printed} with {block[0]} images and {block[1]} epochs"
    )


def descriptions(cells: Sequence[Cell]) -> dict[str, str]:
    """Return what the figures show."""
    epochs = sorted({cell.key[1] for cell in cells})
    gains = "; ".join(
        f"{model.upper()} "
        + ", ".join(
            _gain_text(block, gain)
            for block, gain in _gains(cells, model).items()
            if block[1] == epochs[0]
        )
        for model in ("qnn", "rpqnn")
    )
    found = {
        "gain": "A panel for each number of images, with a line for each model and the ANN at 0. "
        f"Gains, averaged over the widths: {gains}.",
        "accuracy": "A panel for each number of images and epochs, with accuracy against hidden "
        f"neurons: {_spans(cells)}.",
        "parameters": "A panel for each number of images, with accuracy against parameters after "
        f"{epochs[-1]} epochs: {_spans([cell for cell in cells if cell.key[1] == epochs[-1]])}.",
    }
    z = {cell.key: cell.z for cell in cells if cell.z is not None}
    if z:
        farthest = max(z, key=lambda key: abs(z[key]))
        found["differences"] = (
            "Three grids of numbers, one for each model, with a column for each number of images "
            f"and epochs and a row for each width. {sum(abs(one) <= 2 for one in z.values())} of "
            f"{len(z)} are between -2 and 2; the farthest is {z[farthest]:+.1f} "
            f"({row_name(farthest)} {farthest[3].upper()})."
        )
    return found


def _spans(cells: Sequence[Cell]) -> str:
    """Return the lowest and the highest accuracy of each model, with their rows."""
    texts = []
    for model in MODELS:
        means = {cell.ours.mean: cell.key for cell in cells if cell.key[3] == model}
        (low, first), (high, last) = min(means.items()), max(means.items())
        texts.append(
            f"{model.upper()} from {low:.1f} % ({row_name(first)}) to {high:.1f} % "
            f"({row_name(last)})"
        )
    return ", ".join(texts)


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
    ann = {cell.key[:3]: cell for cell in cells if cell.key[3] == "ann"}
    epochs = sorted({cell.key[1] for cell in cells})

    def paper_mean(cell: Cell) -> float:
        return cell.paper.mean if cell.paper else float("nan")

    drawn = {
        "gain": _panels(
            [cell for cell in cells if cell.key[1] == epochs[0]],
            ("hidden neurons", lambda cell: cell.key[2]),
            (
                "gain over ANN, percentage points",
                lambda cell: cell.ours.mean - ann[cell.key[:3]].ours.mean,
            ),
            paper=(lambda cell: paper_mean(cell) - paper_mean(ann[cell.key[:3]]))
            if compared
            else None,
        ),
        "accuracy": _panels(
            cells,
            ("hidden neurons", lambda cell: cell.key[2]),
            ("test accuracy, %", lambda cell: cell.ours.mean),
            paper=paper_mean if compared else None,
            error=lambda cell: cell.ours.std or 0.0,
        ),
        "parameters": _panels(
            [cell for cell in cells if cell.key[1] == epochs[-1]],
            ("parameters", lambda cell: parameters(*cell.key[2:], data.X_train.shape[1])),
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
    width, height = 2.9 * len(sizes) + 0.4, 2.3 * len(epochs) + 0.9
    figure, axes = new_figure(width, height, len(epochs), len(sizes), squeeze=False)
    for (i, j), ax in np.ndenumerate(axes):
        for k, model in enumerate(MODELS):
            place = (sizes[j], epochs[i], model)
            mine = [cell for cell in cells if (*cell.key[:2], cell.key[3]) == place]
            places = [x[1](cell) for cell in mine]
            ax.errorbar(
                places,
                [y[1](cell) for cell in mine],
                [error(cell) for cell in mine] if error else None,
                capsize=2,
                **line_style(k, label=model.upper()),
            )
            if paper:
                ax.plot(places, [paper(cell) for cell in mine], color=color_of(k), **CROSS)
        ax.set_title(f"{sizes[j]:,} images, {epochs[i]} epochs", fontsize=10)
        ax.grid(alpha=0.25)
    if paper:
        axes[0, 0].plot([], [], color="#222222", label="the paper", **CROSS)
    for ax in axes[-1]:
        ax.set_xlabel(x[0])
    figure.supylabel(y[0], fontsize=10)
    legend_below(figure, axes[0, 0], 4)
    return figure


def _differences(cells: Sequence[Cell]) -> Figure:
    """Draw our means minus the paper's, in standard errors."""
    z = {cell.key: cell.z for cell in cells if cell.z is not None}
    columns, widths = sorted({key[:2] for key in z}), sorted({key[2] for key in z})
    figure, axes = new_figure(0.62 * len(columns) + 1.6, 5.2, len(MODELS), sharex=True)
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
    axes[-1].set_xticks(
        range(len(columns)),
        [f"{size:,}\n{count} ep." for size, count in columns],
        fontsize=8,
    )
    figure.colorbar(image, ax=axes, label="z = (ours - paper) / standard error")
    return figure
