"""How the runs of a sweep are trained: by a recipe, or by a study's own training function."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from quadric import Network
from quadric.checks import as_dtype, check_choice, check_integer, check_number
from quadric.core import ACTIVATIONS, INITIAL_VALUES, LOSSES
from quadric.datasets import ImageData

OFFSETS = {"centered": -0.5, "unit": None}
CHOICES: dict[str, Iterable[str]] = {
    "init": INITIAL_VALUES,
    "hidden_activation": ACTIVATIONS,
    "output_activation": ACTIVATIONS,
    "loss": LOSSES,
    "order": ("new", "given"),
    "images": ("first", "random", "independent"),
}
FACTORS = ("hidden.W", "hidden.b", *(f"output.{name}" for name in "WbQUc"))


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
        if not epochs or list(epochs) != sorted(set(epochs)):
            raise ValueError(
                "epochs must be one or more whole numbers in increasing order. "
                f"Got {self.epochs!r} instead."
            )
        for name, _ in self.init_factors:
            check_choice("init_factors", name, FACTORS)
        # converted, so that equal recipes have equal keys: 1 and 1.0, (5,) and [5]
        converted: dict[str, Any] = {
            "epochs": epochs,
            "init_scale": check_number("init_scale", self.init_scale, at_least=0),
            "learning_rate": check_number("learning_rate", self.learning_rate, above=0),
            "batch_size": check_integer("batch_size", self.batch_size, at_least=1),
            "dtype": as_dtype(self.dtype).name,
            "init_factors": tuple(
                sorted((name, check_number(name, by)) for name, by in self.init_factors)
            ),
        }
        if isinstance(self.scaling, str):
            check_choice("scaling", self.scaling, OFFSETS)
        else:
            converted["scaling"] = check_number("scaling", self.scaling)
        for name, value in converted.items():
            object.__setattr__(self, name, value)
        for name, choices in CHOICES.items():
            check_choice(name, getattr(self, name), choices)

    @property
    def offset(self) -> float | None:
        """The number added to every pixel/largest, or None."""
        return OFFSETS[self.scaling] if isinstance(self.scaling, str) else self.scaling

    def factors(self) -> Iterator[tuple[int, str, float]]:
        """Yield the layer (0 or 1), the name of the array and the factor of `init_factors`."""
        for name, factor in self.init_factors:
            layer, parameter = name.split(".")
            yield int(layer == "output"), {"Q": "packed"}.get(parameter, parameter), factor

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


@dataclass(frozen=True, order=True)
class StudyTask:
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

    size: int
    hidden: int
    kind: str
    seed: int
    cost: float = field(default=1.0, compare=False)

    def __post_init__(self) -> None:
        for name, least in (("size", 1), ("hidden", 1), ("seed", 0)):
            check_integer(name, getattr(self, name), at_least=least)
        if not isinstance(self.kind, str) or not self.kind:
            raise ValueError(f"kind must be a name that is not empty. Got {self.kind!r} instead.")

    def __str__(self) -> str:
        return f"{self.size} samples, {self.hidden} hidden, {self.kind}, seed {self.seed}"


@dataclass(frozen=True)
class Study:
    """How the runs of a study are trained and what they measure.

    Attributes
    ----------
    name : str
    measures : tuple of str
        The names of the numbers that a run returns, each from 0 to 1.
    train : callable(task, settings, data)
        A function at the top level of a module, so that other processes can import it. Returns the
        measured numbers, the number of training samples visited and, optionally, the trained
        network.
    settings : mapping
        JSON values that determine the results together with the task and the data.
    """

    name: str
    measures: tuple[str, ...]
    train: Callable[[StudyTask, Mapping[str, Any], ImageData | None], Measured]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def key(self) -> str:
        """Return what identifies the runs in a store, as canonical JSON."""
        values = {**self.settings, "study": self.name, "measures": self.measures}
        return json.dumps(values, sort_keys=True, separators=(",", ":"))
