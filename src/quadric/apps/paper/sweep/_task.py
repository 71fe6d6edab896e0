"""One run of a sweep: its task, its data, training and testing, and its result."""

import platform
import re
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import quadric
from quadric import Network
from quadric.apps.paper.sweep._recipe import Recipe, Study, StudyTask
from quadric.checks import Array, Matrix, check_choice, check_integer, check_number
from quadric.core import LAYERS
from quadric.datasets import ImageData
from quadric.training import Epoch, History
from quadric.utils import one_blas_thread


@dataclass(frozen=True)
class Result:
    """The result of a run.

    Attributes
    ----------
    accuracies : tuple of float
        Numbers from 0 to 1: the test accuracy after each of the recipe's epochs, or one number for
        each of a study's measures.
    seconds : float
        Training time. For a recipe, it excludes tests and compilation.
    visited : int
        Number of training samples visited.
    model : Network or None
        The trained network, for studies that return it. It is not part of the stored run.
    """

    accuracies: tuple[float, ...]
    seconds: float
    visited: int
    model: Network | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Environment:
    """Processor name and versions, stored with each run but not part of its key."""

    cpu: str
    quadric: str
    numpy: str
    numba: str
    python: str


@cache
def environment() -> Environment:
    """Return the environment of this process."""
    linux = Path("/proc/cpuinfo")
    listed = linux.read_text(encoding="utf-8") if linux.exists() else ""
    model = re.search(r"^model name\s*:(.*)$", listed, re.M)
    return Environment(
        cpu=model[1].strip() if model else platform.processor() or platform.machine() or "unknown",
        quadric=quadric.__version__,
        numpy=np.__version__,
        numba=version("numba"),  # from the metadata: numba is slow to import
        python=platform.python_version(),
    )


# Part of the key of every stored run. Increase it when a change (to the engine, the initial values
# or the use of the seed) gives different numbers for the same task and recipe. Tasks that were run
# with an older engine are then run again.
ENGINE = "1"

# The note added to the error that ends a sweep.
FAILED = "The error occurred in the run with {}. Finished runs are stored."

# The paper's table.
SIZES = (600, 1200, 6000, 60000)
WIDTHS = (10, 15, 20, 25, 30)


BLOCK = 1024  # number of images converted at a time

_lock = threading.Lock()  # one thread builds, the others wait
_latest: list[tuple[Any, "Prepared"]] = []  # at most one entry, because a data set is large


@dataclass(frozen=True)
class Prepared:
    """Scaled images (pixel/largest) and their labels.

    Attributes
    ----------
    train : CSR matrix of shape (images, pixels)
        Training images. The cost of a step grows with the number of nonzero pixels.
    targets : array of shape (images, classes)
        One-hot labels of the training images.
    test : array of shape (test images, pixels)
        Test images, dense: BLAS is as fast as SciPy's CSR product here and, unlike SciPy, releases
        the GIL.
    labels : array of shape (test images,)
        Labels of the test images.
    """

    train: Matrix
    targets: Array
    test: Array
    labels: Array
    _first: dict[int, Matrix] = field(default_factory=dict, repr=False)

    def first(self, size: int) -> tuple[Matrix, Array]:
        """Return the first `size` training images and targets, built once for all threads."""
        X = self.train
        with _lock:
            if size not in self._first:
                end = X.indptr[size]
                # views, unless they are so much smaller than the whole that SciPy copies them
                rows = (X.data[:end], X.indices[:end], X.indptr[: size + 1])
                self._first[size] = sparse.csr_array(rows, shape=(size, X.shape[1]))
            return self._first[size], self.targets[:size]


def prepare(data: ImageData, dtype: str) -> Prepared:
    """Return the prepared data; a second call for the same data returns the same object."""
    key = (data.checksum, data.largest, np.shape(data.X_train), np.shape(data.X_test), dtype)
    with _lock:
        if not _latest or _latest[0][0] != key:
            _latest.clear()  # before building the next, so that two are never in memory at once
            built = _build(data, dtype)
            _compile(dtype)
            _latest.append((key, built))
        return _latest[0][1]


def _build(data: ImageData, dtype: str) -> Prepared:
    for part in ("train", "test"):
        _check(part, getattr(data, f"X_{part}"), getattr(data, f"y_{part}"))
    if data.X_train.shape[1] != data.X_test.shape[1]:
        raise ValueError(
            "X_train and X_test must have the same number of pixels. "
            f"Got {data.X_train.shape[1]} and {data.X_test.shape[1]}."
        )
    n_classes = int(data.y_train.max()) + 1
    largest = check_number("largest", data.largest, above=0)
    starts = range(0, len(data.X_train), BLOCK)  # in blocks, to keep the intermediate arrays small
    blocks = (np.divide(data.X_train[i : i + BLOCK], largest, dtype=dtype) for i in starts)
    return Prepared(
        train=sparse.vstack([sparse.csr_array(block) for block in blocks], format="csr"),
        targets=np.eye(n_classes, dtype=dtype)[data.y_train],
        test=np.divide(data.X_test, largest, dtype=dtype),
        labels=data.y_test,
    )


def _check(part: str, images: Array, labels: Array) -> None:
    if images.ndim != 2 or 0 in images.shape or images.dtype != np.uint8:
        raise ValueError(
            f"X_{part} must be a uint8 array of shape (images, pixels). "
            f"Got {images.dtype} of shape {images.shape}."
        )
    if labels.shape != images.shape[:1] or labels.dtype.kind not in "iu" or labels.min() < 0:
        raise ValueError(
            f"y_{part} must hold {len(images)} non-negative whole numbers, one per row of "
            f"X_{part}. Got {labels.dtype} of shape {labels.shape}."
        )


def _compile(dtype: str) -> None:
    """Compile or load the engine in advance, so that the time of a run does not include it."""
    net = Network.create(2, [("linear", 2, "logistic")], rng=0, dtype=dtype)
    net.fit(sparse.csr_array(np.eye(2, dtype=dtype)), np.eye(2), epochs=1, offset=-0.5)


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
        start = time.perf_counter()
        with one_blas_thread():
            measured, visited, *model = recipe.train(task, recipe.settings, data)
        seconds = time.perf_counter() - start
        return Result(tuple(map(float, measured)), seconds, visited, *model)
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
        visited=history.n_samples * history.epochs,
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
