"""One cell's run: a network is trained once, and its accuracy measured on the way."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from quadric._utils import checks
from quadric._utils.blas_threads import one_blas_thread
from quadric.core._layers import LAYERS
from quadric.network import Network
from quadric.paper.sweep._prepared import Data, Prepared, prepare
from quadric.paper.sweep._recipe import Recipe
from quadric.training._state import Epoch

# Part of every stored run's key. To be raised when the same task and recipe give other numbers
# than before (the engine, the initial values, how a seed is used): older runs are then done anew.
ENGINE = "1"

# What is noted on the error that ends a sweep.
FAILED = "In the run with {}. The runs that had finished are stored."

# Of the paper's table.
SIZES, WIDTHS = (600, 1200, 6000, 60000), (10, 15, 20, 25, 30)


class CancelledError(Exception):
    """The sweep was stopped while this run was under way."""


@dataclass(frozen=True, order=True)
class Task:
    """How many training images, hidden neurons, the kind of the output layer, and a seed."""

    size: int
    hidden: int
    kind: str
    seed: int

    def __post_init__(self) -> None:
        for name, least in (("size", 1), ("hidden", 1), ("seed", 0)):
            value = checks.check_integer(name, getattr(self, name), at_least=least)
            object.__setattr__(self, name, value)
        checks.check_choice("kind", self.kind, LAYERS)

    @property
    def cost(self) -> float:
        """About how long an epoch takes, to begin with the longest (nanoseconds on one machine)."""
        extra = {"linear": 0.0, "reduced": 1.0, "quadratic": float(self.hidden)}[self.kind]
        return self.size * (310 + self.hidden * (16 + extra))

    def __str__(self) -> str:
        return f"{self.size} images, {self.hidden} hidden, {self.kind}, seed {self.seed}"


@dataclass(frozen=True)
class Result:
    """What a run gives.

    Attributes
    ----------
    accuracies : tuple of float
        The share of the test images that are recognised, for each of the recipe's epochs.
    seconds : float
        Of training alone; neither the tests nor the compilation are counted.
    steps : int
        How many images were visited.
    """

    accuracies: tuple[float, ...]
    seconds: float
    steps: int


def table_tasks(
    seeds: Iterable[int],
    *,
    sizes: Iterable[int] = SIZES,
    widths: Iterable[int] = WIDTHS,
    kinds: Iterable[str] = tuple(LAYERS),
) -> list[Task]:
    """The tasks of the paper's MNIST table, or of a part of it, for these seeds.

    >>> len(table_tasks(range(25)))
    1500
    """
    seeds, widths, kinds = tuple(seeds), tuple(widths), tuple(kinds)
    return [Task(n, h, kind, s) for n in sizes for h in widths for kind in kinds for s in seeds]


def run_task(
    task: Task, recipe: Recipe, data: Data, *, cancelled: Callable[[], bool] | None = None
) -> Result:
    """Train and test one network. The same bits on any number of threads.

    Parameters
    ----------
    task, recipe
    data : Data
        Prepared for the engine when first met, and kept for the next task.
    cancelled : callable, optional
        Asked before every epoch; once it is true the run ends with `CancelledError`.

    Notes
    -----
    Initial values, order and choice of images have random streams of their own. So all widths and
    kinds meet the images of one size in the same order, and their accuracies can be paired.
    """
    if task.size > len(data.X_train):
        raise ValueError(
            f"size must be at most {len(data.X_train)}, the number of training images. "
            f"Got {task.size} instead."
        )
    start, order, choice = np.random.default_rng(task.seed).spawn(3)
    with one_blas_thread():
        ready = prepare(data, recipe.dtype)
        if recipe.images == "first":
            X, Y = ready.first(task.size)
        else:
            rows = choice.permutation(ready.train.shape[0])[: task.size]
            X, Y = ready.chosen(rows)
        net = Network.create(
            ready.n_inputs,
            [
                ("linear", task.hidden, recipe.hidden_activation),
                (task.kind, ready.n_classes, recipe.output_activation),
            ],
            init=recipe.init, scale=recipe.init_scale, rng=start, dtype=recipe.dtype,
        )  # fmt: skip
        accuracies = []

        def after(epoch: Epoch) -> None:
            # the layers hold the values after this epoch, which is counted from 0
            if epoch.index + 1 in recipe.epochs:
                accuracies.append(_accuracy(net, ready, recipe.offset))
            _stop_if(cancelled)

        _stop_if(cancelled)
        history = net.fit(
            X, Y, recipe.loss,
            learning_rate=recipe.learning_rate, batch_size=recipe.batch_size,
            epochs=recipe.epochs[-1], offset=recipe.offset, rng=order,
            shuffle=recipe.order == "new", callback=after,
        )  # fmt: skip
    steps = history.n_samples * history.epochs
    return Result(tuple(accuracies), float(sum(history.seconds)), steps)


def _accuracy(net: Network, ready: Prepared, offset: float | None) -> float:
    """The share of the test images whose largest output is that of their class."""
    predicted = net.logits(ready.test, offset=offset).argmax(axis=1)
    return int((predicted == ready.labels).sum()) / len(ready.labels)


def _stop_if(cancelled: Callable[[], bool] | None) -> None:
    if cancelled is not None and cancelled():
        raise CancelledError
