"""Tables of the MNIST experiment for the report and the CSV files."""

from collections.abc import Sequence
from typing import Any

from quadric.apps.paper.experiments._experiment import MODELS, Table
from quadric.apps.paper.experiments._mnist_cells import PLACE, Cell, Samples
from quadric.apps.paper.experiments._mnist_claims import comparisons, smallest_width
from quadric.apps.paper.experiments._mnist_figures import parameters
from quadric.apps.paper.experiments._statistics import Comparison, expected_maximum, maximum_range
from quadric.apps.paper.sweep import WIDTHS
from quadric.datasets import ImageData

STATISTICS = ("mean", "std", "best", "worst")
PAPER = tuple(f"paper {name}" for name in STATISTICS)
PAIRS = (("qnn", "ann"), ("rpqnn", "ann"), ("qnn", "rpqnn"))
VERDICTS = {1: "better", 0: "undecided", -1: "worse"}


def tables(cells: Sequence[Cell], data: ImageData, compared: bool) -> list[Table]:
    """Return all tables; those with the paper's numbers only if the data are the paper's."""
    ours = {cell.key: cell.ours for cell in cells}
    theirs = {cell.key: cell.paper for cell in cells if cell.paper is not None}
    pixels = data.X_train.shape[1]
    with_paper = [_comparison(cells), _not_reproduced(cells), _extremes(cells)] if compared else []
    return [
        *with_paper,
        Table(
            f"{data.name}_table",
            "Our results in the form of the paper's table",
            (*PLACE, *STATISTICS),
            [(*cell.key, *(getattr(cell.ours, name) for name in STATISTICS)) for cell in cells],
            f"Accuracy on the {len(data.y_test)} test images, in percent, over the seeds.",
            dict.fromkeys(STATISTICS, ".2f"),
        ),
        _outperforms(ours, theirs, data.name),
        Table(
            f"{data.name}_smallest_width",
            "The smallest width at which the QNN is at least as accurate as the ANN of width 30",
            ("train_size", "epochs", "paper", "ours"),
            [
                (*row, smallest_width(theirs, *row), smallest_width(ours, *row))
                for row in sorted({key[:2] for key in ours})
            ],
        ),
        Table(
            f"{data.name}_parameters",
            "Parameters of the networks",
            ("hidden", *MODELS),
            [(h, *(parameters(h, model, pixels) for model in MODELS)) for h in WIDTHS],
        ),
    ]


def _comparison(cells: Sequence[Cell]) -> Table:
    judged = (
        "difference",
        "z",
        "within 2 standard errors",
        "in printed std",
        "within 2 printed std",
    )
    return Table(
        "mnist_comparison",
        "Every cell compared with the paper",
        (*PLACE, *STATISTICS, *PAPER, *judged),
        [
            (
                *cell.key,
                *(getattr(cell.ours, name) for name in STATISTICS),
                *(getattr(cell.paper, name, None) for name in STATISTICS),
                cell.comparison and cell.comparison.difference,
                cell.z,
                cell.is_within,
                cell.in_printed_std,
                cell.is_within_leniently,
            )
            for cell in cells
        ],
        "z is the difference of the means in standard errors of this difference, computed from "
        "both standard deviations and both numbers of runs. The last two columns are the lenient "
        "criterion: they compare the means by the spread of a single run.",
        dict.fromkeys((*STATISTICS, *PAPER), ".2f")
        | dict.fromkeys(("difference", "z", "in printed std"), "+.2f"),
    )


def _not_reproduced(cells: Sequence[Cell]) -> Table:
    columns = ("mean", "paper mean", "difference", "z")
    return Table(
        "mnist_not_reproduced",
        "Cells in which the means differ by more than 2 standard errors",
        (*PLACE, *columns),
        [
            (*cell.key, cell.ours.mean, cell.paper.mean, cell.comparison.difference, cell.z)
            for cell in cells
            if cell.is_within is False and cell.paper and cell.comparison
        ],
        "Even with the same recipe, about 5 % of the cells are expected here.",
        dict(zip(columns, (".2f", ".2f", "+.2f", "+.2f"), strict=True)),
    )


def _extremes(cells: Sequence[Cell]) -> Table:
    columns = ("best in std", "worst in std", "paper best in std", "paper worst in std")
    low, high = maximum_range(25)
    return Table(
        "mnist_extremes",
        "Best and worst runs in standard deviations from the mean",
        (*PLACE, *columns, "printed values possible"),
        [
            (
                *cell.key,
                cell.ours.best_in_std,
                cell.ours.worst_in_std,
                cell.paper and cell.paper.best_in_std,
                cell.paper and cell.paper.worst_in_std,
                cell.paper and cell.paper.is_possible,
            )
            for cell in cells
        ],
        f"The best of 25 normal draws is expected at +{expected_maximum(25):.2f} standard "
        f"deviations and lies between {low:+.2f} and {high:+.2f} in 95 % of cases; "
        "the worst at the negative values.",
        dict.fromkeys(columns, "+.2f"),
    )


def _outperforms(ours: Samples, theirs: Samples, name: str) -> Table:
    measured = ("difference", "t", "p (Holm)", "verdict")
    rows: list[tuple[Any, ...]] = []
    for better, worse in PAIRS:
        mine, printed = (comparisons(samples, better, worse) for samples in (ours, theirs))
        for row, test in mine.items():
            paper = printed.get(row)
            paper_values = _values(paper) if paper else (None,) * len(measured)
            same = paper and paper.difference * test.difference > 0
            models = f"{better.upper()} - {worse.upper()}"
            rows.append((models, *row, *paper_values, *_values(test), same))
    columns = [*(f"paper {column}" for column in measured), *measured]
    styles = {"difference": "+.2f", "t": "+.1f", "p (Holm)": ".2g"}
    return Table(
        f"{name}_outperforms",
        "Which model is significantly better",
        ("models", *PLACE[:3], *columns, "same sign"),
        rows,
        "Welch's test of the difference of two means. The p values are adjusted by Holm's method "
        "over all rows of a pair of models; a difference is significant below 0.05.",
        {prefix + column: style for column, style in styles.items() for prefix in ("", "paper ")},
    )


def _values(test: Comparison) -> tuple[Any, ...]:
    return test.difference, test.t, test.p, VERDICTS[test.sign]
