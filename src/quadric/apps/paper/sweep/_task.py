"""One run of a sweep: its task, its recipe or study, its data, and its result."""

import json
import platform
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import version
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

import quadric
from quadric import Network
from quadric.checks import (
    Array,
    Matrix,
    as_dtype,
    check_choice,
    check_integer,
    check_number,
    expect,
)
from quadric.core import ACTIVATIONS, INITIAL_VALUES, LAYERS, LOSSES
from quadric.datasets import ImageData
from quadric.training import Epoch, History
from quadric.utils import one_blas_thread, processor_name

# Part of the key of every stored run. Increase it when a change (to the engine, the initial values
# or the use of the seed) gives different numbers for the same task and recipe. Tasks that were run
# with an older engine are then run again.
ENGINE = "2"

# The note added to the error that ends a sweep.
FAILED = "The error occurred in the run with {}. Finished runs are stored."

# The paper's table.
SIZES = (600, 1200, 6000, 60000)
WIDTHS = (10, 15, 20, 25, 30)
OFFSETS = {"centered": -0.5, "unit": None}
CHOICES: dict[str, Iterable[str]] = {
    "init": INITIAL_VALUES,
    "hidden_activation": ACTIVATIONS,
    "output_activation": ACTIVATIONS,
    "loss": LOSSES,
    "order": ("new", "given"),
    "images": ("first", "random", "independent"),
}
# the layer and the name of the array of each parameter that `init_factors` may name
FACTORS = {
    "hidden.W": (0, "W"),
    "hidden.b": (0, "b"),
    "output.W": (1, "W"),
    "output.b": (1, "b"),
    "output.Q": (1, "packed"),
    "output.U": (1, "U"),
    "output.c": (1, "c"),
}


# ---- tasks ---------------------------------------------------------------------------------------


@dataclass(frozen=True, order=True)
class _Task:
    """Number of training images or samples, width of the network, kind of model, and seed."""

    size: int
    hidden: int
    kind: str
    seed: int

    def __post_init__(self) -> None:
        for name, least in (("size", 1), ("hidden", 1), ("seed", 0)):
            object.__setattr__(self, name, check_integer(name, getattr(self, name), at_least=least))


