"""The recipe of a sweep: every training choice that the paper leaves unstated."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from quadric._utils import arrays, checks
from quadric.core._activations import ACTIVATIONS
from quadric.core._initial_values import INITIAL_VALUES
from quadric.core._losses import LOSSES

OFFSETS = {"centered": -0.5, "unit": None}
CHOICES: dict[str, Iterable[str]] = {
    "scaling": OFFSETS,
    "init": INITIAL_VALUES,
    "hidden_activation": ACTIVATIONS,
    "output_activation": ACTIVATIONS,
    "loss": LOSSES,
    "order": ("new", "given"),
    "images": ("first", "random"),
}


@dataclass(frozen=True)
class Recipe:
    """How the runs of a sweep are trained. The defaults match the paper's MNIST table.

    The defaults were found by comparing variants with that table. They fit it, but do not prove
    what the authors did.

    Attributes
    ----------
    scaling : {'centered', 'unit'}
        pixel/largest - 0.5, or pixel/largest.
    init, init_scale : str, float
        Passed to `Network.create`. The initial values depend only on the seed.
    learning_rate, batch_size
        Passed to `Network.fit`.
    epochs : tuple of int, increasing
        The epochs after which the accuracy is measured. The last one ends the run.
    hidden_activation, output_activation, loss : str
    order : {'new', 'given'}
        Whether the images are shuffled before every epoch or keep their order.
    images : {'first', 'random'}
        Whether a run uses the first N training images or a random choice of N.
    dtype : {'float32', 'float64'}
    """

    scaling: str = "centered"
    init: str = "normal"
    init_scale: float = 0.005
    learning_rate: float = 0.01
    batch_size: int = 1
    epochs: tuple[int, ...] = (5, 10, 20)
    hidden_activation: str = "logistic"
    output_activation: str = "logistic"
    loss: str = "binary_cross_entropy"
    order: str = "new"
    images: str = "first"
    dtype: str = "float32"

    def __post_init__(self) -> None:
        epochs = tuple(checks.check_integer("epochs", n, at_least=1) for n in self.epochs)
        if not epochs or list(epochs) != sorted(set(epochs)):
            raise ValueError(
                "epochs must be one or more whole numbers in increasing order. "
                f"Got {self.epochs!r} instead."
            )
        # converted, so that equal recipes have equal keys: 1 and 1.0, (5,) and [5]
        converted = {
            "epochs": epochs,
            "init_scale": checks.check_number("init_scale", self.init_scale, at_least=0),
            "learning_rate": checks.check_number("learning_rate", self.learning_rate, above=0),
            "batch_size": checks.check_integer("batch_size", self.batch_size, at_least=1),
            "dtype": arrays.as_dtype(self.dtype).name,
        }
        for name, value in converted.items():
            object.__setattr__(self, name, value)
        for name, choices in CHOICES.items():
            checks.check_choice(name, getattr(self, name), choices)

    @property
    def offset(self) -> float | None:
        """The number added to every pixel/largest, or None."""
        return OFFSETS[self.scaling]

    def key(self) -> str:
        """Return the recipe as canonical JSON: equal recipes have equal keys in any session.

        >>> Recipe(epochs=[5, 10]).key() == Recipe(epochs=(5, 10)).key()
        True
        >>> "centered" in Recipe().key()
        True
        """
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
