"""Parameters of the network estimators, their default values, and what 'auto' stands for.

The values behind 'auto' were chosen by `python -m benchmarks.defaults`.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, Options as AnyOf, StrOptions

from quadric.core import INITIAL_VALUES, LAYERS
from quadric.estimators._messages import warn_user
from quadric.estimators._selection import Candidate
from quadric.training import Options

HIDDEN = (32,)
BATCH_SIZE = 200
LBFGS_SAMPLES = 20_000  # with more samples, 'adam' is faster
CHOSEN_ON = 10_000  # samples on which the shape is chosen if there are more than `LBFGS_SAMPLES`
MOST_EVALUATED = 2e10  # parameters times samples, in all evaluations on more than `LBFGS_SAMPLES`
STOCHASTIC_ALPHA = 1e-4
GROWTH = 10.0  # an epoch diverges if its loss exceeds this many times the loss at the start
# With 'lbfgs', one of these shapes and penalties is chosen on held-out samples (`select`).
SHAPES: tuple[tuple[tuple[int, ...], str], ...] = (
    ((), "linear"),
    ((), "quadratic"),
    (HIDDEN, "quadratic"),
    (HIDDEN, "linear"),
    ((64,), "linear"),
    ((), "reduced"),
)
SINGLE_LAYER_ALPHAS: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0)
HIDDEN_ALPHAS: tuple[float, ...] = (1.0, 5.0, 25.0)
FEW_INPUTS = 32  # with more inputs, a single quadratic layer is not a small model
MOST_INPUTS = 64  # with more inputs, a reduced layer may be better than a quadratic one
MOST_WORK = 3e8  # parameters times samples; a larger candidate is left out if there are others
MANY_SAMPLES = 2000  # with fewer samples, 64 hidden neurons are no better than 32

AT_LEAST_ONE = Interval(Integral, 1, None, closed="left")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
FRACTION = Interval(Real, 0, 1, closed="left")


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
    max_iter: int = 100
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
        "hidden_layer_sizes": [StrOptions({"auto"}), "array-like", AT_LEAST_ONE],
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
        "max_iter": [AT_LEAST_ONE],
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
        return None if isinstance(kinds, str) and kinds == "auto" else HIDDEN
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
    kinds = list(kinds) if are_kinds(kinds) else []
    if len(kinds) != len(sizes) or not all(kind in LAYERS for kind in kinds):
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


def candidates(
    parameters: NetworkParameters, n_samples: int, n_inputs: int, n_outputs: int, solver: str
) -> list[Candidate]:
    """Return the combinations of shape and penalty that are tried, grouped by shape."""
    hidden, found = hidden_sizes(parameters), []
    shapes = [layer_shapes(parameters.layer_kinds, HIDDEN if hidden is None else hidden, n_outputs)]
    if hidden is None and solver == "lbfgs":
        # a reduced layer, which is a product, cannot represent the mean of a target
        reduced = n_inputs > MOST_INPUTS and parameters.loss != "squared_error"
        shapes = [
            layer_shapes(["linear"] * len(sizes) + [last], sizes, n_outputs)
            for sizes, last in SHAPES
            if (reduced or last != "reduced") and (n_samples >= MANY_SAMPLES or sizes != (64,))
        ]
    for layers in shapes:
        alphas = SINGLE_LAYER_ALPHAS if len(layers) == 1 else HIDDEN_ALPHAS
        if parameters.alpha != "auto":
            alphas = (float(parameters.alpha),)
        elif solver != "lbfgs":
            alphas = (STOCHASTIC_ALPHA,)
        found += [Candidate(tuple(layers), alpha) for alpha in alphas]
    return found


def without_choice(among: Sequence[Candidate], n_inputs: int) -> Candidate:
    """Return the candidate that is used if there are too few samples to choose one."""
    preferred = 1 if n_inputs <= FEW_INPUTS else 2
    quadratic = [one for one in among if one.layers[-1][0] == "quadratic"]
    return next((one for one in quadratic if len(one.layers) == preferred), among[0])


def batch_size_for(parameters: NetworkParameters, n_samples: int) -> int:
    """Return the batch size, which may exceed the number of samples unless it is 'auto'."""
    given = parameters.batch_size
    return min(BATCH_SIZE, n_samples) if given == "auto" else int(given)


def training_options(
    parameters: NetworkParameters, solver: str, n_samples: int, *, incremental: bool
) -> Options:
    """Return the parameters as options of `train`; `l2` is set later, once alpha is known."""
    batch_size = batch_size_for(parameters, n_samples)
    if batch_size > n_samples and solver != "lbfgs":
        warn_user(
            f"batch_size={batch_size} is larger than the number of samples, {n_samples}: all of "
            "them form one batch."
        )
        batch_size = n_samples
    return Options(
        solver=solver,
        epochs=1 if incremental else parameters.max_iter,
        learning_rate=parameters.learning_rate_init,
        schedule=parameters.learning_rate if solver == "sgd" else "constant",
        power_t=parameters.power_t,
        batch_size=batch_size,
        by_weight=True,
        momentum=parameters.momentum,
        nesterov=parameters.nesterovs_momentum,
        beta_1=parameters.beta_1,
        beta_2=parameters.beta_2,
        epsilon=parameters.epsilon,
        shuffle=parameters.shuffle,
        tol=parameters.tol,
        n_iter_no_change=parameters.n_iter_no_change,
        max_evaluations=parameters.max_fun,
        penalty="monomials" if parameters.alpha == "auto" and solver == "lbfgs" else "entries",
        resume=incremental,
        recover=parameters.on_divergence == "recover",
        growth=GROWTH,
    )