@dataclass(frozen=True, order=True)
class Task(_Task):
    """Number of training images, number of hidden neurons, kind of output layer, and seed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("kind", self.kind, LAYERS)

    @property
    def cost(self) -> float:
        """Estimated time of an epoch in nanoseconds (measured on one machine), to order tasks."""
        extra = {"linear": 0.0, "reduced": 1.0, "quadratic": float(self.hidden)}[self.kind]
        return self.size * (310 + self.hidden * (16 + extra))

    def __str__(self) -> str:
        return f"{self.size} images, {self.hidden} hidden, {self.kind}, seed {self.seed}"


@dataclass(frozen=True, order=True)
class StudyTask(_Task):
    """One run of a study. It is stored in the same columns as a `Task`.

    Attributes
    ----------
    size : int
        Number of training samples.
    hidden : int
        Width of the network: the number of hidden neurons or features.
    kind : str
        The model, such as 'quadratic' or 'gru'.
    seed : int
    cost : float
        Estimated seconds, to run the longest tasks first. Not stored.
    """

    cost: float = field(default=1.0, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        expect(
            isinstance(self.kind, str) and self.kind,
            ValueError(f"kind must be a name that is not empty. Got {self.kind!r} instead."),
        )

    def __str__(self) -> str:
        return f"{self.size} samples, {self.hidden} hidden, {self.kind}, seed {self.seed}"


AnyTask = Task | StudyTask


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


# ---- recipes and studies -------------------------------------------------------------------------


@dataclass(frozen=True)
class Recipe:
    """How the runs of a sweep are trained. The defaults match the paper's MNIST table.

    By default, each run shuffles the training set once and visits the first N images of this order
    in every epoch. The defaults were found by comparing variants with that table. They fit the
    table, but this does not prove that the authors used them.

    Attributes
    ----------
    scaling : {'centered', 'unit'} or float
        pixel/largest - 0.5, pixel/largest, or pixel/largest plus this number.
    init, init_scale : str, float
        Passed to `Network.create`. The initial values depend only on the seed.
    learning_rate, batch_size
        Passed to `Network.fit`.
    epochs : tuple of int, increasing
        The epochs after which the accuracy is measured. The last one ends the run.
    hidden_activation, output_activation, loss : str
    order : {'new', 'given'}
        Whether to shuffle the images of a run before every epoch or to keep their order.
    images : {'first', 'random', 'independent'}
        Which N training images a run uses. 'first': the first N of the data set, in its order.
        'random': the first N of a random order of the whole set, which depends only on the seed.
        For a given seed, the smaller sets are therefore parts of the larger ones (nested subsets).
        'independent': the same with a different random order for every N.
    dtype : {'float32', 'float64'}
    init_factors : tuple of (name, factor)
        Factors that multiply initial values, for example ``(("hidden.b", 0), ("output.U", 2))``.
        Parameters that a kind of layer does not have are skipped.
    """

    scaling: str | float = "centered"
    init: str = "normal"
    init_scale: float = 0.006
    learning_rate: float = 0.01
    batch_size: int = 1
    epochs: tuple[int, ...] = (5, 10, 20)
    hidden_activation: str = "logistic"
    output_activation: str = "logistic"
    loss: str = "binary_cross_entropy"
    order: str = "given"
    images: str = "random"
    dtype: str = "float32"
    init_factors: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        epochs = tuple(check_integer("epochs", n, at_least=1) for n in self.epochs)
        expect(
            epochs and list(epochs) == sorted(set(epochs)),
            ValueError(
                "epochs must be one or more whole numbers in increasing order. "
                f"Got {self.epochs!r} instead."
            ),
        )
        for name, _ in self.init_factors:
            check_choice("init_factors", name, FACTORS)
        # converted, so that equal recipes have equal keys: 1 and 1.0, (5,) and [5]
        converted = {
            "scaling": check_choice("scaling", self.scaling, OFFSETS)
            if isinstance(self.scaling, str)
            else check_number("scaling", self.scaling),
            "epochs": epochs,
            "init_scale": check_number("init_scale", self.init_scale, at_least=0),
            "learning_rate": check_number("learning_rate", self.learning_rate, above=0),
            "batch_size": check_integer("batch_size", self.batch_size, at_least=1),
            "dtype": as_dtype(self.dtype).name,
            "init_factors": tuple(
                sorted((name, check_number(name, by)) for name, by in self.init_factors)
            ),
        }
        for name, value in converted.items():
            object.__setattr__(self, name, value)
        for name, choices in CHOICES.items():
            check_choice(name, getattr(self, name), choices)

    @property
    def offset(self) -> float | None:
        """The number added to every pixel/largest, or None."""
        return OFFSETS[self.scaling] if isinstance(self.scaling, str) else self.scaling

    def key(self) -> str:
        """Return the recipe as canonical JSON: equal recipes have equal keys in any session.

        >>> Recipe(epochs=[5, 10]).key() == Recipe(epochs=(5, 10)).key()
        True
        >>> "centered" in Recipe().key()
        True
        """
        values = asdict(self)
        if not self.init_factors:  # keeps the keys of runs stored before this field was added
            del values["init_factors"]
        return json.dumps(values, sort_keys=True, separators=(",", ":"))


# Recipes that match the paper's table, by the name used on the command line: the default, and the
# one used before it was found, which fits less well.
RECIPES = {
    "one-shuffle": Recipe(),
    "first-images": Recipe(init_scale=0.005, order="new", images="first"),
}


# one number from 0 to 1 per measure, samples visited, and perhaps the trained network
Measured = tuple[tuple[float, ...], int] | tuple[tuple[float, ...], int, Network]


@dataclass(frozen=True)
class Study:
    """How the runs of a study are trained and what they measure.

    Attributes
    ----------
    name : str
    measures : tuple of str
        The names of the numbers that a run returns, each from 0 to 1.
    train : callable(task, settings, data)
        A function at the top level of a module, so that other processes can import it. `data` are
        the images, or None for a study that does not need them. Returns the measured numbers, the
        number of training samples visited and, optionally, the trained network.
    settings : mapping
        JSON values that determine the results together with the task and the data.
    """

    name: str
    measures: tuple[str, ...]
    train: Callable[[Any, Mapping[str, Any], Any], Measured]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def key(self) -> str:
        """Return what identifies the runs in a store, as canonical JSON."""
        values = {**self.settings, "study": self.name, "measures": self.measures}
        return json.dumps(values, sort_keys=True, separators=(",", ":"))


Method = Recipe | Study  # how the tasks of a sweep are run


# ---- results -------------------------------------------------------------------------------------


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
    return Environment(
        cpu=processor_name(),
        quadric=quadric.__version__,
        numpy=np.__version__,
        numba=version("numba"),  # from the metadata: numba is slow to import
        python=platform.python_version(),
    )


Finished = tuple[AnyTask, Result, Environment]


# ---- images --------------------------------------------------------------------------------------


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


def prepare(data: ImageData, dtype: str) -> Prepared:
    """Return the prepared data; a second call for the same data returns the same object."""
    key = (data.checksum, data.largest, np.shape(data.X_train), np.shape(data.X_test), dtype)
    with _lock:
        if not _latest or _latest[0][0] != key:
            _latest.clear()  # before building the next, so that two are never in memory at once
            _latest.append((key, _build(data, dtype)))
            # compile or load the engine in advance, so that the time of a run does not include it
            net = Network.create(2, [("linear", 2, "logistic")], rng=0, dtype=dtype)
            net.fit(sparse.csr_array(np.eye(2, dtype=dtype)), np.eye(2), epochs=1, offset=-0.5)
        return _latest[0][1]


def _build(data: ImageData, dtype: str) -> Prepared:
    for part in ("train", "test"):
        images, labels = getattr(data, f"X_{part}"), getattr(data, f"y_{part}")
        expect(
            images.ndim == 2 and 0 not in images.shape and images.dtype == np.uint8,
            ValueError(
                f"X_{part} must be a uint8 array of shape (images, pixels). "
                f"Got {images.dtype} of shape {images.shape}."
            ),
        )
        expect(
            labels.shape == images.shape[:1] and labels.dtype.kind in "iu" and labels.min() >= 0,
            ValueError(
                f"y_{part} must hold {len(images)} non-negative whole numbers, one per row of "
                f"X_{part}. Got {labels.dtype} of shape {labels.shape}."
            ),
        )
    expect(
        data.X_train.shape[1] == data.X_test.shape[1],
        ValueError(
            "X_train and X_test must have the same number of pixels. "
            f"Got {data.X_train.shape[1]} and {data.X_test.shape[1]}."
        ),
    )
    largest = check_number("largest", data.largest, above=0)
    blocks = [  # to keep the intermediate arrays small
        sparse.csr_array(np.divide(data.X_train[i : i + BLOCK], largest, dtype=dtype))
        for i in range(0, len(data.X_train), BLOCK)
    ]
    return Prepared(
        train=sparse.vstack(blocks, format="csr"),
        targets=np.eye(int(data.y_train.max()) + 1, dtype=dtype)[data.y_train],
        test=np.divide(data.X_test, largest, dtype=dtype),
        labels=data.y_test,
    )


# ---- runs ----------------------------------------------------------------------------------------


class CancelledError(Exception):
    """Raised in a run when the sweep ends early."""


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
        start = time.perf_counter()
        with one_blas_thread():
            measured, visited, *model = recipe.train(task, recipe.settings, data)
        return Result(tuple(map(float, measured)), time.perf_counter() - start, visited, *model)
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
    expect(
        task.size <= available,
        ValueError(
            f"size must be at most {available}, the number of training images. "
            f"Got {task.size} instead."
        ),
    )
    start, _, choice = np.random.default_rng(task.seed).spawn(3)
    if recipe.images == "independent":
        choice = np.random.default_rng([task.seed, task.size])
    order = range(available) if recipe.images == "first" else choice.permutation(available)
    rows = np.array(order[: task.size])
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
    for name, factor in recipe.init_factors:
        layer, array = FACTORS[name]
        if array in (parameters := net.layers[layer].arrays()):
            parameters[array] *= factor
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
