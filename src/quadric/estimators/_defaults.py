"""Parameters of the network estimators, their default values, and what 'auto' stands for.

The values behind 'auto' were chosen by `python -m benchmarks.defaults`.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils._param_validation import Options as AnyOf

from quadric.core import INITIAL_VALUES, LAYERS, Stack
from quadric.estimators._messages import warn_user
from quadric.network import Network
from quadric.training import Options, Samples, TrainingState, train

HIDDEN = (32,)
BATCH_SIZE = 200
LBFGS_SAMPLES = 20_000  # with more samples, 'adam' is faster
STOCHASTIC_ALPHA = 1e-4
GROWTH = 10.0  # an epoch diverges if its loss exceeds this many times the loss at the start
# With 'lbfgs', the shape and one of these penalties are chosen on held-out samples (`select`).
SINGLE_LAYER_ALPHAS: tuple[float, ...] = (0.1, 1.0, 10.0)
HIDDEN_ALPHAS: tuple[float, ...] = (1.0, 5.0, 25.0)
ROUNDS = (15, 25)  # iterations per candidate
FEWEST_SAMPLES = 20  # with fewer, held-out losses are too noisy
MOST_INPUTS = 32  # with more inputs, a single quadratic layer is not a small model

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


class Candidate(NamedTuple):
    """(kind, neurons) of each layer, and the penalty."""

    layers: list[tuple[str, int]]
    alpha: float


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


def layer_shapes(given: Any, hidden: Sequence[int], n_outputs: int) -> list[tuple[str, int]]:
    """Return (kind, neurons) of each layer for the parameter `layer_kinds`.

    'auto' means linear hidden layers and a quadratic output layer.
    """
    sizes, kinds = [*hidden, n_outputs], given
    if isinstance(kinds, str):
        auto = ["linear"] * len(hidden) + ["quadratic"]
        kinds = auto if kinds == "auto" else [kinds] * len(sizes)
    kinds = list(kinds)
    if len(kinds) != len(sizes) or not all(kind in LAYERS for kind in kinds):
        known = ", ".join(map(repr, LAYERS))
        raise ValueError(
            f"layer_kinds must be 'auto', one of {known}, or a sequence of them of length "
            f"{len(sizes)} (hidden layers and output). Got {given!r} instead."
        )
    return list(zip(kinds, sizes, strict=True))


def solver_for(parameters: NetworkParameters, n_samples: int, *, incremental: bool) -> str:
    """Return the solver; 'auto' is 'adam' for many samples and whenever batches are needed."""
    if parameters.solver != "auto":
        return parameters.solver
    batches = incremental or parameters.early_stopping or parameters.batch_size != "auto"
    return "adam" if batches or n_samples > LBFGS_SAMPLES else "lbfgs"


def candidates(
    parameters: NetworkParameters, n_inputs: int, n_outputs: int, solver: str
) -> list[Candidate]:
    """Return all combinations of shape and penalty; the first is used if no choice is possible."""
    hidden, found = hidden_sizes(parameters), []
    shapes: list[tuple[int, ...]] = [HIDDEN if hidden is None else hidden]
    if solver == "lbfgs" and hidden is None and n_inputs <= MOST_INPUTS:
        shapes.insert(0, ())
    for shape in shapes:
        alphas = HIDDEN_ALPHAS if shape else SINGLE_LAYER_ALPHAS
        if parameters.alpha != "auto":
            alphas = (float(parameters.alpha),)
        elif solver != "lbfgs":
            alphas = (STOCHASTIC_ALPHA,)
        layers = layer_shapes(parameters.layer_kinds, shape, n_outputs)
        found += [Candidate(layers, alpha) for alpha in alphas]
    return found


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
        resume=incremental,
        recover=parameters.on_divergence == "recover",
        # the effect of a single batch shows only in the next call, on other samples
        growth=None if incremental and batch_size == n_samples else GROWTH,
    )


def worth_choosing(among: Sequence[Candidate], n_samples: int, options: Options) -> bool:
    """Whether there are several candidates, and enough samples, iterations and evaluations."""
    enough = n_samples >= FEWEST_SAMPLES and options.epochs >= 4
    return len(among) > 1 and enough and _shares(len(among), options)[0] >= 2


def _shares(n_candidates: int, options: Options) -> tuple[int, int]:
    """Return the evaluations per candidate in each round; a round gets a quarter of the total."""
    assert options.max_evaluations is not None
    return options.max_evaluations // (4 * n_candidates), options.max_evaluations // 8


def select(
    among: Sequence[tuple[Candidate, Network]],
    loss: str,
    samples: Samples,
    options: Options,
    rng: np.random.RandomState,
) -> tuple[Candidate, Network, int, int]:
    """Choose the shape and the penalty on held-out samples, within the time of one L-BFGS fit.

    Every candidate is trained for a few iterations on three quarters of the data. The two with the
    smallest loss on the last quarter continue. A round takes at most a quarter of the iterations
    (for each candidate) and of the evaluations (for all candidates together).

    Returns the winner, its partly trained network, and the numbers of iterations and evaluations
    used.
    """
    n_samples, evaluations = len(samples), 0
    order = rng.permutation(n_samples)
    kept, held = samples.take(order[n_samples // 4 :]), samples.take(order[: n_samples // 4])
    rounds = [max(1, min(n, options.epochs // 4)) for n in ROUNDS]
    entries = list(among)
    for iterations, share in zip(rounds, _shares(len(among), options), strict=True):
        losses = []
        for candidate, network in entries:
            state = TrainingState()
            run = Options(
                solver="lbfgs",
                epochs=iterations,
                l2=candidate.alpha,
                by_weight=True,
                tol=1e-4,
                max_evaluations=min(share, 15 * iterations + 20),
            )
            stack = Stack(network.layers, network.activations, loss)
            train(stack, kept, run, state)
            evaluations += state.evaluations
            z = stack.logits(held.X)
            values = stack.loss_function.value(network.activations[-1], z, held.Y)
            losses.append(float(np.average(values, weights=held.weight)))
        entries = [entries[i] for i in np.argsort(losses, kind="stable")[:2]]
    return *entries[0], sum(rounds), evaluations
