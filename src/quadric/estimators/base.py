"""What classifier and regressor share: settings, initial network, solvers."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import _check_sample_weight, validate_data

from quadric.arrays import Array, Matrix
from quadric.estimators.checks import (
    as_hidden_sizes,
    as_layer_kinds,
    as_samples,
    warn_about_scales,
)
from quadric.estimators.probabilities import checked_logits
from quadric.estimators.progress import live_bar
from quadric.estimators.repeated import merge_repeated
from quadric.estimators.selection import HIDDEN, Candidate, candidates, select
from quadric.estimators.stochastic import run_stochastic
from quadric.estimators.threads import suitable_threads
from quadric.initial_values import INITIAL_VALUES
from quadric.losses import LOSSES
from quadric.memory import check_memory
from quadric.network import Network
from quadric.training import backprop
from quadric.training.full_batch import run_lbfgs
from quadric.training.loop import Stepper
from quadric.training.mini_batch import MiniBatch
from quadric.training.optimizers import SGD, Adam, Optimizer

__all__ = ["QuadraticNetworkEstimator"]

# How often a solver holds all parameters at once: themselves, the snapshot of the last epoch and
# the gradient, then two means for Adam, a velocity for SGD, ten pairs of vectors for L-BFGS.
COPIES = {"adam": 5.0, "sgd": 4.0, "lbfgs": 26.0}

# What 'auto' stands for, chosen by `python -m benchmarks.defaults`.
LBFGS_SAMPLES = 20_000
STOCHASTIC_ALPHA = 1e-4


class QuadraticNetworkEstimator(BaseEstimator, ABC):
    """A network with scikit-learn's manners; see `QuadraticClassifier` for the parameters."""

    network_: Network
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "hidden_layer_sizes": [
            StrOptions({"auto"}),
            "array-like",
            Interval(Integral, 1, None, closed="left"),
        ],
        "activation": [StrOptions({"identity", "logistic", "tanh", "relu"})],
        "layer_kinds": [str, "array-like"],
        "init": [StrOptions(set(INITIAL_VALUES))],
        "solver": [StrOptions({"auto", "lbfgs", "sgd", "adam"})],
        "alpha": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "batch_size": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "learning_rate": [StrOptions({"constant", "invscaling", "adaptive"})],
        "learning_rate_init": [Interval(Real, 0, None, closed="neither")],
        "power_t": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "verbose": ["verbose"],
        "warm_start": ["boolean"],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "nesterovs_momentum": ["boolean"],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
        "beta_1": [Interval(Real, 0, 1, closed="left")],
        "beta_2": [Interval(Real, 0, 1, closed="left")],
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "n_iter_no_change": [
            Interval(Integral, 1, None, closed="left"),
            Options(Real, {np.inf}),
        ],
        "max_fun": [Interval(Integral, 1, None, closed="left")],
        "dtype": [StrOptions({"float32", "float64"}), None],
        "on_divergence": [StrOptions({"recover", "raise"})],
    }

    def __init__(
        self,
        hidden_layer_sizes: Any,
        activation: str,
        layer_kinds: Any,
        loss: str,
        init: str,
        solver: str,
        alpha: Any,
        batch_size: Any,
        learning_rate: str,
        learning_rate_init: float,
        power_t: float,
        max_iter: int,
        shuffle: bool,
        random_state: Any,
        tol: float,
        verbose: bool,
        warm_start: bool,
        momentum: float,
        nesterovs_momentum: bool,
        early_stopping: bool,
        validation_fraction: float,
        beta_1: float,
        beta_2: float,
        epsilon: float,
        n_iter_no_change: int,
        max_fun: int,
        dtype: str | None,
        on_divergence: str,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.layer_kinds = layer_kinds
        self.loss = loss
        self.init = init
        self.solver = solver
        self.alpha = alpha
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.learning_rate_init = learning_rate_init
        self.power_t = power_t
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.tol = tol
        self.verbose = verbose
        self.warm_start = warm_start
        self.momentum = momentum
        self.nesterovs_momentum = nesterovs_momentum
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.n_iter_no_change = n_iter_no_change
        self.max_fun = max_fun
        self.dtype = dtype
        self.on_divergence = on_divergence

    # ---- what the two kinds of estimator add ----

    @abstractmethod
    def _encode_targets(self, y: Any, *, incremental: bool, first: bool) -> Array:
        """The targets as an array of shape (n_samples, outputs)."""

    @abstractmethod
    def _loss_and_activation(self) -> tuple[str, str]:
        """The names of the loss and of the last layer's activation."""

    @abstractmethod
    def _score_of_logits(self, z: Array, Y: Array, sample_weight: Array | None) -> float:
        """Accuracy or R^2, for early stopping."""

    def _weights(self, sample_weight: Array | None, y: Any) -> Array | None:
        """The sample weights, class weights included."""
        return sample_weight

    # ---- fitted attributes that follow from the network ----

    @property
    def coefs_(self) -> list[Array]:
        """W of each layer, transposed: shape (inputs, neurons), as scikit-learn has it."""
        return [layer.W.T for layer in self._fitted().layers]

    @property
    def intercepts_(self) -> list[Array]:
        """b of each layer."""
        return [layer.b for layer in self._fitted().layers]

    @property
    def out_activation_(self) -> str:
        """The activation of the last layer."""
        return self._fitted().activations[-1]

    @property
    def n_layers_(self) -> int:
        """The number of layers, the input counted as one."""
        return len(self._fitted().layers) + 1

    @property
    def n_outputs_(self) -> int:
        """The number of neurons of the last layer."""
        return self._fitted().n_outputs

    def _fitted(self) -> Network:
        try:
            return self.__dict__["network_"]
        except KeyError:
            raise AttributeError(f"this {type(self).__name__} is not fitted yet") from None

    # ---- fitting ----

    def _fit(self, X: Any, y: Any, sample_weight: Any, *, incremental: bool) -> Any:
        if incremental and self.early_stopping:
            raise ValueError("partial_fit does not support early_stopping=True")
        hidden = self._hidden_sizes()
        as_layer_kinds(self.layer_kinds, len(HIDDEN if hidden is None else hidden))
        first = "network_" not in self.__dict__ or not (self.warm_start or incremental)
        X, y = validate_data(
            self, X, y,
            accept_sparse="csr", multi_output=True, dtype=(np.float64, np.float32), reset=first,
        )  # fmt: skip
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        Y = self._encode_targets(y, incremental=incremental, first=first)
        weights = self._weights(sample_weight, y)
        dtype = np.dtype(self.dtype or X.dtype) if first else self.network_.dtype
        self._random_state = check_random_state(self.random_state)
        self._solver = self._choose_solver(X.shape[0], incremental=incremental)
        if first:
            self._start(X, Y.shape[1], dtype)
        else:
            self._go_on(Y.shape[1], incremental=incremental)
        X, Y = as_samples(X, dtype), np.ascontiguousarray(Y, dtype=dtype)
        if weights is not None:
            weights = np.asarray(weights, dtype=dtype)
            if not weights.any():
                raise ValueError("sample_weight must not be zero for all samples.")
        if self._solver == "lbfgs":
            with suitable_threads(self.network_.layers, X.shape[0]):
                self._fit_lbfgs(*merge_repeated(X, Y, weights))
        else:
            batch = 200 if self.batch_size == "auto" else self.batch_size
            with suitable_threads(self.network_.layers, min(batch, X.shape[0])):
                self._fit_stochastic(X, Y, weights, incremental=incremental)
        return self

    def _choose_solver(self, n_samples: int, *, incremental: bool) -> str:
        if self.solver != "auto":
            return self.solver
        batches = incremental or self.early_stopping or self.batch_size != "auto"
        return "adam" if batches or n_samples > LBFGS_SAMPLES else "lbfgs"

    def _go_on(self, n_outputs: int, *, incremental: bool) -> None:
        """Check that the settings still fit the network of the last call, and take them over."""
        network, hidden = self.network_, self._hidden_sizes()
        _, last = self._loss_and_activation()
        widths = [layer.n_outputs for layer in network.layers[:-1]]
        if isinstance(self.hidden_layer_sizes, str):
            hidden = None
        if (
            n_outputs != network.n_outputs
            or last != network.activations[-1]
            or (hidden is not None and hidden != widths)
        ):
            raise ValueError(
                "warm_start and partial_fit go on with the network of the last call, which has "
                f"hidden layers {tuple(widths)} and {network.n_outputs} outputs ({last!r} is asked "
                f"for, {network.activations[-1]!r} is there): loss, hidden_layer_sizes or y do not "
                "fit it. Use a new estimator, or warm_start=False."
            )
        if self.alpha != "auto":
            self._alpha = float(self.alpha)
        if not incremental and self.early_stopping != (self.validation_scores_ is not None):
            self._reset_records()

    def _reset_records(self) -> None:
        self._no_improvement_count = 0
        self.best_loss_ = None if self.early_stopping else np.inf
        self.validation_scores_: list[float] | None = [] if self.early_stopping else None
        self.best_validation_score_ = -np.inf if self.early_stopping else None

    def _hidden_sizes(self) -> list[int] | None:
        """The widths of the hidden layers; None is open."""
        auto_kinds = isinstance(self.layer_kinds, str) and self.layer_kinds == "auto"
        if isinstance(self.hidden_layer_sizes, str) and auto_kinds:
            return None
        if isinstance(self.hidden_layer_sizes, str):  # as many kinds as layers: a fixed shape
            return list(HIDDEN)
        return as_hidden_sizes(self.hidden_layer_sizes)

    def _start(self, X: Matrix, n_outputs: int, dtype: np.dtype[Any]) -> None:
        """A new network and empty records; nothing is allocated that would not fit."""
        hidden, alpha = self._hidden_sizes(), None if self.alpha == "auto" else float(self.alpha)
        if self._solver != "lbfgs":  # batches: no choosing
            hidden = list(HIDDEN) if hidden is None else hidden
            alpha = STOCHASTIC_ALPHA if alpha is None else alpha
        self._candidates = candidates(hidden, alpha, X.shape[1])
        seed = int(self._random_state.randint(np.iinfo(np.int32).max))
        _, last = self._loss_and_activation()

        def make(candidate: Candidate) -> Network:
            kinds = as_layer_kinds(self.layer_kinds, len(candidate.hidden))
            sizes = [*candidate.hidden, n_outputs]
            check_memory(
                X.shape[1], list(zip(kinds, sizes, strict=True)),
                8 if self._solver == "lbfgs" else dtype.itemsize, COPIES[self._solver],
            )  # fmt: skip
            activations = [self.activation] * len(candidate.hidden) + [last]
            specification = list(zip(kinds, sizes, activations, strict=True))
            return Network.create(X.shape[1], specification, init=self.init, rng=seed, dtype=dtype)

        self._make = make  # refuses what would not fit before anything looks at the data
        self._alpha = self._candidates[-1].alpha
        self.network_ = make(self._candidates[-1])
        warn_about_scales(X, type(self).__name__)
        self.n_iter_, self.t_ = 0, 0
        self.loss_curve_: list[float] = []
        self._optimizer: Optimizer | None = None
        self._packed: Any = None
        self._rate: float | None = None
        self._reset_records()

    def _fit_lbfgs(self, X: Matrix, Y: Array, weights: Array | None) -> None:
        loss, _ = self._loss_and_activation()
        used = 0
        make = self.__dict__.pop("_make", None)  # there after a first start, and used once
        if make is not None:
            chosen, self.network_, used = select(
                self._candidates, make, LOSSES[loss], X, Y, weights, self._random_state,
                self.max_iter,
            )  # fmt: skip
            self._alpha = chosen.alpha
        iterations = max(1, self.max_iter - used)
        total = float(len(Y))
        if weights is not None:
            total = float(weights.sum(dtype=np.float64))
            weights = weights / weights.dtype.type(total / len(Y))
        network = self.network_
        with live_bar(type(self).__name__, iterations, bool(self.verbose)) as update:
            history = run_lbfgs(
                network.layers, network.activations, LOSSES[loss], X, Y,
                epochs=iterations, max_fun=self.max_fun, l2=self._alpha / total, tol=self.tol,
                sample_weight=weights, offset=None, validate=None,
                callback=lambda epoch: update(epoch.loss, None),
            )  # fmt: skip
        self.n_iter_ = used + history.epochs
        self.loss_curve_ = history.loss
        self.loss_ = history.loss[-1] if history.loss else np.nan
        self.best_loss_ = self.loss_
        if history.exhausted and self.solver == "lbfgs":  # for 'auto' it is a budget
            warnings.warn(
                f"lbfgs failed to converge after {self.n_iter_} iteration(s): increase max_iter "
                f"({self.max_iter}) or max_fun ({self.max_fun}), or scale the data.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _fit_stochastic(
        self, X: Matrix, Y: Array, weights: Array | None, *, incremental: bool
    ) -> None:
        self.__dict__.pop("_make", None)
        validate = None
        if self.early_stopping:
            X, Y, weights, validate = self._hold_out(X, Y, weights)
        n_samples = X.shape[0]
        batch_size = min(200, n_samples) if self.batch_size == "auto" else self.batch_size
        if batch_size > n_samples:
            warnings.warn(
                f"batch_size={batch_size} is larger than the number of samples, {n_samples}: "
                "all of them make one batch.",
                stacklevel=5,
            )
            batch_size = n_samples
        if not incremental or self._rate is None:
            self._optimizer = self._packed = None
            self._rate = self.learning_rate_init
        loss, _ = self._loss_and_activation()
        network = self.network_

        def make_stepper() -> Stepper:
            if self._solver == "sgd" and batch_size == 1 and self.momentum == 0:
                from quadric.training.per_sample import PerSample

                packed = self._packed if incremental else None
                if packed is not None and not packed.holds(network.layers):
                    packed = None  # the network has been changed since
                stepper = PerSample(
                    network.layers, network.activations, loss, X, Y,
                    l2=self._alpha, clip=None, sample_weight=weights, offset=None, packed=packed,
                )  # fmt: skip
                self._packed = stepper.packed if incremental else None
                return stepper
            keep = incremental and self._optimizer is not None
            optimizer = self._optimizer if keep else self._new_optimizer()
            assert optimizer is not None
            self._optimizer = optimizer
            return MiniBatch(
                network.layers, network.activations, LOSSES[loss], X, Y,
                optimizer=optimizer, batch_size=batch_size, l2=self._alpha, clip=None,
                sample_weight=weights, offset=None, by_weight=True,
            )  # fmt: skip

        def start_loss() -> float:
            some = slice(0, 1000)
            with np.errstate(over="ignore", invalid="ignore"):
                z = backprop.logits(network.layers, network.activations, X[some])
                return backprop.mean_loss(LOSSES[loss], network.activations[-1], z, Y[some])

        run_stochastic(
            self, make_stepper, n_samples,
            incremental=incremental, validate=validate, start_loss=start_loss,
        )  # fmt: skip

    def _new_optimizer(self) -> Optimizer:
        if self._solver == "sgd":
            return SGD(self.momentum, self.nesterovs_momentum)
        return Adam(self.beta_1, self.beta_2, self.epsilon)

    def _hold_out(self, X: Matrix, Y: Array, weights: Array | None) -> Any:
        """Split off the validation data; returns what is left and a function that scores."""
        usable = np.arange(len(Y)) if weights is None else np.flatnonzero(weights)
        stratify = None
        if self._stratifies(Y):  # two classes have one column
            stratify = (Y[:, 0] if Y.shape[1] == 1 else Y.argmax(axis=1))[usable]
        rows, held = train_test_split(
            usable,
            random_state=self._random_state,
            test_size=self.validation_fraction,
            stratify=stratify,
        )
        if len(held) < 2:
            raise ValueError(
                "The validation set is too small. Increase 'validation_fraction' "
                "or the size of your dataset."
            )
        X_held, Y_held = X[held], Y[held]
        weights_held = None if weights is None else weights[held]

        def validate() -> float:
            z = backprop.logits(self.network_.layers, self.network_.activations, X_held)
            return self._score_of_logits(z, Y_held, weights_held)

        return X[rows], Y[rows], None if weights is None else weights[rows], validate

    def _stratifies(self, Y: Array) -> bool:
        return False

    def _logits(self, X: Any) -> Array:
        """z of the last layer for new data."""
        return checked_logits(self, X)

    def _solver_is_stochastic(self) -> bool:
        if self.solver == "lbfgs":
            raise AttributeError(
                "partial_fit is only available for stochastic optimizers. lbfgs is not stochastic."
            )
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
