"""The parameters of the network estimators, what they stand for, and when `partial_fit` exists."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from types import MethodType
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, Options as AnyOf, StrOptions

from quadric.core import INITIAL_VALUES, LAYERS
from quadric.estimators._data import LBFGS_SAMPLES

AT_LEAST_ONE = Interval(Integral, 1, None, closed="left")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
FRACTION = Interval(Real, 0, 1, closed="left")
HIDDEN = (32,)  # the widths of the hidden layers that 'auto' stands for


@dataclass(eq=False, repr=False)
class NetworkParameters(BaseEstimator):
    """The parameters of both classifier and regressor, documented in `QuadraticClassifier`.

    They are dataclass fields, so that scikit-learn finds them in the signature of the generated
    ``__init__``, and every name and default value is written only once.
    """

    hidden_layer_sizes: Any = "auto"
    activation: str = "tanh"
    _: KW_ONLY
    layer_kinds: Any = "auto"
    loss: str = "squared_error"
    init: str = "relinear"
    dtype: str | None = None
    solver: str = "auto"
    alpha: Any = "auto"
    batch_size: Any = "auto"
    learning_rate: str = "constant"
    learning_rate_init: float = 0.001
    power_t: float = 0.5
    shuffle: bool = True
    max_iter: int | None = None
    random_state: Any = None
    tol: float = 1e-4
    verbose: bool = False
    warm_start: bool = False
    momentum: float = 0.9
    nesterovs_momentum: bool = True
    early_stopping: bool = False
    validation_fraction: float = 0.1
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-8
    n_iter_no_change: int = 10
    max_fun: int = 15000
    on_divergence: str = "recover"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "hidden_layer_sizes": [StrOptions({"auto", "single"}), "array-like", AT_LEAST_ONE],
        "activation": [StrOptions({"identity", "logistic", "tanh", "relu"})],
        "layer_kinds": [str, "array-like"],
        "loss": [StrOptions({"squared_error"})],
        "init": [StrOptions(set(INITIAL_VALUES))],
        "dtype": [StrOptions({"float32", "float64"}), None],
        "solver": [StrOptions({"auto", "lbfgs", "sgd", "adam"})],
        "alpha": [StrOptions({"auto"}), NOT_NEGATIVE],
        "batch_size": [StrOptions({"auto"}), AT_LEAST_ONE],
        "learning_rate": [StrOptions({"constant", "invscaling", "adaptive"})],
        "learning_rate_init": [POSITIVE],
        "power_t": [NOT_NEGATIVE],
        "shuffle": ["boolean"],
        "max_iter": [AT_LEAST_ONE, None],
        "random_state": ["random_state"],
        "tol": [NOT_NEGATIVE],
        "verbose": ["verbose"],
        "warm_start": ["boolean"],
        "momentum": [FRACTION],
        "nesterovs_momentum": ["boolean"],
        "early_stopping": ["boolean"],
        "validation_fraction": [FRACTION],
        "beta_1": [FRACTION],
        "beta_2": [FRACTION],
        "epsilon": [POSITIVE],
        "n_iter_no_change": [AT_LEAST_ONE, AnyOf(Real, {np.inf})],
        "max_fun": [AT_LEAST_ONE],
        "on_divergence": [StrOptions({"recover", "raise"})],
    }


def hidden_sizes(parameters: NetworkParameters) -> tuple[int, ...] | None:
    """Return the widths of the hidden layers, or None if 'auto' chooses them."""
    given, kinds = parameters.hidden_layer_sizes, parameters.layer_kinds
    if isinstance(given, str):
        # a kind for each layer fixes the number of layers
        chosen = isinstance(kinds, str) and kinds == "auto"
        return None if chosen else HIDDEN if given == "auto" else ()
    sizes = given if isinstance(given, (list, tuple)) else np.atleast_1d(np.asarray(given))
    for size in sizes:
        if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size <= 0:
            raise ValueError(f"hidden_layer_sizes must be > 0, got {given!r:.100}.")
    return tuple(int(size) for size in sizes)


def are_kinds(given: Any) -> bool:
    """Whether `given` is a sequence of strings."""
    several = isinstance(given, (list, tuple)) or (isinstance(given, np.ndarray) and given.ndim)
    return bool(several) and all(isinstance(kind, str) for kind in given)


def layer_shapes(given: Any, hidden: Sequence[int], n_outputs: int) -> list[tuple[str, int]]:
    """Return (kind, neurons) of each layer for the parameter `layer_kinds`.

    'auto' means linear hidden layers and a quadratic output layer.
    """
    sizes, kinds = [*hidden, n_outputs], given
    if isinstance(kinds, str):
        auto = ["linear"] * len(hidden) + ["quadratic"]
        kinds = auto if kinds == "auto" else [kinds] * len(sizes)
    if not are_kinds(kinds) or len(kinds) != len(sizes) or not LAYERS.keys() >= set(kinds):
        known = ", ".join(map(repr, LAYERS))
        raise ValueError(
            f"layer_kinds must be 'auto', one of {known}, or a sequence of them of length "
            f"{len(sizes)} (hidden layers and output). Got {given!r} instead."
        )
    return list(zip(kinds, sizes, strict=True))


def solver_for(parameters: NetworkParameters, n_samples: int, *, incremental: bool) -> str:
    """Return the solver; 'auto' is 'adam' whenever batches are needed.

    It is also 'adam' for many samples, unless the shape is chosen: then most of the work is done on
    some of the samples.
    """
    if parameters.solver != "auto":
        return parameters.solver
    batches = incremental or parameters.early_stopping or parameters.batch_size != "auto"
    many = n_samples > LBFGS_SAMPLES and hidden_sizes(parameters) is not None
    return "adam" if batches or many else "lbfgs"


class UnavailableMethodError(AttributeError, ValueError):
    """The parameters of an estimator exclude a method.

    It is an AttributeError, so that `hasattr` returns False and tools such as
    `MultiOutputClassifier` do not use the method. It is a ValueError as well, because parameters
    that exclude each other raise one in scikit-learn's `partial_fit`.
    """


class IfIncremental:
    """A decorator of `partial_fit`: the method exists unless the parameters exclude it."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method

    def __get__(self, estimator: Any, owner: type | None = None) -> Any:
        if estimator is None:
            return self.method
        excluded = {
            "is only available for stochastic optimizers. lbfgs is not stochastic.": (
                estimator.solver == "lbfgs"
            ),
            "does not support early_stopping=True": estimator.early_stopping,
            "does not support class_weight='balanced', because the frequencies of the classes in "
            "later batches are unknown. Pass a dict with the weight of each class.": (
                getattr(estimator, "class_weight", None) == "balanced"
            ),
        }
        for reason, applies in excluded.items():
            if applies:
                raise UnavailableMethodError(f"partial_fit {reason}")
        return MethodType(self.method, estimator)
