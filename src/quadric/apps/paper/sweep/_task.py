"""One run of a sweep: its task, training and testing."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np

from quadric.apps.paper.sweep._data import Prepared, prepare
from quadric.apps.paper.sweep._recipe import Recipe
from quadric.apps.paper.sweep._result import Environment, Result
from quadric.apps.paper.sweep._study import Study, StudyTask
from quadric.checks import Array, Matrix, check_choice, check_integer
from quadric.core import LAYERS
from quadric.datasets import ImageData
from quadric.network import Network
from quadric.training import Epoch, History
from quadric.utils import one_blas_thread

# Part of the key of every stored run. Increase it when a change (to the engine, the initial values
# or the use of the seed) gives different numbers for the same task and recipe. Tasks that were run
# with an older engine are then run again.
ENGINE = "1"

# The note added to the error that ends a sweep.
FAILED = "The error occurred in the run with {}. Finished runs are stored."

# The paper's table.
SIZES = (600, 1200, 6000, 60000)
WIDTHS = (10, 15, 20, 25, 30)


class CancelledError(Exception):
    """Raised in a run when the sweep ends early."""


@dataclass(frozen=True, order=True)
class Task:
    """Number of training images, number of hidden neurons, kind of output layer, and seed."""

    size: int
    hidden: int
    kind: str
    seed: int

    def __post_init__(self) -> None:
        for name, least in (("size", 1), ("hidden", 1), ("seed", 0)):
            object.__setattr__(self, name, check_integer(name, getattr(self, name), at_least=least))
        check_choice("kind", self.kind, LAYERS)

    @property
    def cost(self) -> float:
        """Estimated time of an epoch in nanoseconds (measured on one machine), to order tasks."""
        extra = {"linear": 0.0, "reduced": 1.0, "quadratic": float(self.hidden)}[self.kind]
        return self.size * (310 + self.hidden * (16 + extra))

    def __str__(self) -> str:
        return f"{self.size} images, {self.hidden} hidden, {self.kind}, seed {self.seed}"


AnyTask = Task | StudyTask
Method = Recipe | Study  # how the tasks of a sweep are run
Finished = tuple[AnyTask, Result, Environment]


def table_tasks(
    seeds: Iterable[int],
    *,
    sizes: Iterable[int] = SIZES,
    widths: Iterable[int] = WIDTHS,
    kinds: Iterable[str] = tuple(LAYERS),
) -> list[Task]:
    """Return the tasks of the paper's MNIST table, or of a part of it, for the given seeds.

    >>> len(table_tasks(range(25)))
    1500
    """
    return [Task(*values) for values in product(sizes, widths, kinds, seeds)]


def run_task(
    task: AnyTask,
    recipe: Method,
    data: ImageData | None,
    *,
    cancelled: Callable[[], bool] = lambda: False,
) -> Result:
    """Train and test one network. The result is bit-identical for any number of threads.

    Parameters
    ----------
    task : Task or StudyTask
    recipe : Recipe or Study
        A Study takes StudyTasks.
    data : ImageData or None
        For a recipe, prepared for the engine on first use, and kept for the next task. None for
        studies that do not need images.
    cancelled : callable
        Called before every epoch of a recipe. If it returns True, the run raises `CancelledError`.
    """
    if cancelled():
        raise CancelledError
    if isinstance(recipe, Study):
        assert isinstance(task, StudyTask)
        return recipe.run(task, data)
    assert isinstance(task, Task)
    assert data is not None
    accuracies = []
    with one_blas_thread():
        ready = prepare(data, recipe.dtype)
        net, X, Y = initial_network(task, recipe, ready)

        def after(epoch: Epoch) -> None:
            if epoch.index + 1 in recipe.epochs:  # `index` counts from 0
                accuracies.append(_accuracy(net, ready, recipe.offset))
            if cancelled():
                raise CancelledError

        history = fit_network(net, X, Y, task, recipe, after)
    return Result(
        tuple(accuracies),
        seconds=float(sum(history.seconds)),
        steps=history.n_samples * history.epochs,
    )


def initial_network(task: Task, recipe: Recipe, ready: Prepared) -> tuple[Network, Matrix, Array]:
    """Return the network of a task before training, its training images and their targets.

    The initial values, the order and the choice of the images use separate random streams. For
    a given size and seed, all widths and kinds therefore see the same images in the same order, and
    their accuracies can be compared in pairs. With ``images="random"``, all sizes take their images
    from the start of one permutation of the training set, which depends only on the seed.
    """
    available = ready.train.shape[0]
    if task.size > available:
        raise ValueError(
            f"size must be at most {available}, the number of training images. "
            f"Got {task.size} instead."
        )
    start, _, choice = np.random.default_rng(task.seed).spawn(3)
    if recipe.images == "first":
        X, Y = ready.first(task.size)
    else:
        if recipe.images == "independent":
            choice = np.random.default_rng([task.seed, task.size])
        rows = choice.permutation(available)[: task.size]
        X, Y = ready.train[rows], ready.targets[rows]
    net = Network.create(
        X.shape[1],
        [
            ("linear", task.hidden, recipe.hidden_activation),
            (task.kind, Y.shape[1], recipe.output_activation),
        ],
        init=recipe.init,
        scale=recipe.init_scale,
        rng=start,
        dtype=recipe.dtype,
    )
    for layer, name, factor in recipe.factors():
        if name in (parameters := net.layers[layer].arrays()):
            parameters[name] *= factor
    return net, X, Y


def fit_network(
    net: Network,
    X: Matrix,
    Y: Array,
    task: Task,
    recipe: Recipe,
    callback: Callable[[Epoch], object] | None = None,
) -> History:
    """Train the network of a task in place."""
    _, order, _ = np.random.default_rng(task.seed).spawn(3)
    return net.fit(
        X,
        Y,
        recipe.loss,
        learning_rate=recipe.learning_rate,
        batch_size=recipe.batch_size,
        epochs=recipe.epochs[-1],
        offset=recipe.offset,
        rng=order,
        shuffle=recipe.order == "new",
        callback=callback,
    )


def _accuracy(net: Network, ready: Prepared, offset: float | None) -> float:
    """Return the share of test images whose largest output is that of their class."""
    predicted = net.logits(ready.test, offset=offset).argmax(axis=1)
    return int((predicted == ready.labels).sum()) / len(ready.labels)
