"""What a training run does beyond its task: every choice that the paper leaves unstated."""

import json
from dataclasses import asdict, dataclass

from quadric._utils import arrays, checks
from quadric.core._activations import ACTIVATIONS
from quadric.core._initial_values import INITIAL_VALUES
from quadric.core._losses import LOSSES

OFFSETS = {"centered": -0.5, "unit": None}


@dataclass(frozen=True)
class Recipe:
    """How the runs of a sweep are trained. The defaults match the paper's MNIST table.

    They were found by trying variants against that same table: a fit, and no proof of what its
    authors did.

    Attributes
    ----------
    scaling : {'centered', 'unit'}
        pixel/largest - 0.5, or pixel/largest.
    init, init_scale : str, float
        Of `Network.create`; the draw depends on the seed alone.
    learning_rate, batch_size
        Of `Network.fit`.
    epochs : tuple of int, increasing
        When the accuracy is measured; one run, as long as the last of them, gives them all.
    hidden_activation, output_activation, loss : str
    order : {'new', 'given'}
        Of the images: drawn anew for every epoch, or as they stand.
    images : {'first', 'random'}
        The first N training images, or N of them drawn by the seed.
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
                "epochs must be one or more whole numbers, each larger than the one before. "
                f"Got {self.epochs!r} instead."
            )
        # converted, so that recipes that mean the same have the same key: 1 and 1.0, (5,) and [5]
        converted = {
            "epochs": epochs,
            "init_scale": checks.check_number("init_scale", self.init_scale, at_least=0),
            "learning_rate": checks.check_number("learning_rate", self.learning_rate, above=0),
            "batch_size": checks.check_integer("batch_size", self.batch_size, at_least=1),
            "dtype": arrays.as_dtype(self.dtype).name,
        }
        for name, value in converted.items():
            object.__setattr__(self, name, value)
        checks.check_choice("scaling", self.scaling, OFFSETS)
        checks.check_choice("init", self.init, INITIAL_VALUES)
        checks.check_choice("hidden_activation", self.hidden_activation, ACTIVATIONS)
        checks.check_choice("output_activation", self.output_activation, ACTIVATIONS)
        checks.check_choice("loss", self.loss, LOSSES)
        checks.check_choice("order", self.order, ("new", "given"))
        checks.check_choice("images", self.images, ("first", "random"))

    @property
    def offset(self) -> float | None:
        """What is added to every pixel/largest; None where nothing is."""
        return OFFSETS[self.scaling]

    def key(self) -> str:
        """The recipe as canonical JSON: the same text for the same recipe, in any session.

        >>> Recipe(epochs=[5, 10]).key() == Recipe(epochs=(5, 10)).key()
        True
        >>> "centered" in Recipe().key()
        True
        """
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
