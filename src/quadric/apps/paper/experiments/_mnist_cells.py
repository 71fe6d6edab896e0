"""The cells of the MNIST table: our runs compared with the paper's."""

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources

from quadric.apps.paper.experiments._experiment import MODELS, NAMES
from quadric.apps.paper.experiments._statistics import Comparison, Sample, contrast, sample_of
from quadric.apps.paper.sweep import Recipe, Run

PAPER_RUNS = 25
PLACE = ("train_size", "epochs", "hidden", "model")

Key = tuple[int, int, int, str]  # the values of PLACE
Row = tuple[int, int, int]  # the same without the model
Samples = Mapping[Key, Sample]


@dataclass(frozen=True)
class Cell:
    """One cell of the table: accuracies in percent over our seeds, and over the paper's 25 runs.

    `paper` is None if the paper does not report this cell.
    """

    train_size: int
    epochs: int
    hidden: int
    model: str
    ours: Sample
    paper: Sample | None = None

    @property
    def key(self) -> Key:
        return self.train_size, self.epochs, self.hidden, self.model

    @property
    def name(self) -> str:
        """Images, epochs, hidden neurons and model, as in '600/5/10 QNN'."""
        return f"{row_name(self.key)} {self.model.upper()}"

    @cached_property
    def comparison(self) -> Comparison | None:
        """Our mean minus the paper's, with the standard error of the difference."""
        return None if self.paper is None else contrast((1, self.ours), (-1, self.paper))

    @property
    def z(self) -> float | None:
        """The difference of the means in standard errors."""
        return None if self.comparison is None else self.comparison.t

    @property
    def is_within(self) -> bool | None:
        """Whether the means differ by at most 2 standard errors; None for a single run."""
        return None if self.z is None else abs(self.z) <= 2

    @property
    def in_printed_std(self) -> float | None:
        """The difference of the means in printed standard deviations of a single run."""
        if self.comparison is None or self.paper is None or not self.paper.std:
            return None
        return self.comparison.difference / self.paper.std

    @property
    def is_within_leniently(self) -> bool | None:
        """Whether the means differ by at most 2 printed standard deviations of a single run.

        This is lenient: the mean of 25 runs varies 5 times less than a single run.
        """
        return None if self.in_printed_std is None else abs(self.in_printed_std) <= 2


def row_name(key: Sequence[object]) -> str:
    """Return images, epochs and hidden neurons, as in '600/5/10'."""
    return "/".join(map(str, key[:3]))


def read_table(lines: Iterable[str], runs: int) -> dict[Key, Sample]:
    """Return the samples of a CSV table with the columns of PLACE, mean, std, best and worst."""
    return {
        (int(row["train_size"]), int(row["epochs"]), int(row["hidden"]), row["model"]): Sample(
            float(row["mean"]), float(row["std"]), float(row["best"]), float(row["worst"]), runs
        )
        for row in csv.DictReader(lines)
    }


def paper_table() -> dict[Key, Sample]:
    """Return the paper's table: mean, std, best and worst of 25 runs, in percent."""
    text = resources.files(__package__).joinpath("paper_mnist.csv").read_text(encoding="utf-8")
    return read_table(text.splitlines(), PAPER_RUNS)


def cells_of(runs: Sequence[Run], recipe: Recipe, paper: Samples) -> list[Cell]:
    """Compute mean, standard deviation (divisor n - 1), best and worst of each cell's seeds."""
    groups = defaultdict(list)
    for run in runs:
        for epochs, accuracy in zip(recipe.epochs, run.result.accuracies, strict=True):
            key = (run.task.size, epochs, run.task.hidden, NAMES[run.task.kind])
            groups[key].append(100 * accuracy)
    samples = {key: sample_of(accuracies) for key, accuracies in groups.items()}
    return compare(samples, paper)


def compare(ours: Samples, paper: Samples) -> list[Cell]:
    """Return our cells in the order of the paper's table, each with the paper's values."""
    order = sorted(ours, key=lambda key: (*key[:3], list(MODELS).index(key[3])))
    return [Cell(*key, ours[key], paper.get(key)) for key in order]
